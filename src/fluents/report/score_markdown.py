"""A score report as Markdown. What the page draws is a table here; every text is escaped and stays on its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fluents.report.plots import Bar
from fluents.report.score_report import METRICS, ROW, TITLES, ScoredSystem, ScoreReport
from fluents.report.score_tables import with_interval
from fluents.report.terminal import counted
from fluents.report.trace_page import short, visible
from fluents.scoring.bootstrap import FEWEST
from fluents.scoring.worst_steps import StepCase

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
    yield f"Mode {report.mode}. Numbers are in percent; brackets hold 95 % confidence intervals.\n"
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
        yield from _signatures(system)


def _cell(bar: Bar | None) -> str:
    return "–" if bar is None else with_interval(bar.value, bar.interval)


def _scores(report: ScoreReport, metric: str) -> Iterator[str]:
    rows = report.rows(metric)
    cells = ([system.letter, row, *system.cells(metric, row)] for system in report.systems for row in rows)
    yield from _table(["system", "match", "precision", "recall", "F1"], cells)
    if not report.published[metric]:
        yield "No published results are known on this data in this mode.\n"
        return
    yield f"F1 beside every published system on this data, highest {ROW} first:\n"
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


def _signatures(system: ScoredSystem) -> Iterator[str]:
    for score in system.scores.values():
        yield f"- {system.letter}: {escaped(score.signature)}"
