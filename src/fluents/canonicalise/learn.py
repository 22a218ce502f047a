"""Learn the scorer's weights, and say how well it does: `python -m fluents.canonicalise.learn [--write]`.

Weights come from a language model's clusters and, counted several times each, the few that people made; people's
choose the threshold too. A procedure is scored with the weights and the threshold of the folds it is not in.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fluents.canonicalise.lessons import Lesson, lessons
from fluents.canonicalise.scorer import PARAMETERS, Level, Scorer
from fluents.data.folds import CLUSTER_FOLDS, held_out
from fluents.metrics.base import Score
from fluents.metrics.bootstrap import intervals
from fluents.metrics.clustering import clustering
from fluents.metrics.embedders import load_embedder

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


def fitted(taught: Iterable[Lesson], kinds: Sequence[str]) -> Scorer:
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
    return Scorer(dict(zip(kinds, weights, strict=True)), bias, 0.5)


def _pairs(taught: Iterable[Lesson], kinds: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def scored(predicted: Clusters, meant: Iterable[Lesson], level: Level) -> Score:
    gold = {lesson.key: lesson.clusters for lesson in meant}
    return clustering({key: gold[key] for key in predicted}, predicted, level=level)


def grouped(scorer: Scorer, meant: Iterable[Lesson]) -> Clusters:
    return {lesson.key: lesson.groups(scorer.groups(scorer.likely(lesson.evidence))) for lesson in meant}


def with_threshold(scorer: Scorer, meant: Sequence[Lesson], level: Level) -> Scorer:
    """The threshold at which exact-match F1 and B-cubed together are best; the higher of two that are equal."""
    likely = [scorer.likely(lesson.evidence) for lesson in meant]

    def quality(choice: Scorer) -> float:
        found = zip(meant, map(choice.groups, likely), strict=True)
        score = scored({one.key: one.groups(places) for one, places in found}, meant, level)
        return round(score.rows["exact"]["f1"] + score.rows["b-cubed"]["f1"], 6)

    return max((replace(scorer, threshold=threshold) for threshold in reversed(THRESHOLDS)), key=quality)


def cross_validated(made: Sequence[Lesson], meant: Sequence[Lesson], level: Level, kinds: Sequence[str]) -> Clusters:
    """Every procedure's clusters by what the other folds taught."""
    predicted: Clusters = {}
    for others, held in held_out(CLUSTER_FOLDS):
        scorer = learned(made, [lesson for lesson in meant if lesson.procedure in others], level, kinds)
        predicted |= grouped(scorer, [lesson for lesson in meant if lesson.procedure in held])
    return predicted


def learned(made: Sequence[Lesson], meant: Sequence[Lesson], level: Level, kinds: Sequence[str]) -> Scorer:
    return with_threshold(fitted([*made, *list(meant) * PEOPLE_COUNT], kinds), meant, level)


PREDICTIONS = ("single", "same-words", "offline")
"""Every name by itself; names of the same words together; the offline method, cross-validated."""


def predictions(which: str, level: Level) -> Clusters:
    """The clusters of the procedures that people labelled, by one of PREDICTIONS."""
    made, meant = lessons(level, load_embedder())
    return _predicted(which, made, meant, level)


def _predicted(which: str, made: Sequence[Lesson], meant: Sequence[Lesson], level: Level) -> Clusters:
    if which == "offline":
        return cross_validated(made, meant, level, USED[level])
    same_words = {one.key: [list(place.names) for place in one.evidence.names] for one in meant}
    if which == "same-words":
        return same_words
    return {key: [[name] for group in groups for name in group] for key, groups in same_words.items()}


def report(level: Level, made: Sequence[Lesson], meant: Sequence[Lesson]) -> None:
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
    parser = argparse.ArgumentParser(prog="python -m fluents.canonicalise.learn", description=(__doc__ or "").strip())
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
