"""A report on some systems and one gold: everything it says, and its HTML page (no script, nothing loaded)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fluents.errors import InputError
from fluents.metrics.cluster import cluster
from fluents.metrics.error_types import PRINTED, error_types
from fluents.metrics.original import original
from fluents.records import Trace
from fluents.report.plots import Bar, Point, bars, letter, precision_recall
from fluents.report.published_results import Published, published
from fluents.report.score_tables import with_interval
from fluents.report.terminal import counted
from fluents.report.trace_page import asset, policy, template
from fluents.scoring import Mode
from fluents.scoring.bootstrap import FEWEST, Intervals, part_intervals
from fluents.scoring.breakdowns import by_position, by_topic
from fluents.scoring.score import Score, number
from fluents.scoring.worst_steps import StepCase, best_steps, cases, worst_steps
from fluents.text.embedders import STATIC, Embedder

METRICS = ("original", "cluster")
TITLES = {"original": "Original metric (OpenPI)", "cluster": "Cluster metric (OpenPI-C)"}
ROW = "rouge"
"""The row of a score that parts are drawn and steps are ranked by: it tells more than zeros of most steps."""


@dataclass(frozen=True)
class ScoredSystem:
    """A prediction and its scores."""

    name: str
    letter: str
    scores: Mapping[str, Score]
    """By metric; likewise `intervals`, None where there is one procedure only."""
    intervals: Mapping[str, Intervals | None]
    parts: Mapping[str, Mapping[str, Score]]
    """By topic and by position; likewise `part_intervals`, where there are procedures enough."""
    part_intervals: Mapping[str, Mapping[str, Intervals]]
    errors: Score
    worst: Sequence[StepCase]
    best: Sequence[StepCase]

    def warnings(self) -> list[str]:
        return list(dict.fromkeys(warning for score in self.scores.values() for warning in score.warnings))

    def cells(self, metric: str, row: str) -> list[str]:
        """Precision, recall and F1 with their intervals."""
        known = self.intervals[metric]
        between = known[row] if known else {}
        return [with_interval(value, between.get(name)) for name, value in self.scores[metric].rows[row].items()]

    def bar(self, kind: str, name: str) -> Bar | None:
        """A part's F1; None where there is no such part."""
        if name not in self.parts[kind]:
            return None
        between = self.part_intervals[kind].get(name)
        return Bar(self.parts[kind][name][ROW]["f1"], between[ROW]["f1"] if between else None)


@dataclass(frozen=True)
class RankedSystem:
    """A line of the table of all systems that are known on the data."""

    name: str
    numbers: Mapping[str, Mapping[str, float]]
    source: str
    ours: bool = False

    def f1(self, row: str) -> float:
        """Not a number where none is known."""
        return self.numbers.get(row, {}).get("f1", math.nan)

    def cells(self, rows: Iterable[str]) -> list[str]:
        """F1 row by row; – where none is known."""
        return [number(self.f1(row)) for row in rows]


@dataclass(frozen=True)
class ScoreReport:
    """Systems on one gold, and what was published on it."""

    gold: str
    mode: str
    systems: Sequence[ScoredSystem]
    published: Mapping[str, Sequence[Published]] = field(default_factory=dict)
    """By metric."""

    def rows(self, metric: str) -> list[str]:
        return list(self.systems[0].scores[metric].rows)

    def ranking(self, metric: str) -> list[RankedSystem]:
        """The report's systems and the published ones, highest F1 first by ROW; last those without one."""
        ours = [
            RankedSystem(f"{system.letter} {system.name}", system.scores[metric].rows, "this report", ours=True)
            for system in self.systems
        ]
        published = [RankedSystem(one.system, one.numbers, one.source) for one in self.published[metric]]
        return sorted(
            [*ours, *published], key=lambda one: one.f1(ROW) if math.isfinite(one.f1(ROW)) else -1, reverse=True
        )

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

    def parts(self, kind: str) -> dict[str, list[Bar | None]]:
        """Topic or position, with its procedures → every system's F1; nothing where no procedure has a topic."""
        counts = {name: part.n_procedures for system in self.systems for name, part in system.parts[kind].items()}
        step = "step " if kind == "position" else ""
        return {
            f"{step}{name} ({counted(count, 'procedure')})": [system.bar(kind, name) for system in self.systems]
            for name, count in counts.items()
        }

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
    embedder: Embedder | str = STATIC,
    examples: int = 5,
) -> ScoreReport:
    """Score every prediction by the original and the cluster metric, with its parts, errors and extreme steps.

    `gold_name` decides which published results stand beside the scores: those on the dataset's split of that name.
    """
    if not predictions:
        raise InputError("there are no predictions to report on")
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
    embedder: Embedder | str,
    examples: int,
) -> ScoredSystem:
    scores = {"original": original(gold, pred, mode=mode), "cluster": cluster(gold, pred, mode=mode, embedder=embedder)}
    whole = scores["original"]
    topics = {trace.id: trace.procedure.topic for trace in gold}
    parts = {"topic": by_topic(whole, topics) if any(topics.values()) else {}, "position": by_position(whole)}
    return ScoredSystem(
        name,
        called,
        scores,
        {metric: score.intervals() if score.n_procedures > 1 else None for metric, score in scores.items()},
        parts,
        {kind: part_intervals(found) for kind, found in parts.items()},
        error_types(gold, pred, mode=mode),
        cases(worst_steps(whole, examples, ROW), gold, pred),
        cases(best_steps(whole, examples, ROW), gold, pred),
    )


def score_page(report: ScoreReport) -> str:
    """The whole page."""
    css = asset("page.css") + asset("score.css")
    parts = {kind: report.parts(kind) for kind in ("topic", "position")}
    plots = {
        metric: precision_recall(f"pr-{metric}", f"Precision over recall, {metric} metric", list(report.points(metric)))
        for metric in METRICS
    }
    charts = [
        (kind, bars(f"by-{kind}", f"F1 ({ROW}, original metric) by {kind}", groups))
        for kind, groups in parts.items()
        if groups
    ]
    return template("score.html").render(
        title=f"Scores on {report.gold}",
        report=report,
        metrics=METRICS,
        titles=TITLES,
        row=ROW,
        fewest=FEWEST,
        plots=plots,
        charts=charts,
        css=css,
        policy=policy(css),
    )
