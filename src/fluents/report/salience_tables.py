"""Salience for people: what matters most in a trace, and how well raters agree."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table

from fluents.records import Trace
from fluents.report.score_tables import number
from fluents.report.terminal import plain, table_of
from fluents.scoring.score import Score

MOST_STEPS = 12
"""Columns that fit a terminal; the file has them all."""


def salience_view(trace: Trace, rater: str) -> RenderableType:
    """What one rater said: a row for every entity, a column for the goal and for each step."""
    values = {(one.entity, one.step): one.value for one in trace.salience if one.rater == rater}
    steps = sorted({step for _, step in values if step is not None})[:MOST_STEPS]
    places: list[int | None] = [*([None] if any(step is None for _, step in values) else []), *steps]
    entities = list(dict.fromkeys(entity for entity, _ in values))
    entities.sort(key=lambda entity: [-(values.get((entity, place)) or 0) for place in places])
    digits = 0 if all(value is None or float(value).is_integer() for value in values.values()) else 1
    rows = [[entity, *(_shown(values.get((entity, place)), digits) for place in places)] for entity in entities]
    heading = ["entity", *("goal" if place is None else f"step {place}" for place in places)]
    title = plain(trace.procedure.goal or trace.id, "bold")
    return Group(title, table_of(heading, rows) if rows else plain("   nothing to rate", "dim"))


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def raters_table(scores: Mapping[str, Score]) -> Table:
    """Everybody's correlations with the reference, the system first."""
    first = next(iter(scores.values()))
    rows = [[rater, *(number(values["r"], 3) for values in score.rows.values())] for rater, score in scores.items()]
    return table_of(["r", *first.rows], rows)
