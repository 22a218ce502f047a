"""How the offline method of `fluents ask` is learnt from CREPE's development split, and how well it does.

    fluents track crepe:dev --model tiny -o dev.jsonl     # the states; any tracker will do
    python benchmarks/crepe.py dev.jsonl                  # the table of docs/questions.md
    python benchmarks/crepe.py dev.jsonl --write          # writes the shipped weights as well

There is no training split, so every procedure is judged by weights learnt from the other folds. The odds of rare labels
are chosen in those folds alone, in a cross-validation of their own; the penalty is fixed. The folds are drawn several
times, and the interval is that of the first drawing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluents import jsonl
from fluents.data.crepe import load
from fluents.data.file_formats import read_traces
from fluents.metrics.crepe import crepe
from fluents.questions import States, kept_states
from fluents.questions.feature_judge import LABELS, WEIGHTS, FeatureJudge, LinearModel, ShippedModels, fit
from fluents.questions.features import Columns, features
from fluents.records import Trace
from fluents.scoring.score import Score
from fluents.task_records import CrepeCase
from fluents.text.embedders import StaticEmbedder

STATES: tuple[States, ...] = ("none", "all", "salient")
PENALTY = 30.0
FOLDS, INNER_FOLDS, DRAWINGS = 7, 5, 5
POWERS = tuple(number / 10 for number in range(3, 11))
"""Odds on offer: how often no change comes for each time a label does, to these powers."""


class Labelled(NamedTuple):
    """One procedure: its case, its trace, and the features and labels of all its events."""

    case: CrepeCase
    trace: Trace
    columns: Columns
    labels: NDArray[np.intp]


def main() -> None:
    [path, *more] = sys.argv[1:]
    traces = {trace.id: trace for trace in read_traces(path)}
    for states in STATES:
        data = list(labelled(list(load("dev")), traces, states))
        scores = [cross_validated(data, states, drawing) for drawing in range(DRAWINGS)]
        macro = [score["macro"]["f1"] for score in scores]
        low, high = scores[0].intervals()["macro"]["f1"]
        parts = ", ".join(f"{name} {scores[0][name]['f1']:.1f}" for name in LABELS)
        print(f"{states:8} {macro[0]:.1f} [{low:.1f}, {high:.1f}]; mean of {DRAWINGS}: {np.mean(macro):.1f}; {parts}")
    if "--write" in more:
        without, with_ = (learnt(list(labelled(list(load("dev")), traces, states)), 0) for states in STATES[:2])
        models = ShippedModels(without_states=without, with_states=with_)
        jsonl.write_text(WEIGHTS, models.model_dump_json(indent=1) + "\n")


def labelled(cases: Sequence[CrepeCase], traces: dict[str, Trace], states: States) -> Iterator[Labelled]:
    embedder = StaticEmbedder()
    for case in cases:
        trace = kept_states(traces[case.id], states)
        said = {(one.step, one.event): one.change for one in case.likelihoods if not one.predicted}
        found = [features(trace, event, embedder, with_states=states != "none") for event in case.events]
        columns = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        steps = range(1, len(trace.procedure.steps) + 1)
        labels = [LABELS.index(said.get((step, event), LABELS[0])) for event in case.events for step in steps]
        yield Labelled(case, trace, columns, np.array(labels))


def cross_validated(data: Sequence[Labelled], states: States, drawing: int) -> Score:
    """The score of the development split, every fold judged by what was learnt from the others."""
    answers = []
    for others, fold in folds(data, FOLDS, drawing):
        judge = FeatureJudge(model=learnt(others, drawing))
        for one in fold:
            said = judge.judgements(one.trace, one.case.events, with_states=states != "none")
            answers.append(CrepeCase(procedure=one.case.procedure, likelihoods=tuple(said)))
    return crepe([one.case for one in data], answers, mode="strict")


def folds(data: Sequence[Labelled], count: int, drawing: int) -> Iterator[tuple[list[Labelled], list[Labelled]]]:
    order = np.random.default_rng(drawing).permutation(len(data))
    edges = np.linspace(0, len(data), count + 1).astype(int)
    for start, end in pairwise(edges):
        inside = set(order[start:end].tolist())
        yield (
            [one for place, one in enumerate(data) if place not in inside],
            [one for place, one in enumerate(data) if place in inside],
        )


def learnt(data: Sequence[Labelled], drawing: int) -> LinearModel:
    """Weights from all of the data; odds that do best where folds of it are judged by the others."""
    pairs = [(fitted(others), joined(fold)) for others, fold in folds(data, INNER_FOLDS, drawing + 100)]
    labels = joined(data)[1]
    counts = np.bincount(labels, minlength=len(LABELS))
    best = max(POWERS, key=lambda power: _macro(pairs, (counts[0] / counts) ** power))
    return fitted(data).replace(odds=tuple(((counts[0] / counts) ** best).round(4).tolist()))


def fitted(data: Sequence[Labelled]) -> LinearModel:
    return fit(*joined(data), PENALTY)


def joined(data: Sequence[Labelled]) -> tuple[Columns, NDArray[np.intp]]:
    columns = {name: np.concatenate([one.columns[name] for one in data]) for name in data[0].columns}
    return columns, np.concatenate([one.labels for one in data])


def _macro(pairs: Sequence[tuple[LinearModel, tuple[Columns, NDArray[np.intp]]]], odds: NDArray[np.float64]) -> float:
    said = np.concatenate([(model.probabilities(columns) * odds).argmax(axis=1) for model, (columns, _) in pairs])
    meant = np.concatenate([labels for _, (_, labels) in pairs])
    right = [((said == k) & (meant == k)).sum() / max(1, (said == k).sum() + (meant == k).sum()) for k in range(3)]
    return float(np.mean(right))


if __name__ == "__main__":
    main()
