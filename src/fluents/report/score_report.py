"""A report on some systems and one gold: what it says, its HTML page (no script, nothing loaded), and its Markdown."""

from __future__ import annotations

import math
import re
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
from fluents.report.trace_page import asset, policy, short, template, visible
from fluents.scoring import Mode
from fluents.scoring.bootstrap import FEWEST, Intervals, part_intervals
from fluents.scoring.breakdowns import by_position, by_topic
from fluents.scoring.score import Score, number
from fluents.scoring.worst_steps import StepCase, best_steps, cases, worst_steps
from fluents.text.embedders import STATIC, Embedder
from fluents.text.names import counted

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
        raise InputError("no predictions given", fix="give at least one set of predictions")
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


# As Markdown: what the page draws is a table here; every text is escaped and stays on its line.

_SPECIAL = re.compile(r"([\\`*_\[\]<>&|~#!$])")


def score_markdown(report: ScoreReport) -> str:
    """The whole file."""
    return "\n".join(_lines(report)) + "\n"


def escaped(text: object, limit: int = 400) -> str:
    """A text that Markdown shows as it is: no markup, no HTML, no line of its own, no end of a table's cell."""
    shown = short(" ".join(str(visible(str(text))).split()), limit)
    return _SPECIAL.sub(r"\\\1", shown)


def _table(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(map(escaped, columns)) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(map(escaped, row)) + " |"
    yield ""


def _lines(report: ScoreReport) -> Iterator[str]:
    yield f"# Scores on {escaped(report.gold)}\n"
    yield f"Mode {report.mode}. Numbers are in percent; brackets contain 95 % confidence intervals.\n"
    for system in report.systems:
        score = system.scores["original"]
        counts = f"{counted(score.n_procedures, 'procedure')}, {counted(score.n_steps, 'step')}"
        yield f"- **{system.letter}** {escaped(system.name)}: {counts}"
        yield from (f"  - warning: {escaped(warning, 1000)}" for warning in system.warnings())
    yield ""
    for metric in METRICS:
        yield f"## {TITLES[metric]}\n"
        yield from _scores(report, metric)
    for kind in ("topic", "position"):
        if parts := report.parts(kind):
            yield f"## By {kind}\n\nF1 ({ROW}, original metric); no interval for fewer than {FEWEST} procedures\n"
            cells = ([name, *map(_cell, bars)] for name, bars in parts.items())
            yield from _table([kind, *(system.letter for system in report.systems)], cells)
    yield "## Error types\n\nShare of wrong predictions, in percent; a prediction can be wrong in several ways.\n"
    columns = ["wrong in", *(system.letter for system in report.systems), "2020 paper, by hand"]
    yield from _table(columns, ([name, *shares, printed] for name, shares, printed in report.error_rows()))
    yield "## Steps\n"
    for system in report.systems:
        yield f"### {system.letter} {escaped(system.name)}\n"
        yield from _cases("Worst", system.worst)
        yield from _cases("Best", system.best)
    yield "## Signatures\n"
    for system in report.systems:
        yield from (f"- {system.letter}: {escaped(score.signature)}" for score in system.scores.values())


def _cell(bar: Bar | None) -> str:
    return "–" if bar is None else with_interval(bar.value, bar.interval)


def _scores(report: ScoreReport, metric: str) -> Iterator[str]:
    rows = report.rows(metric)
    cells = ([system.letter, row, *system.cells(metric, row)] for system in report.systems for row in rows)
    yield from _table(["system", "match", "precision", "recall", "F1"], cells)
    if not report.published[metric]:
        yield "No published results are known on this data in this mode.\n"
        return
    yield f"F1 compared with every published system on this data, highest {ROW} first:\n"
    yield from _table(
        ["system", *rows, "source"], ([one.name, *one.cells(rows), one.source] for one in report.ranking(metric))
    )


def _cases(heading: str, found: Iterable[StepCase]) -> Iterator[str]:
    yield f"#### {heading}\n"
    for case in found:
        place = case.place
        yield f"**F1 {place.f1:.1f}** {escaped(case.goal, 200)}, step {place.step}: {escaped(case.text)}"
        yield f"({escaped(place.procedure_id, 200)})\n"
        for name, side in (("gold", case.gold), ("predicted", case.predicted)):
            yield f"- {name}: {'' if side else 'nothing'}"
            yield from (f"  - {'✓ ' if said in case.shared else ''}{escaped(said)}" for said in side)
        yield ""
