"""Scores as tables for the terminal, and as plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fluents.metrics.error_types import PRINTED
from fluents.report.published_results import Published
from fluents.report.terminal import plain, table_of
from fluents.scoring.bootstrap import FEWEST, Comparison, Interval, Intervals
from fluents.scoring.score import Score, number
from fluents.scoring.worst_steps import StepCase
from fluents.text.names import counted

MAIN = ("f1", "accuracy", "r", "share")
"""The column that tells most, by whichever of these names a score has it."""


def with_interval(value: float, interval: Interval | None, decimals: int = 2) -> str:
    """ "32.38 [30.10, 34.65]"."""
    if interval is None or not all(map(math.isfinite, (value, *interval))):
        return number(value, decimals)
    return f"{number(value, decimals)} [{number(interval.low, decimals)}, {number(interval.high, decimals)}]"


def main_column(score: Score) -> str:
    columns = next(iter(score.figures.values()))
    return next((name for name in MAIN if name in columns), next(iter(columns)))


def score_table(score: Score, intervals: Intervals | None) -> Table:
    """A row for every matcher or scope, a column for every figure, each with its 95 % interval."""
    columns = score.columns
    rows = []
    for row, values in score.rows.items():
        between = intervals[row] if intervals else {}
        cells = (
            with_interval(values[name], between.get(name), score.decimals(name)) if name in values else ""
            for name in columns
        )
        rows.append([row, *cells])
    return table_of(["", *columns], rows)


def notes(score: Score, *, with_intervals: bool) -> Text:
    """The line under a table: how much was scored, and what the brackets mean."""
    counts = [counted(score.n_procedures, "procedure"), *([counted(score.n_steps, "step")] if score.n_steps else [])]
    between = "; in brackets: 95 % confidence intervals from resampled procedures" if with_intervals else ""
    return plain(f"{', '.join(counts)}{between}", "dim")


def published_table(score: Score, known: Sequence[Published], ours: str) -> Table:
    """This score's main figures beside the published ones."""
    column = main_column(score)
    if not any(column in columns for one in known for columns in one.numbers.values()):
        column = next(name for one in known for columns in one.numbers.values() for name in columns)
    places = score.decimals(column)
    rows = [row for row in score.rows if any(column in one.numbers.get(row, {}) for one in known)]
    cells = [[ours, *(number(score.rows[row][column], places) for row in rows), "this score"]]
    for one in known:
        numbers = (one.numbers.get(row, {}).get(column, math.nan) for row in rows)
        cells.append([one.system, *(number(value, places) for value in numbers), one.source])
    table = table_of([f"published, {column}", *rows, "source"], cells)
    table.columns[-1].justify = "left"
    table.columns[-1].no_wrap = False
    return table


def answers_table(runs: Sequence[Mapping[str, Any]], known: Sequence[Published]) -> Table:
    """Files of answers to CREPE's questions, each with its setting and what it took, and the published systems."""
    rows = []
    for run in runs:
        between = Interval(*run["interval"]) if run["interval"] else None
        entities, tokens = run["entities_per_step"], run["tokens_in"] + run["tokens_out"]
        rows.append(
            [
                run["predictions"],
                " · ".join(filter(None, (run["model"], run["states"] and f"states: {run['states']}"))),
                "" if entities is None else f"{entities:.1f}",
                f"{tokens:,}" if tokens else "",
                f"{run['cost']:.4f}" if run["cost"] else "",
                with_interval(run["macro_f1"], between),
            ]
        )
    rows += [[one.system, one.source, "", "", "", number(one.numbers["macro"]["f1"])] for one in known]
    return table_of(["", "", "entities/step", "tokens", "cost", "macro F1"], rows, words=2)


def raters_table(scores: Mapping[str, Score]) -> Table:
    """Everybody's correlations with the reference, the system first."""
    first = next(iter(scores.values()))
    rows = [[rater, *(number(values["r"], 3) for values in score.rows.values())] for rater, score in scores.items()]
    return table_of(["r", *first.rows], rows)


def parts_table(parts: Mapping[str, Score], between: Mapping[str, Intervals], kind: str) -> Table:
    """A breakdown: under every row of the score the parts with its main figure; all figures are in the JSON."""
    first = next(iter(parts.values()))
    column = main_column(first)
    lines = []
    for row in first.rows:
        for name, part in parts.items():
            interval = between[name][row][column] if name in between else None
            figure = with_interval(part.rows[row][column], interval, part.decimals(column))
            lines.append([row, name, f"{part.n_procedures:,}", f"{part.n_steps:,}", figure])
    table = table_of(["", f"by {kind}", "procedures", "steps", column], lines, words=2)
    if len(between) < len(parts):
        table.caption = f"no interval for fewer than {FEWEST} procedures"
    return table


def errors_table(score: Score) -> Table:
    """The types of error among wrong predictions, beside the paper's shares."""
    wrong = int(score.statistics.sums()["wrong"])
    rows = (
        [name, number(values["share"]), f"{PRINTED[name]}" if name in PRINTED else ""]
        for name, values in score.rows.items()
    )
    return table_of([f"wrong in (of {wrong:,} wrong predictions)", "%", "2020 paper, by hand"], rows)


def comparison_table(found: Comparison, names: tuple[str, str]) -> Table:
    """Two systems, their difference with its interval, and the two tests."""
    return table_of(found.HEADING, found.lines(), f"A: {names[0]}\nB: {names[1]}")


def cases_view(found: Iterable[StepCase]) -> RenderableType:
    """Steps with gold and predictions side by side; what both say comes first and is marked."""
    parts: list[RenderableType] = []
    for case in found:
        place = case.place
        parts.append(plain(f"\n{place.procedure_id}||{place.step}   F1 {place.f1:.1f}", "bold"))
        parts.append(plain(f"{case.goal}: {case.text}" if case.goal else case.text, "italic"))
        parts.append(_side_by_side(case))
    return Group(*parts)


def _side_by_side(case: StepCase) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("gold", "predicted"):
        table.add_column(name, ratio=1, overflow="fold")
    sides = [sorted(side, key=lambda said: said not in case.shared) for side in (case.gold, case.predicted)]
    for line in range(max(map(len, sides))):
        cells = []
        for side in sides:
            text = side[line] if line < len(side) else ""
            cells.append(plain(f"= {text}", "green") if text in case.shared else plain(text))
        table.add_row(*cells)
    if not case.predicted:
        table.caption = "nothing was predicted"
    return table


def as_json(score: Score, intervals: Intervals | None = None) -> dict[str, Any]:
    """A score for programs; what is no number is null."""
    values: dict[str, Any] = score.to_dict()
    if intervals is not None:
        values["intervals"] = intervals
    cleaned: dict[str, Any] = finite_only(values)
    return cleaned


def finite_only(value: Any) -> Any:
    """JSON knows no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite_only(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_only(item) for item in value]
    return value
