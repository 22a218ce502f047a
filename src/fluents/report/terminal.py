"""Procedures and traces as tables for the terminal, and the time left in progress bars.

Every text goes through `plain`: it comes from files and models, and may hold markup or terminal control sequences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress import ProgressColumn, Task
from rich.table import Table
from rich.text import Text

from fluents.records import Procedure, StateChange, Trace
from fluents.task_records import CrepeCase, Likelihood
from fluents.text.names import counted

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str, style: str = "") -> Text:
    """A text as it stands: no markup, and no character that could steer the terminal."""
    return Text(_CONTROL.sub("�", text), style=style)


def procedure_view(procedure: Procedure) -> RenderableType:
    """The goal, where it comes from, and the numbered steps."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", style="cyan", no_wrap=True)
    table.add_column()
    for number, step in enumerate(procedure.steps, start=1):
        table.add_row(str(number), plain(step))
    return Group(_heading(procedure), table)


def trace_view(trace: Trace) -> RenderableType:
    """Every step with its changes: entity, attribute, before → after."""
    parts: list[RenderableType] = [_heading(trace.procedure)]
    kept = trace.provenance.decoding.get("salience")
    if kept:
        parts.append(plain(f"only salient entities are shown (salience {kept})", "yellow"))
    nothing = "   no change of a salient entity" if kept else "   no change"
    sure = any(change.confidence is not None for change in trace.changes)
    rows = {step: [_cells(change, sure) for change in changes] for step, _, changes in trace.by_step()}
    widths = [
        min(limit, max((cells[column].cell_len for cells_of in rows.values() for cells in cells_of), default=1))
        for column, limit in enumerate(_WIDEST if sure else _WIDEST[:4])
    ]
    for step, text, _ in trace.by_step():
        parts.append(Text(f"\n{step} ", style="cyan").append_text(plain(text, "italic")))
        parts.append(_StepTable(rows[step], widths) if rows[step] else Text(nothing, style="dim"))
    if trace.rejects:
        parts.append(Text(f"\n{counted(len(trace.rejects), 'answer')} could not be read", style="yellow"))
        parts += [plain(f"  step {r.step}: {r.reason}: {r.text[:200]}", "dim") for r in trace.rejects]
    if sure:
        parts.append(Text("\nlast column: confidence, 0 to 1", style="dim"))
    return Group(*parts)


def answers_view(case: CrepeCase) -> RenderableType:
    """For every question a table: how likely it is after each step, and why."""
    parts: list[RenderableType] = [_heading(case.procedure)]
    for event in case.asked:
        table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
        for name in ("step", "1–5", "", "because"):
            table.add_column(name, overflow="fold", justify="right" if name in ("step", "1–5") else "left")
        for one in case.likelihoods:
            if one.event == event and one.predicted:
                rating = "–" if one.rating is None else f"{one.rating:g}"
                step = str(one.step) if one.step else "before"
                change = "" if not one.step and one.rating is not None else one.change
                table.add_row(step, rating, plain(change, _CHANGE_STYLES.get(change, "dim")), plain(_because(one)))
        parts += [plain(f"\n{event}", "italic"), table]
    return Group(*parts)


_CHANGE_STYLES = {"more likely": "green", "less likely": "red"}


def _because(one: Likelihood) -> str:
    """The reason, and the states that it does not tell itself."""
    reason = (one.reason or "").removesuffix(".")
    states = [f"{c.attribute} of {c.entity}: {c.before} → {c.after}" for c in one.support if c.entity not in reason]
    return "; ".join([*([reason] if reason else []), *states])


_WIDEST = (30, 20, 32, 32, 4)
"""Entity, attribute, before, after, confidence."""


@dataclass(frozen=True)
class _StepTable:
    """One step's changes, with columns as wide as all steps' need, so that they stand under each other."""

    rows: Sequence[Sequence[Text]]
    widths: Sequence[int]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0))
        table.add_column(width=1)
        for width in _fitting(self.widths, options.max_width - 1 - _GAP * (len(self.widths) + 1)):
            table.add_column(width=width, overflow="fold")
        for cells in self.rows:
            table.add_row("", *cells)
        yield table


_GAP = 2
_NARROWEST = 8


def _fitting(widths: Sequence[int], room: int) -> list[int]:
    """Widths that fit: the widest gives way first, but the attribute's last, a single word that would be broken."""
    fitting = list(widths)
    for columns in ((0, 2, 3), (0, 1, 2, 3)):
        while sum(fitting) > room and max(fitting[column] for column in columns) > _NARROWEST:
            fitting[max(columns, key=fitting.__getitem__)] -= 1
    return fitting


def _cells(change: StateChange, sure: bool) -> tuple[Text, ...]:
    """The cells of a change; the last, its confidence, where the trace has any. What is likely wrong is dim."""
    other = change.alternatives
    before, after = " | ".join(other.before) or change.before, " | ".join(other.after) or change.after
    cells: tuple[Text, ...] = (
        plain(change.entity, "italic magenta" if change.mentioned is False else "bold"),
        plain(change.attribute),
        plain(before, "red"),
        plain(f"→ {after}" if after else "", "green"),
    )
    if not sure:
        return cells
    if change.is_unsure:
        cells = tuple(plain(cell.plain, "dim") for cell in cells)
    return *cells, Text("" if change.confidence is None else f"{change.confidence:.2f}", style="dim")


def _heading(procedure: Procedure) -> Text:
    heading = plain(procedure.goal or procedure.id, "bold")
    details = dict.fromkeys((procedure.id if procedure.goal else None, procedure.topic, procedure.source))
    return heading.append_text(plain("   " + " · ".join(filter(None, details)), "dim"))


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", words: int = 1) -> Table:
    """A plain table whose first `words` columns are text, which may fold, and the others numbers."""
    table = Table(title_justify="left", header_style="bold", box=None, padding=(0, 2, 0, 0))
    table.title = plain(title) if title else None
    for index, name in enumerate(columns):
        is_text = index < words
        table.add_column(name, justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold")
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    return table


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


class TimeLeft(ProgressColumn):
    """The time left if the rest takes as long as what is done, from the first step on."""

    def render(self, task: Task) -> Text:
        if not task.completed or not task.total or task.elapsed is None:
            return Text("-:--:-- left", style="progress.remaining")
        left = task.elapsed / task.completed * (task.total - task.completed)
        return Text(f"{timedelta(seconds=round(left))} left", style="progress.remaining")


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
