"""A trace laid out for reading: one row an entity, one column a step, gold beside prediction where there is gold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from fluents.records import UNKNOWN_STEP, StateChange, Trace
from fluents.text.names import fold

_SMALL = 5_000
"""Up to so many cells, every empty one is written. Beyond, neighbours are merged: the page must stay as long as the
trace, not as long as entities times steps."""

WIDEST_SPAN = 1_000
"""HTML reads no larger colspan."""


@dataclass(frozen=True)
class Entry:
    """One change, on one side."""

    change: StateChange
    is_gold: bool
    matched: bool
    """Whether the other side says the same of this step, in the same words but for their case."""
    place: int
    """Among the changes of its trace, counted from 0."""

    @property
    def gist(self) -> str:
        """What the change ends in."""
        return self.change.after or self.change.attribute


@dataclass(frozen=True)
class Cell:
    """What one side says of an entity at one step; without entries, nothing is said in `span` columns from here on."""

    column: int
    """Counted from 0."""
    entries: tuple[Entry, ...] = ()
    span: int = 1

    @property
    def words(self) -> str:
        """All changes of the cell in full."""
        said = (entry.change for entry in self.entries)
        return "; ".join(f"{one.attribute}: {one.before or '—'} → {one.after or '—'}" for one in said)


@dataclass(frozen=True)
class EntityRow:
    """An entity under its canonical name, with all its changes in the order of the steps."""

    name: str
    wordings: tuple[str, ...]
    """The words of the trace for it, where they are not simply the name."""
    entries: tuple[Entry, ...]
    cells: tuple[Cell, ...]
    salience: float | None
    """Mean over raters, for the whole procedure."""

    @property
    def unmentioned(self) -> bool:
        return all(entry.change.mentioned is False for entry in self.entries)

    def by_step(self) -> Iterator[tuple[int, list[Entry]]]:
        for step, entries in groupby(self.entries, key=lambda entry: entry.change.step):
            yield step, list(entries)


@dataclass(frozen=True)
class Step:
    number: int
    text: str
    predicted: int | None
    """How many changes; None where the step was not answered."""
    gold: int | None


@dataclass(frozen=True)
class Matrix:
    """A predicted trace, its gold if any, and their rows and columns."""

    trace: Trace
    gold: Trace | None
    steps: tuple[Step, ...]
    rows: tuple[EntityRow, ...]

    @property
    def goal(self) -> str:
        return self.trace.procedure.goal or (self.gold.procedure.goal if self.gold else "") or self.trace.id

    @property
    def entries(self) -> list[Entry]:
        return [entry for row in self.rows for entry in row.entries]

    def at(self, step: int, is_gold: bool) -> list[tuple[EntityRow, list[Entry]]]:
        """What one side says of a step, entity by entity in the order of the trace."""
        return self._by_step.get((step, is_gold), [])

    @cached_property
    def _by_step(self) -> dict[tuple[int, bool], list[tuple[EntityRow, list[Entry]]]]:
        found: dict[tuple[int, bool], list[tuple[EntityRow, list[Entry]]]] = {}
        for row in self.rows:
            for (step, is_gold), entries in groupby(row.entries, lambda one: (one.change.step, one.is_gold)):
                found.setdefault((step, is_gold), []).append((row, list(entries)))
        for (_, is_gold), groups in found.items():
            if not is_gold:
                groups.sort(key=lambda group: group[1][0].place)
        return found

    @property
    def explained(self) -> set[str]:
        """The marks that need a legend."""
        changes = [entry.change for entry in self.entries]
        marks = {
            "unmentioned": any(change.mentioned is False for change in changes),
            "confidence": any(change.confidence is not None for change in changes),
            "support": any(change.support is not None for change in changes),
            "salience": any(row.salience is not None for row in self.rows),
            "exact": self.gold is not None,
        }
        return {mark for mark, used in marks.items() if used}

    @property
    def most_salient(self) -> float | None:
        return max((row.salience for row in self.rows if row.salience is not None), default=None)

    @property
    def matched(self) -> int:
        """How many predicted changes stand in gold."""
        return sum(entry.matched and not entry.is_gold for entry in self.entries)

    @property
    def steps_differ(self) -> bool:
        """Whether gold words its steps in another way, so that one column may not mean one thing."""
        if self.gold is None:
            return False
        ours, theirs = self.trace.procedure.steps, self.gold.procedure.steps
        return len(ours) != len(theirs) or any(
            UNKNOWN_STEP not in pair and pair[0] != pair[1] for pair in zip(ours, theirs, strict=True)
        )


def matrix_of(trace: Trace, gold: Trace | None = None) -> Matrix:
    """Lay out a trace. Rows come most salient first, the others in the order of their first change."""
    steps = _steps(trace, gold)
    columns = len(steps) * (1 if gold is None else 2)
    names = _canonical_names(trace, gold)
    groups: dict[str, list[Entry]] = {}
    for entry in _entries(trace, gold):
        groups.setdefault(_row_key(entry.change.entity, names), []).append(entry)
    widest_span = 1 if len(groups) * columns <= _SMALL else WIDEST_SPAN
    salience = _mean_salience(trace, gold, names)
    rows = []
    for key, entries in groups.items():
        name = names.get(key, entries[0].change.entity)
        cells = _cells(entries, columns, gold is not None, widest_span)
        wordings = dict.fromkeys(entry.change.entity for entry in entries if entry.change.entity != name)
        rows.append(EntityRow(name, tuple(wordings), tuple(entries), tuple(cells), salience.get(key)))
    rows.sort(key=lambda row: -math.inf if row.salience is None else row.salience, reverse=True)
    return Matrix(trace, gold, steps, tuple(rows))


def _entries(trace: Trace, gold: Trace | None) -> list[Entry]:
    """The changes of both sides in the order of the steps, prediction before gold."""
    predicted, expected = trace.changes, gold.changes if gold else ()
    said, true = {_words(change) for change in predicted}, {_words(change) for change in expected}
    entries = [Entry(change, False, _words(change) in true, place) for place, change in enumerate(predicted)]
    entries += [Entry(change, True, _words(change) in said, place) for place, change in enumerate(expected)]
    return sorted(entries, key=lambda entry: (entry.change.step, entry.is_gold))


def _words(change: StateChange) -> tuple[int, str]:
    fields = (change.entity, change.attribute, change.before, change.after)
    return change.step, "\0".join(field.casefold() for field in fields)


def _canonical_names(trace: Trace, gold: Trace | None) -> dict[str, str]:
    """From every clustered name, folded, to its cluster's name. The prediction's clusters come first."""
    clusters = trace.clusters + (gold.clusters if gold else ())
    names: dict[str, str] = {}
    for cluster in clusters:
        names.setdefault(fold(cluster.name), cluster.name)
    for cluster in clusters:  # after all the names: a name stands for itself, whoever else mentions it
        for mention in cluster.mentions:
            names.setdefault(fold(mention), names[fold(cluster.name)])
    return names


def _row_key(entity: str, names: dict[str, str]) -> str:
    folded = fold(entity)
    return fold(names.get(folded, folded))


def _mean_salience(trace: Trace, gold: Trace | None, names: dict[str, str]) -> dict[str, float]:
    ratings: dict[str, list[float]] = {}
    for rating in trace.salience + (gold.salience if gold else ()):
        value = finite(rating.value)
        if rating.step is None and value is not None:
            ratings.setdefault(_row_key(rating.entity, names), []).append(value)
    return {key: sum(values) / len(values) for key, values in ratings.items()}


def finite(value: float | None) -> float | None:
    """A number that can be shown and averaged, or None: files may hold infinity, or integers no float reaches."""
    try:
        return float(value) if value is not None and math.isfinite(value) else None
    except OverflowError:
        return None


def _steps(trace: Trace, gold: Trace | None) -> tuple[Step, ...]:
    """The steps of the longer side. Where the prediction has no text for one, gold's is shown."""
    ours, theirs = trace.procedure.steps, gold.procedure.steps if gold else ()
    texts = [
        theirs[i] if i >= len(ours) or (ours[i] == UNKNOWN_STEP and i < len(theirs)) else ours[i]
        for i in range(max(len(ours), len(theirs)))
    ]
    predicted, expected = _changes_a_step(trace), _changes_a_step(gold) if gold else {}
    return tuple(Step(n, text, predicted.get(n), expected.get(n)) for n, text in enumerate(texts, start=1))


def _changes_a_step(trace: Trace) -> dict[int, int]:
    return {step: len(changes) for step, _, changes in trace.by_step()}


def _cells(entries: Iterable[Entry], columns: int, with_gold: bool, widest_span: int) -> Iterator[Cell]:
    """A row's cells from left to right; with gold, each step has a column for either side."""
    filled = 0
    for (step, is_gold), group in groupby(entries, key=lambda entry: (entry.change.step, entry.is_gold)):
        column = 2 * (step - 1) + is_gold if with_gold else step - 1
        yield from _empty(filled, column, widest_span)
        yield Cell(column, tuple(group))
        filled = column + 1
    yield from _empty(filled, columns, widest_span)


def _empty(start: int, stop: int, widest_span: int) -> Iterator[Cell]:
    for column in range(start, stop, widest_span):
        yield Cell(column, span=min(widest_span, stop - column))
