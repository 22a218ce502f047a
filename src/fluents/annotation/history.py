"""The whole history of a project as a file of JSON lines.

The first line names the project, the last counts the lines. In between: guidelines, members, what the project was made
from, and each stage with its items, then blind passes, then all decisions in order. Members are named by their
pseudonyms; neither tokens nor invitations are in the file. A history that is read and written again is the same, byte
for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints, TypeAdapter

from fluents.annotation.design import ProjectDesign, Role
from fluents.annotation.items import Decision, Item
from fluents.errors import InputError
from fluents.jsonl import parse_json, wrong_shape_is_input_error
from fluents.records import Extra, Record, Text, Trace

VERSION: Literal[1] = 1
"""Of the format."""
NOT_A_HISTORY = "this file is not the complete history of an annotation project"
EXPORT_AGAIN = "export the history again with `fluents annotate export --format history`"

Seconds: TypeAlias = Annotated[float, Field(ge=0, lt=2**40)]
Count: TypeAlias = Annotated[int, Field(ge=0, lt=2**31)]
SourceRole: TypeAlias = Literal["stage", "draft", "system"]


class HistoryHead(Record):
    """The first line: which project it is."""

    kind: Literal["project"] = "project"
    version: Literal[1]
    created: Seconds
    design: ProjectDesign


class HistoryGuideline(Record):
    """A version of the guideline."""

    kind: Literal["guideline"] = "guideline"
    version: Annotated[int, Field(ge=1, lt=2**31)]
    text: str
    created: Seconds


class HistoryMember(Record):
    """Somebody who decided, or may."""

    kind: Literal["member"] = "member"
    number: Annotated[int, Field(ge=1, lt=2**31)]
    name: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,1000}$")]
    role: Role
    joined: Seconds
    consented: Seconds | None = None


class HistoryTrace(Record):
    """A trace that the project works with."""

    kind: Literal["trace"] = "trace"
    role: SourceRole
    name: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{0,100}$")]
    trace: Trace


class HistoryStage(Record):
    """A stage that was opened; its items follow."""

    kind: Literal["stage"] = "stage"
    number: Annotated[int, Field(ge=1, lt=2**31)]
    opened: Seconds
    closed: Seconds | None = None


class HistoryItem(Record):
    """An item of the stage before it."""

    kind: Literal["item"] = "item"
    item: Item


class HistoryBlindPass(Record):
    """What somebody wrote before they saw a draft; its author is a pseudonym."""

    kind: Literal["blind"] = "blind"
    item: str
    author: Text
    changes: tuple[Extra, ...]
    time: Seconds


class HistoryDecision(Record):
    """A decision; its author is a pseudonym."""

    kind: Literal["decision"] = "decision"
    decision: Decision


class HistoryEnd(Record):
    """The last line."""

    kind: Literal["end"] = "end"
    lines: Count


HistoryLine: TypeAlias = Annotated[
    HistoryHead
    | HistoryGuideline
    | HistoryMember
    | HistoryTrace
    | HistoryStage
    | HistoryItem
    | HistoryBlindPass
    | HistoryDecision
    | HistoryEnd,
    Field(discriminator="kind"),
]
_LINE: TypeAdapter[HistoryLine] = TypeAdapter(HistoryLine)


def history_line(record: HistoryLine) -> bytes:
    """A line of the file, with its line break."""
    values = record.model_dump(mode="json", exclude_defaults=True)
    return json.dumps({"kind": record.kind, **values}).encode() + b"\n"


def history_records(lines: Iterable[tuple[str, bytes]]) -> Iterator[HistoryLine]:
    """The lines of a file, as `jsonl.read_lines` gives them, without the last; an InputError if it is incomplete."""
    count = 0
    for where, line in lines:
        value = parse_json(line, where)
        with wrong_shape_is_input_error(NOT_A_HISTORY, where):
            if isinstance(value, dict) and "fluents" in value:  # records in our format, which no history holds
                raise InputError(NOT_A_HISTORY, where=where, fix=EXPORT_AGAIN)
            record = _LINE.validate_python(value)
        if isinstance(record, HistoryEnd):
            if record.lines != count:
                raise InputError(NOT_A_HISTORY, where=where, fix=EXPORT_AGAIN)
            count = -1
        elif count < 0:
            raise InputError(NOT_A_HISTORY, where=where, fix=EXPORT_AGAIN)
        else:
            count += 1
            yield record
    if count >= 0:
        raise InputError(NOT_A_HISTORY, fix=EXPORT_AGAIN)
