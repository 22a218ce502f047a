"""Everything a report says of some systems on one gold, before it is written as HTML or Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fluents.errors import InputError
from fluents.metrics.base import Score
from fluents.metrics.bootstrap import intervals
from fluents.metrics.breakdowns import by_position, by_topic
from fluents.metrics.clustered import cluster
from fluents.metrics.embedders import Embedder
from fluents.metrics.errors import PRINTED, error_types
from fluents.metrics.original import original
from fluents.metrics.step_cases import StepCase, best_steps, cases, worst_steps
from fluents.metrics.steps import Mode
from fluents.records import Trace
from fluents.report.published import Published, published
from fluents.report.score_tables import Intervals, number, with_interval
from fluents.report.svg import Point, letter

METRICS = ("original", "cluster")
ROW = "rouge"
"""The row of a score that parts are drawn and steps are ranked by: it tells more than zeros of most steps."""


@dataclass(frozen=True)
class System:
    """A prediction and its scores."""

    name: str
    letter: str
    scores: Mapping[str, Score]
    """By metric; likewise `intervals`, None where there is one procedure only."""
    intervals: Mapping[str, Intervals | None]
    topics: Mapping[str, Score]
    positions: Mapping[str, Score]
    errors: Score
    worst: Sequence[StepCase]
    best: Sequence[StepCase]

    def warnings(self) -> list[str]:
        return list(dict.fromkeys(warning for score in self.scores.values() for warning in score.warnings))

    def cells(self, metric: str, row: str) -> list[str]:
        """Precision, recall and F1 with their intervals."""
        between = (self.intervals[metric] or {}).get(row, {})
        return [with_interval(value, between.get(name)) for name, value in self.scores[metric].rows[row].items()]


@dataclass(frozen=True)
class ScoreReport:
    """Systems on one gold, and what was published on it."""

    gold: str
    mode: str
    systems: Sequence[System]
    published: Mapping[str, Sequence[Published]] = field(default_factory=dict)
    """By metric."""

    def rows(self, metric: str) -> list[str]:
        return list(self.systems[0].scores[metric].rows)

    def published_cells(self, metric: str, one: Published) -> list[str]:
        """F1 row by row; – where none is known."""
        return [number(one.numbers.get(row, {}).get("f1", float("nan"))) for row in self.rows(metric)]

    def points(self, metric: str) -> Iterator[Point]:
        """Precision and recall of every system's rows, and of what was published with both."""
        for series, system in enumerate(self.systems):
            for row, values in system.scores[metric].rows.items():
                if not row.endswith("micro"):
                    yield Point(f"{system.letter} {row}", values["recall"], values["precision"], series)
        for one in self.published[metric]:
            for row, numbers in one.numbers.items():
                if {"precision", "recall"} <= numbers.keys():
                    yield Point(f"{one.system} {row}", numbers["recall"], numbers["precision"], None)

    def parts(self, kind: str) -> dict[str, list[float | None]]:
        """Topic or position → every system's F1; nothing where all procedures are without a topic."""
        found = [
            system.topics if kind == "topic" else {f"step {name}": part for name, part in system.positions.items()}
            for system in self.systems
        ]
        names = dict.fromkeys(name for parts in found for name in parts)
        return {name: [parts[name][ROW]["f1"] if name in parts else None for parts in found] for name in names}

    def error_rows(self) -> list[tuple[str, list[str], str]]:
        """Type, every system's share, and the 2020 paper's."""
        names = list(self.systems[0].errors.rows)
        return [
            (name, [number(system.errors[name]["share"], 1) for system in self.systems], str(PRINTED.get(name, "")))
            for name in names
        ]


def score_report(
    gold_name: str,
    gold: Sequence[Trace],
    predictions: Mapping[str, Sequence[Trace]],
    *,
    mode: Mode = "compat",
    embedder: Embedder | None = None,
    examples: int = 5,
) -> ScoreReport:
    """Score every prediction by the original and the cluster metric, with its parts, errors and extreme steps.

    `gold_name` decides which published results stand beside the scores: those on the dataset's split of that name.
    """
    if not predictions:
        raise InputError("there is no prediction to report on")
    systems = [
        _system(name, letter(place), gold, pred, mode, embedder, examples)
        for place, (name, pred) in enumerate(predictions.items())
    ]
    return ScoreReport(gold_name, mode, systems, {name: published(name, gold_name, mode=mode) for name in METRICS})


def _system(
    name: str,
    called: str,
    gold: Sequence[Trace],
    pred: Sequence[Trace],
    mode: Mode,
    embedder: Embedder | None,
    examples: int,
) -> System:
    scores = {
        "original": original(gold, pred, mode=mode),
        "cluster": cluster(gold, pred, mode=mode, embedder=embedder),
    }
    whole = scores["original"]
    topics = {trace.id: trace.procedure.topic for trace in gold}
    return System(
        name,
        called,
        scores,
        {metric: intervals(score) if score.n_procedures > 1 else None for metric, score in scores.items()},
        by_topic(whole, topics) if any(topics.values()) else {},
        by_position(whole),
        error_types(gold, pred, mode=mode),
        cases(worst_steps(whole, examples, ROW), gold, pred),
        cases(best_steps(whole, examples, ROW), gold, pred),
    )
