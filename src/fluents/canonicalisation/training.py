"""Learn the scorer's weights, and say how well it does: `python -m fluents.canonicalisation.training [--write]`.

Weights come from a language model's clusters and, counted several times each, the few that people made; people's
choose the threshold too. A procedure is scored with the weights and the threshold of the folds it is not in.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fluents.canonicalisation.name_facts import Fact, fact_of, group_names
from fluents.canonicalisation.pair_features import PairFeatures
from fluents.canonicalisation.pair_scorer import PARAMETERS, PairScorer
from fluents.data import cluster_labels
from fluents.data.cv_folds import CLUSTER_FOLDS, held_out
from fluents.data.datasets import load_traces
from fluents.metrics.clustering import clustering
from fluents.records import Trace
from fluents.scoring import Level
from fluents.scoring.bootstrap import intervals
from fluents.scoring.score import Score
from fluents.text.embedders import Embedder, load_embedder

Clusters: TypeAlias = dict[tuple[str, str], list[list[str]]]
"""Of names, by procedure and entity."""

USED: Mapping[Level, tuple[str, ...]] = {
    "entities": ("inside", "part", "head", "letters", "meaning", "states", "steps"),
    "attributes": ("letters", "meaning", "states", "steps", "fact"),
}
"""The evidence each level weighs."""

PENALTY = 1.0
PEOPLE_COUNT = 4
"""How often each of people's clusterings is taken: there are 45 procedures of the model's and ten of theirs."""
THRESHOLDS = tuple(number / 50 for number in range(5, 50))
_FREE = {"part", "head"}
"""Evidence that may count either way; all other kinds can only speak for a pair, or not at all."""


def fitted(taught: Iterable[LabelledNames], kinds: Sequence[str]) -> PairScorer:
    """Logistic regression on all pairs of names, with a penalty on large weights; the threshold is still to choose."""
    cells, same = _pairs(taught, kinds)

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights, bias = values[:-1], values[-1]
        score = cells @ weights + bias
        error = 1 / (1 + np.exp(-score)) - same
        value = (np.logaddexp(0, score) - same * score).sum() + PENALTY / 2 * weights @ weights
        return float(value), np.append(cells.T @ error + PENALTY * weights, error.sum())

    bounds = [(None if kind in _FREE else 0, None) for kind in kinds] + [(None, None)]
    found = minimize(loss, np.zeros(len(kinds) + 1), jac=True, method="L-BFGS-B", bounds=bounds).x
    *weights, bias = (round(float(value), 2) for value in found)
    return PairScorer(dict(zip(kinds, weights, strict=True)), bias, 0.5)


def _pairs(taught: Iterable[LabelledNames], kinds: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The evidence on every pair of names, and whether one cluster has both."""
    cells: list[NDArray[np.float64]] = []
    same: list[bool] = []
    for lesson in taught:
        names = [set(one.names) for one in lesson.evidence.names]
        homes = [{place for place, cluster in enumerate(lesson.clusters) if one & set(cluster)} for one in names]
        rows, columns = np.triu_indices(len(names), k=1)
        squares = [lesson.evidence.of(kind)[rows, columns] for kind in kinds]
        cells.append(np.stack(squares, axis=1).astype(np.float64))
        same += [bool(homes[one] & homes[two]) for one, two in zip(rows, columns, strict=True)]
    return np.concatenate(cells), np.array(same, dtype=np.float64)


def scored(predicted: Clusters, meant: Iterable[LabelledNames], level: Level) -> Score:
    gold = {lesson.key: lesson.clusters for lesson in meant}
    return clustering({key: gold[key] for key in predicted}, predicted, level=level)


def grouped(scorer: PairScorer, meant: Iterable[LabelledNames]) -> Clusters:
    return {lesson.key: lesson.groups(scorer.groups(scorer.likely(lesson.evidence))) for lesson in meant}


def with_threshold(scorer: PairScorer, meant: Sequence[LabelledNames], level: Level) -> PairScorer:
    """The threshold at which exact-match F1 and B-cubed together are best; the higher of two that are equal."""
    likely = [scorer.likely(lesson.evidence) for lesson in meant]

    def quality(choice: PairScorer) -> float:
        found = zip(meant, map(choice.groups, likely), strict=True)
        score = scored({one.key: one.groups(places) for one, places in found}, meant, level)
        return round(score.rows["exact"]["f1"] + score.rows["b-cubed"]["f1"], 6)

    return max((replace(scorer, threshold=threshold) for threshold in reversed(THRESHOLDS)), key=quality)


def cross_validated(
    made: Sequence[LabelledNames], meant: Sequence[LabelledNames], level: Level, kinds: Sequence[str]
) -> Clusters:
    """Every procedure's clusters by what the other folds taught."""
    predicted: Clusters = {}
    for others, held in held_out(CLUSTER_FOLDS):
        scorer = learned(made, [lesson for lesson in meant if lesson.procedure in others], level, kinds)
        predicted |= grouped(scorer, [lesson for lesson in meant if lesson.procedure in held])
    return predicted


def learned(
    made: Sequence[LabelledNames], meant: Sequence[LabelledNames], level: Level, kinds: Sequence[str]
) -> PairScorer:
    return with_threshold(fitted([*made, *list(meant) * PEOPLE_COUNT], kinds), meant, level)


