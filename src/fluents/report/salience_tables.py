"""Salience for people: a table of a trace's entities, those that matter most first."""

from __future__ import annotations

from rich.console import Group, RenderableType

from fluents.records import Trace
from fluents.report.terminal import plain, table_of

MOST_STEPS = 12
"""Columns that fit a terminal; the file has them all."""


def salience_view(trace: Trace, rater: str) -> RenderableType:
    """What one rater said: a row for every entity, a column for the goal and for each step."""
    values = {(one.entity, one.step): one.value for one in trace.salience if one.rater == rater}
    steps = sorted({step for _, step in values if step is not None})[:MOST_STEPS]
    places: list[int | None] = [*([None] if any(step is None for _, step in values) else []), *steps]
    entities = list(dict.fromkeys(entity for entity, _ in values))
    entities.sort(key=lambda entity: [-(values.get((entity, place)) or 0) for place in places])
    rows = [[entity, *(_shown(values.get((entity, place))) for place in places)] for entity in entities]
    heading = ["entity", *("goal" if place is None else f"step {place}" for place in places)]
    title = plain(trace.procedure.goal or trace.id, "bold")
    return Group(title, table_of(heading, rows) if rows else plain("   nothing to rate", "dim"))


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"
