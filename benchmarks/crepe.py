"""How the offline method of `fluents ask` is learnt from CREPE's development split, and how well it does.

    fluents track crepe:dev -o dev.jsonl                        # the states; any tracker will do
    fluents track fluents:judged --limit 192 -o judged.jsonl    # and those of our own events, in the first 192
    python benchmarks/crepe.py dev.jsonl judged.jsonl           # the table of docs/questions.md
    python benchmarks/crepe.py dev.jsonl judged.jsonl --write   # writes the shipped weights as well

CREPE has no training split. So every procedure is judged by weights learnt from the other folds, and from our own
events. The odds of rare labels are chosen in those folds alone, in a cross-validation of their own; the penalty is
fixed. The folds are drawn several times, and the interval is that of the first drawing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluents import jsonl
from fluents.data.corpus import judged_procedures
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

EMBEDDER = StaticEmbedder()
STATES: tuple[States, ...] = ("none", "all", "salient")
PENALTY = 30.0
DEV_WEIGHT = 3
"""A procedure of CREPE counts for as many of ours: its events are those that the metric asks about."""
FOLDS, INNER_FOLDS, DRAWINGS = 7, 5, 5
POWERS = tuple(number / 10 for number in range(3, 11))
"""Odds on offer: how often no change comes for each time a label does, to these powers."""


class Labelled(NamedTuple):
    """One procedure: its case (None for our own events), its trace, and the features and labels of all its events."""

    case: CrepeCase | None
    trace: Trace
    columns: Columns
    labels: NDArray[np.intp]


def main() -> None:
    [dev, judged, *more] = sys.argv[1:]
    traces = {trace.id: trace for path in (dev, judged) for trace in read_traces(path)}
    for states in STATES:
        data, ours = list(labelled(list(load("dev")), traces, states)), list(own_events(traces, states))
        scores = [cross_validated(data, ours, states, drawing) for drawing in range(DRAWINGS)]
        macro = [score["macro"]["f1"] for score in scores]
        low, high = scores[0].intervals()["macro"]["f1"]
        parts = ", ".join(f"{name} {scores[0][name]['f1']:.1f}" for name in LABELS)
        print(f"{states:8} {macro[0]:.1f} [{low:.1f}, {high:.1f}]; mean of {DRAWINGS}: {np.mean(macro):.1f}; {parts}")
    if "--write" in more:
        without, with_ = (
            learnt(list(labelled(list(load("dev")), traces, states)), list(own_events(traces, states)), 0)
            for states in STATES[:2]
        )
        models = ShippedModels(without_states=without, with_states=with_)
        jsonl.write_text(WEIGHTS, models.model_dump_json(indent=1) + "\n")


def labelled(cases: Sequence[CrepeCase], traces: dict[str, Trace], states: States) -> Iterator[Labelled]:
    """CREPE's procedures."""
    for case in cases:
        trace = kept_states(traces[case.id], states)
        said = {(one.step, one.event): one.change for one in case.likelihoods if not one.predicted}
        steps = range(1, len(trace.procedure.steps) + 1)
        labels = [LABELS.index(said.get((step, event), LABELS[0])) for event in case.events for step in steps]
        yield Labelled(case, trace, columns_of(trace, case.events, states), np.array(labels))


def own_events(traces: dict[str, Trace], states: States) -> Iterator[Labelled]:
    """The procedures of fluents:judged for which we wrote events: the first 192."""
    for one in judged_procedures():
        if not one.events:
            continue
        trace = kept_states(traces[one.trace.id], states)
        labels = [LABELS.index(label) for event in one.events for label in event.labels]
        yield Labelled(None, trace, columns_of(trace, [event.text for event in one.events], states), np.array(labels))


def columns_of(trace: Trace, events: Sequence[str], states: States) -> Columns:
    found = [features(trace, event, EMBEDDER, with_states=states != "none") for event in events]
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def cross_validated(data: Sequence[Labelled], ours: Sequence[Labelled], states: States, drawing: int) -> Score:
    """The score of the development split, every fold judged by what was learnt from the others."""
    cases, answers = [], []
    for others, fold in folds(data, FOLDS, drawing):
        judge = FeatureJudge(model=learnt(others, ours, drawing))
        for case, trace in ((one.case, one.trace) for one in fold if one.case):
            said = judge.judgements(trace, case.events, with_states=states != "none")
            cases.append(case)
            answers.append(CrepeCase(procedure=case.procedure, likelihoods=tuple(said)))
    return crepe(cases, answers, mode="strict")


def folds(data: Sequence[Labelled], count: int, drawing: int) -> Iterator[tuple[list[Labelled], list[Labelled]]]:
    order = np.random.default_rng(drawing).permutation(len(data))
    edges = np.linspace(0, len(data), count + 1).astype(int)
    for start, end in pairwise(edges):
        inside = set(order[start:end].tolist())
        yield (
            [one for place, one in enumerate(data) if place not in inside],
            [one for place, one in enumerate(data) if place in inside],
        )


def learnt(data: Sequence[Labelled], ours: Sequence[Labelled], drawing: int) -> LinearModel:
    """Weights from all of the data and our own; odds that do best where folds of the data are judged by the others."""
    pairs = [(fitted(others, ours), joined(fold)) for others, fold in folds(data, INNER_FOLDS, drawing + 100)]
    labels = joined(data)[1]
    counts = np.bincount(labels, minlength=len(LABELS))
    best = max(POWERS, key=lambda power: _macro(pairs, (counts[0] / counts) ** power))
    return fitted(data, ours).replace(odds=tuple(((counts[0] / counts) ** best).round(4).tolist()))


def fitted(data: Sequence[Labelled], ours: Sequence[Labelled]) -> LinearModel:
    return fit(*joined([*data] * DEV_WEIGHT + [*ours]), PENALTY)


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