PREDICTIONS = ("single", "same-words", "offline")
"""Every name by itself; names of the same words together; the offline method, cross-validated."""


def predictions(which: str, level: Level) -> Clusters:
    """The clusters of the procedures that people labelled, by one of PREDICTIONS."""
    made, meant = lessons(level, load_embedder())
    return _predicted(which, made, meant, level)


def _predicted(which: str, made: Sequence[LabelledNames], meant: Sequence[LabelledNames], level: Level) -> Clusters:
    if which == "offline":
        return cross_validated(made, meant, level, USED[level])
    same_words = {one.key: [list(place.names) for place in one.evidence.names] for one in meant}
    if which == "same-words":
        return same_words
    return {key: [[name] for group in groups for name in group] for key, groups in same_words.items()}


def report(level: Level, made: Sequence[LabelledNames], meant: Sequence[LabelledNames]) -> None:
    """The scores with their intervals, and what becomes of the last without each kind of evidence."""
    for which in PREDICTIONS:
        score = scored(_predicted(which, made, meant, level), meant, level)
        between = intervals(score)
        figures = (
            f"{row} {score.rows[row]['f1']:.1f} [{between[row]['f1'].low:.1f}, {between[row]['f1'].high:.1f}]"
            for row in ("exact", "b-cubed")
        )
        print(f"{level}, {which}: {', '.join(figures)}")
    for left_out in USED[level]:
        kinds = [kind for kind in USED[level] if kind != left_out]
        score = scored(cross_validated(made, meant, level, kinds), meant, level)
        print(f"  without {left_out}: exact {score.rows['exact']['f1']:.1f}, b-cubed {score.rows['b-cubed']['f1']:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m fluents.canonicalisation.training", description=(__doc__ or "").strip()
    )
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    write = parser.parse_args().write
    embedder = load_embedder()
    parameters: dict[str, dict[str, object]] = {}
    levels: tuple[Level, ...] = ("entities", "attributes")
    for level in levels:
        made, meant = lessons(level, embedder)
        report(level, made, meant)
        scorer = learned(made, meant, level, USED[level])
        parameters[level] = {"weights": dict(scorer.weights), "bias": scorer.bias, "threshold": scorer.threshold}
    text = json.dumps(parameters, indent=2) + "\n"
    if write:
        PARAMETERS.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()


BAR = " | "


@dataclass(frozen=True)
class LabelledNames:
    """Names of one procedure, or of one entity's attributes, and the clusters somebody made of them."""

    procedure: str
    entity: str
    """Empty where the names are the procedure's entities."""
    evidence: PairFeatures
    clusters: Sequence[Collection[str]]

    @property
    def key(self) -> tuple[str, str]:
        return self.procedure, self.entity

    def groups(self, places: Sequence[Sequence[int]]) -> list[list[str]]:
        """The names at these places."""
        return [[name for place in group for name in self.evidence.names[place].names] for group in places]


def lessons(level: Level, embedder: Embedder) -> tuple[list[LabelledNames], list[LabelledNames]]:
    """(by a language model, by people), of different procedures."""
    labels = cluster_labels.entity_labels() if level == "entities" else cluster_labels.attribute_labels()
    by_people = {procedure for procedure, _ in labels}
    canonical = list(load_traces("openpi2:dev"))
    written = _as_written(canonical)
    made = [
        _lesson(written[trace.id], trace.id, entity, clusters, embedder)
        for trace in canonical
        if trace.id not in by_people
        for entity, clusters in _model_clusters(trace, level)
        if clusters
    ]
    meant = [
        _lesson(written[procedure], procedure, entity, clusters, embedder)
        for (procedure, entity), clusters in labels.items()
    ]
    return made, meant


def _model_clusters(trace: Trace, level: Level) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    if level == "entities":
        yield "", [cluster.mentions for cluster in trace.clusters]
        return
    for cluster in trace.clusters:
        yield BAR.join(cluster.mentions), [attribute.mentions for attribute in cluster.attributes]


def _as_written(canonical: Sequence[Trace]) -> dict[str, Trace]:
    """The same procedures with annotators' own words; the two releases share nothing but the steps' text."""
    plain = list(load_traces("openpi-v1.1:dev"))
    texts = [set(trace.procedure.steps) for trace in plain]
    found = {}
    for trace in canonical:
        steps = set(trace.procedure.steps)
        best = max(range(len(plain)), key=lambda place: len(steps & texts[place]))
        found[trace.id] = plain[best]
    return found


def _lesson(
    trace: Trace, procedure: str, entity: str, clusters: Sequence[Collection[str]], embedder: Embedder
) -> LabelledNames:
    facts: dict[str, list[Fact]] = {name: [] for cluster in clusters for name in cluster}
    entities = set(entity.split(BAR))
    for change in trace.changes:
        name = change.attribute if entity else change.entity
        if name in facts and (not entity or change.entity in entities):
            facts[name].append(fact_of(change))
    times = {name: len(said) for name, said in facts.items()}
    return LabelledNames(procedure, entity, PairFeatures(group_names(facts, times), embedder), clusters)
