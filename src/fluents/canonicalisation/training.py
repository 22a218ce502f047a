"""Training of the pair scorer, and its predictions in cross-validation; `benchmarks/clustering.py` runs it.

The weights are fitted to a language model's clusters and, weighted higher, to the few that people made; these choose
the threshold too. In cross-validation a procedure is scored with the weights and threshold of the other folds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fluents.canonicalisation.name_facts import Fact, fact_of, group_names
from fluents.canonicalisation.pair_features import PairFeatures
from fluents.canonicalisation.pair_scorer import PairScorer
from fluents.data import openpi2_labels
from fluents.data.datasets import load_traces
from fluents.data.openpi2_labels import CLUSTER_FOLDS, held_out
from fluents.metrics.clustering import clustering
from fluents.records import Trace
from fluents.scoring import Level
from fluents.scoring.score import Score
from fluents.text.embedders import Embedder

Clusters: TypeAlias = dict[tuple[str, str], list[list[str]]]
"""Clusters of names, by procedure and entity."""

FEATURES: Mapping[Level, tuple[str, ...]] = {
    "entities": ("inside", "part", "head", "letters", "meaning", "states", "steps"),
    "attributes": ("letters", "meaning", "states", "steps", "fact"),
}
"""The features used at each level."""

PENALTY = 1.0
PEOPLE_WEIGHT = 4
"""How often each clustering by people counts: there are 45 procedures by the model and ten by people."""
THRESHOLDS = tuple(number / 50 for number in range(5, 50))
_EITHER_SIGN = {"part", "head"}
"""Features whose weight may be negative."""

BAR = " | "
"""Between the names of an entity, as the labels of its attributes write them."""


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


class TrainingData(NamedTuple):
    """Clusterings of different procedures."""

    by_model: list[LabelledNames]
    by_people: list[LabelledNames]


def load_training_data(level: Level, embedder: Embedder) -> TrainingData:
    """OpenPI2.0's clusters, with the names as its annotators wrote them."""
    labels = openpi2_labels.entity_labels() if level == "entities" else openpi2_labels.attribute_labels()
    labelled = {procedure for procedure, _ in labels}
    canonical = list(load_traces("openpi2:dev"))
    written = _as_written(canonical)
    by_model = [
        _labelled(written[trace.id], trace.id, entity, clusters, embedder)
        for trace in canonical
        if trace.id not in labelled
        for entity, clusters in _model_clusters(trace, level)
        if clusters
    ]
    by_people = [
        _labelled(written[procedure], procedure, entity, clusters, embedder)
        for (procedure, entity), clusters in labels.items()
    ]
    return TrainingData(by_model, by_people)


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


def _labelled(
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


def fit(data: Iterable[LabelledNames], kinds: Sequence[str]) -> PairScorer:
    """Logistic regression on all pairs of names, with a penalty on large weights, and a threshold of 0.5."""
    cells, same = _pairs(data, kinds)

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights, bias = values[:-1], values[-1]
        score = cells @ weights + bias
        error = 1 / (1 + np.exp(-score)) - same
        value = (np.logaddexp(0, score) - same * score).sum() + PENALTY / 2 * weights @ weights
        return float(value), np.append(cells.T @ error + PENALTY * weights, error.sum())

    bounds = [(None if kind in _EITHER_SIGN else 0, None) for kind in kinds] + [(None, None)]
    found = minimize(loss, np.zeros(len(kinds) + 1), jac=True, method="L-BFGS-B", bounds=bounds).x
    *weights, bias = (round(float(value), 2) for value in found)
    return PairScorer(dict(zip(kinds, weights, strict=True)), bias, 0.5)


def _pairs(data: Iterable[LabelledNames], kinds: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The features of every pair of names, and whether one cluster has both."""
    cells: list[NDArray[np.float64]] = []
    same: list[bool] = []
    for one in data:
        names = [set(group.names) for group in one.evidence.names]
        homes = [{place for place, cluster in enumerate(one.clusters) if group & set(cluster)} for group in names]
        rows, columns = np.triu_indices(len(names), k=1)
        squares = [one.evidence.of(kind)[rows, columns] for kind in kinds]
        cells.append(np.stack(squares, axis=1).astype(np.float64))
        same += [bool(homes[row] & homes[column]) for row, column in zip(rows, columns, strict=True)]
    return np.concatenate(cells), np.array(same, dtype=np.float64)


def score_clusters(predicted: Clusters, labelled: Iterable[LabelledNames], level: Level) -> Score:
    gold = {one.key: one.clusters for one in labelled}
    return clustering({key: gold[key] for key in predicted}, predicted, level=level)


def predict(scorer: PairScorer, labelled: Iterable[LabelledNames]) -> Clusters:
    return {one.key: one.groups(scorer.groups(scorer.likely(one.evidence))) for one in labelled}


def choose_threshold(scorer: PairScorer, labelled: Sequence[LabelledNames], level: Level) -> PairScorer:
    """The scorer with the threshold that maximises exact-match F1 plus B-cubed F1; the higher of two equals."""
    likely = [scorer.likely(one.evidence) for one in labelled]

    def quality(choice: PairScorer) -> float:
        found = zip(labelled, map(choice.groups, likely), strict=True)
        score = score_clusters({one.key: one.groups(places) for one, places in found}, labelled, level)
        return round(score.rows["exact"]["f1"] + score.rows["b-cubed"]["f1"], 6)

    return max((replace(scorer, threshold=threshold) for threshold in reversed(THRESHOLDS)), key=quality)


def train(data: TrainingData, level: Level, kinds: Sequence[str]) -> PairScorer:
    return choose_threshold(fit([*data.by_model, *data.by_people * PEOPLE_WEIGHT], kinds), data.by_people, level)


def cross_validate(data: TrainingData, level: Level, kinds: Sequence[str]) -> Clusters:
    """The clusters of every procedure that people labelled, by a scorer trained on the other folds."""
    predicted: Clusters = {}
    for others, held in held_out(CLUSTER_FOLDS):
        rest = data._replace(by_people=[one for one in data.by_people if one.procedure in others])
        predicted |= predict(train(rest, level, kinds), [one for one in data.by_people if one.procedure in held])
    return predicted


PREDICTIONS = ("single", "same-words", "offline")
"""Every name by itself; names of the same words together; the offline method, cross-validated."""


def predict_as(which: str, data: TrainingData, level: Level) -> Clusters:
    """The clusters of the procedures that people labelled, by one of PREDICTIONS."""
    if which == "offline":
        return cross_validate(data, level, FEATURES[level])
    same_words = {one.key: [list(group.names) for group in one.evidence.names] for one in data.by_people}
    if which == "same-words":
        return same_words
    return {key: [[name] for group in groups for name in group] for key, groups in same_words.items()}
