"""Changes as a table: CSV, TSV or JSON objects with the columns id, step, entity, attribute, before and after.

`goal`, `text` (of the step), `confidence`, `support` and `mentioned` are read too; other columns are ignored with a
warning. A step without changes has no row, or a row without entity and attribute. `Trace.rows()` can be read too.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fluents.data.openpi import MAX_STEP, goal_of
from fluents.errors import FluentsWarning, InputError
from fluents.jsonl import decoded, json_type, wrong_shape_is_input_error
from fluents.records import UNKNOWN_STEP, Procedure, Provenance, Reject, StateChange, Trace

EXAMPLE = "id,step,entity,attribute,before,after\n    tea,1,water,temperature,cold,hot"

T = TypeVar("T")

_NAMES = {
    **{name: name for name in ("id", "step", "entity", "attribute", "before", "after")},
    **{name: name for name in ("goal", "text", "confidence", "support", "mentioned")},
    **dict.fromkeys(("procedure", "procedure_id"), "id"),
    "attr": "attribute",
}
"""What a column may be called → what it holds."""
_WRITTEN = tuple(dict.fromkeys(("id", "goal", "step", "text", *_NAMES.values())))
_OF_CHANGES = {*_WRITTEN} - {"id", "goal", "step", "text"}
_REQUIRED = ("id", "step", "entity", "attribute")
_DELIMITERS = "\t,;"
_NOTHING = ("", "nan", "none", "null")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def is_header(line: bytes) -> bool:
    """Whether a file that begins with this line is a table of changes."""
    names = {_name(cell) for cell in _cells(line.decode("utf-8", errors="replace"))}
    return {"entity", "attribute"} <= names


def is_row(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a row of such a table."""
    return {"step", "entity"} <= {_name(key) for key in value}


def csv_rows(lines: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """("file:line", row) for each row of a CSV or TSV file with a header."""
    where, first = next(lines)
    header = _cells(decoded(first, where))
    place = [where]

    def text() -> Iterator[str]:
        for place[0], line in lines:
            yield decoded(line, place[0])

    try:
        for cells in csv.reader(text(), delimiter=_delimiter(decoded(first, where))):
            if len(cells) < len(header) or any(cell.strip() for cell in cells[len(header) :]):
                fix = "write a cell for every column, and put cells that contain the delimiter in quotation marks"
                raise InputError(
                    f"this row has {len(cells)} cells, but the header has {len(header)}", where=place[0], fix=fix
                )
            yield place[0], dict(zip(header, map(from_cell, cells), strict=False))
    except csv.Error:
        raise InputError(
            "this row cannot be read as CSV",
            where=place[0],
            fix="check that each quotation mark in this row is closed, and that no cell is extremely long",
        ) from None


def csv_text(traces: Iterable[Trace]) -> str:
    """The changes of traces as CSV with a header; a step without changes has a row with its text alone.

    A spreadsheet runs none of it: see `as_cell`.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, _WRITTEN, restval="", lineterminator="\n")
    writer.writeheader()
    for trace in traces:
        for step, words, changes in trace.by_step():
            row = {"id": trace.id, "goal": trace.procedure.goal, "step": step, "text": words}
            rows = [row | change.model_dump(include=_OF_CHANGES) for change in changes] or [row]
            writer.writerows({name: as_cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""A spreadsheet runs cells that begin so (the last is its own mark for text)."""
_QUANTITY = re.compile(r"[+-][\d.,]+[\w\s°%]*")
"""What begins like a formula and is none: -18 °C."""


def as_cell(value: T) -> T | str:
    """A value for a cell: words that a spreadsheet would run get its mark for text, whoever wrote them."""
    if isinstance(value, str) and value.startswith(_FORMULA) and not _QUANTITY.fullmatch(value):
        return f"'{value}"
    return value


def from_cell(text: str) -> str:
    """What `as_cell` was given. Spreadsheets drop the mark when they save, so it may be gone."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=_delimiter(line)), [])
    except csv.Error:
        return []


def _name(column: str) -> str:
    return _NAMES.get(column.strip().lower(), "")


@dataclass
class _Table:
    """The rows of one procedure."""

    goal: str = ""
    texts: dict[int, str] = field(default_factory=dict)
    changes: list[StateChange] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    last: int = 0

    def add(self, row: Mapping[str, str]) -> None:
        step = _step(row["step"])
        self.last = max(self.last, step)
        self.goal = self.goal or row.get("goal", "")
        if row.get("text") and row["text"] != UNKNOWN_STEP:
            self.texts.setdefault(step, row["text"])
        entity, attribute = row["entity"], row["attribute"]
        if entity and attribute:
            self.changes.append(
                StateChange(
                    step=step,
                    entity=entity,
                    attribute=attribute,
                    before=row.get("before", ""),
                    after=row.get("after", ""),
                    confidence=_number(row, "confidence"),
                    support=_number(row, "support"),
                    mentioned=_TRUTH.get(row.get("mentioned", "").lower()),
                )
            )
        elif entity or attribute:
            reason = "no attribute" if entity else "no entity"
            self.rejects.append(Reject(step=step, text=" | ".join(row.values()), reason=reason))

    def trace(self, procedure_id: str, dataset: str) -> Trace:
        steps = tuple(self.texts.get(step, UNKNOWN_STEP) for step in range(1, self.last + 1))
        return Trace(
            procedure=Procedure(id=procedure_id, goal=self.goal or goal_of(procedure_id), steps=steps),
            changes=tuple(sorted(self.changes, key=lambda change: change.step)),
            rejects=tuple(self.rejects),
            provenance=Provenance(dataset=dataset),
        )


def traces(rows: Iterable[tuple[str, Mapping[str, Any]]], dataset: str) -> Iterator[Trace]:
    """One trace for each id, in the order in which ids first come."""
    tables: dict[str, _Table] = {}
    ignored: dict[str, None] = {}
    for where, row in rows:
        ignored |= {name: None for name in row if not _name(name)}
        cells = {_name(name): _text(value, name, where) for name, value in row.items() if _name(name)}
        missing = [name for name in _REQUIRED if name not in cells]
        if missing or not cells["id"]:
            what = f"the column {missing[0]!r} is missing" if missing else "the column 'id' is empty"
            raise InputError(what, where=where, fix=f"give every row these columns, here as CSV:\n    {EXAMPLE}")
        with wrong_shape_is_input_error("this row cannot be read as a change", where):
            tables.setdefault(cells["id"], _Table()).add(cells)
    if ignored:
        names = ", ".join(name[:40] for name in list(ignored)[:5]) + (", …" if len(ignored) > 5 else "")
        warnings.warn(f"{dataset}: ignored unknown columns: {names}", FluentsWarning, stacklevel=2)
    for procedure_id, table in tables.items():
        yield table.trace(procedure_id, dataset)


def _text(value: Any, name: str, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise InputError(f"{name!r} must be a string or a number, found {json_type(value)}", where=where)


def _number(row: Mapping[str, str], name: str) -> float | None:
    text = row.get(name, "")
    try:
        return None if text.lower() in _NOTHING else float(text)
    except ValueError:
        what = f"the {name} must be a number, not {text[:40]!r}"
        raise InputError(what, fix="write a number, or leave this cell empty") from None


def _step(text: str) -> int:
    digits = text.removesuffix(".0")
    if not digits.isdecimal() or len(digits) > len(str(MAX_STEP)) or not 1 <= int(digits) <= MAX_STEP:
        raise InputError(f"the step must be a whole number from 1 to {MAX_STEP}, not {text[:40]!r}")
    return int(digits)
