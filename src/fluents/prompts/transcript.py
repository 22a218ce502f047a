"""What the embedded model reads and writes: one transcript of a procedure that only grows.

    Goal: Make tea
    Step 1: Boil the water.
    water | temperature | cold | boiling
    <|im_end|>Step 2: Pour it over the leaves.

After each step the model writes its changes and the end token; the next step follows. What was read or written is never
rewritten, so the engine's cache holds all but the new step, and the model sees what it said before. Training and
tracking share this form: the model knows no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fluents.records import Procedure, Reject, StateChange
from fluents.text.names import one_line

VERSION = "transcript-1"

END = "<|im_end|>"
"""Ends every answer. All known bases have this token."""

MAX_GOAL_BYTES = 200
MAX_STEP_BYTES = 1200
MAX_BYTES = 6000
"""Of a goal, a step and a whole transcript, in bytes of UTF-8: a token is never less than a byte. The longest of our
corpus has 4,200. A longer text loses its end."""
KEPT_BYTES = 3000
"""A transcript that would grow longer than MAX_BYTES loses its oldest steps, with their changes, until it has so many
bytes at most. It loses many at once because the engine must then read it again. The goal and the numbers of the steps
stay."""

_TAG = re.compile(r"<(?=[|/\w])")
"""How a special token such as <|im_end|> or <file_sep> begins."""


class Transcript:
    """The text of one procedure so far, step by step."""

    def __init__(self, procedure: Procedure) -> None:
        self._steps = [f"Step {number}: {_plain(text, MAX_STEP_BYTES)}\n" for number, text in _numbered(procedure)]
        # The model was never taught a procedure without a goal.
        self._head = f"Goal: {_plain(procedure.goal or procedure.steps[0], MAX_GOAL_BYTES)}\n" if self._steps else ""
        self._answers: list[str] = []
        self._first = 0
        """How many of the oldest steps were dropped."""

    @property
    def prompt(self) -> str:
        """All the model reads before it answers the next step."""
        text = self._text()
        if len(text.encode()) > MAX_BYTES:
            while self._first < len(self._answers) and len(text.encode()) > KEPT_BYTES:
                self._first += 1
                text = self._text()
        return text

    def answer(self, changes: Iterable[StateChange]) -> None:
        """Enter the changes of the next step."""
        fields = ((change.entity, change.attribute, change.before, change.after) for change in changes)
        self._answers.append(write_answer(fields))

    @property
    def dropped(self) -> int:
        """How many of the oldest steps the prompt no longer holds."""
        return self._first

    def _text(self) -> str:
        step = len(self._answers)
        past = (f"{self._steps[i]}{self._answers[i]}{END}" for i in range(self._first, step))
        return "".join((self._head, *past, self._steps[step]))


def _numbered(procedure: Procedure) -> Iterator[tuple[int, str]]:
    return enumerate(procedure.steps, start=1)


def _plain(text: str, most: int) -> str:
    """A text on one line, at most so long, that the engine cannot take for a special token."""
    return _TAG.sub("< ", one_line(text)).encode(errors="replace")[:most].decode(errors="ignore").rstrip()


MAX_FIELD_BYTES = 200


def write_answer(changes: Iterable[Sequence[str]]) -> str:
    """The lines of (entity, attribute, before, after) of each change, without the end token."""
    return "".join(
        " | ".join(_plain(field.replace("|", "/"), MAX_FIELD_BYTES) for field in change) + "\n" for change in changes
    )


class AnswerLine(NamedTuple):
    """A line of an answer that is a change, and its place among all lines."""

    number: int
    change: StateChange


def read_answer(text: str, step: int, *, ended: bool = True) -> tuple[list[AnswerLine], list[Reject]]:
    """The changes of an answer: four fields, a real change, each attribute of an entity once. The rest is rejected.

    If the model was cut off before it `ended` its answer, a last line without its line break is left out.
    """
    found: list[AnswerLine] = []
    rejects: list[Reject] = []
    seen: set[tuple[str, str]] = set()
    lines = text.encode(errors="replace").decode().split("\n")  # half a surrogate pair is no character
    for number, line in enumerate(lines if ended else lines[:-1]):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("|")]
        if reason := _fault(fields, seen):
            rejects.append(Reject(step=step, text=line, reason=reason))
            continue
        entity, attribute, before, after = fields
        seen.add((entity.lower(), attribute.lower()))
        found.append(
            AnswerLine(number, StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after))
        )
    return found, rejects


def _fault(fields: list[str], seen: set[tuple[str, str]]) -> str | None:
    """Why a line is no change, if it is none."""
    if len(fields) != 4 or not all(fields):
        return "expected entity | attribute | before | after"
    entity, attribute, before, after = (field.lower() for field in fields)
    if before == after:
        return "before and after are the same"
    return "this attribute already has a change in this step" if (entity, attribute) in seen else None
