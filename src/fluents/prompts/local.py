"""What the embedded model reads and writes. Training and tracking share it: the model knows no other form.

Goal: Make tea
1. Boil the water.
Now: Pour it over the leaves.
Changes (?):
water | location | in kettle | in pot
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from fluents.errors import InputError
from fluents.records import Procedure, Reject, StateChange
from fluents.text.names import one_line

VERSION = "local-1"

Style = Literal["plain", "clean", "complete", "sorted", "clean sorted", "sorted complete"]
"""How an adapter was taught to answer. Clean: as OpenPI-C is annotated. Complete: as our own corpus is. Sorted: one
pass without repetition."""

STYLE_WORDS: dict[Style, str] = {
    "plain": "",
    "clean": "Clean ",
    "complete": "Complete ",
    "sorted": "Sorted ",
    "clean sorted": "Clean Sorted ",
    "sorted complete": "Sorted Complete ",
}
"""What asks for a style in the prompt."""

UNKNOWN_COUNT = "?"
"""Stands for the number of changes where the model is to choose it."""

MAX_FIELD = 80
"""Characters of an entity, attribute or state: past this a generation has run away."""

MAX_GOAL_BYTES = 200
MAX_STEP_BYTES = 1200
MAX_PAST_BYTES = 3000
MAX_PROMPT_BYTES = MAX_GOAL_BYTES + MAX_PAST_BYTES + MAX_STEP_BYTES + 100
"""What of a long procedure still fits the context: the newest past steps, the beginning of a long step. In bytes of
UTF-8, because a token is never less than one, and many scripts have a token for every byte."""


def prompt(procedure: Procedure, step: int, *, style: Style = "plain", count: int | None = None) -> str:
    """The prompt for one step, asking for one of the styles the adapter was taught."""
    past = _newest([one_line(text) for text in procedure.steps[: step - 1]])
    lines = [f"Goal: {_beginning(one_line(procedure.goal), MAX_GOAL_BYTES)}", *past]
    lines.append(f"Now: {_beginning(one_line(procedure.steps[step - 1]), MAX_STEP_BYTES)}")
    lines.append(f"{STYLE_WORDS[style]}Changes ({UNKNOWN_COUNT if count is None else count}):")
    return "\n".join(lines) + "\n"


def choose_style(taught: Collection[str], style: str | None = None, *, one_pass: bool = False) -> Style:
    """The style to ask an adapter in: `style` if it was taught that one, else the one that serves readers best."""
    sorted_ones: tuple[Style, ...] = ("clean sorted", "sorted", "sorted complete")
    others: tuple[Style, ...] = ("clean", "plain", "complete")
    order = (*sorted_ones, *others) if one_pass else (*others, *sorted_ones)
    if style is not None and style not in taught:
        raise InputError(
            f"the adapter was not trained with `style` {style!r}", fix=f"choose one of: {', '.join(taught)}"
        )
    for known in order:
        if known == style or (style is None and known in taught):
            return known
    raise InputError(
        f"this version of fluents knows none of the styles that the adapter was trained with: {', '.join(taught)}",
        fix="upgrade fluents",
    )


def _newest(past: Sequence[str]) -> list[str]:
    """The numbered past steps, the oldest left out where all are too long."""
    kept: list[str] = []
    room = MAX_PAST_BYTES
    for number in range(len(past), 0, -1):
        line = f"{number}. {_beginning(past[number - 1], MAX_STEP_BYTES)}"
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _beginning(text: str, most: int) -> str:
    """As many of the first characters as so many bytes hold."""
    return text.encode()[:most].decode(errors="ignore").rstrip()


def target(changes: Iterable[Sequence[str]]) -> str:
    """The lines the model is to write for (entity, attribute, before, after) of each change."""
    return "".join(" | ".join(one_line(field.replace("|", "/")) for field in change) + "\n" for change in changes)


def read(text: str, step: int) -> tuple[list[StateChange], list[Reject]]:
    """The changes among the lines of a generation; a repeated line or a change to the same state is none.

    A last line without its end was cut off, however whole it looks, and is left out.
    """
    found: dict[tuple[str, ...], StateChange] = {}
    rejects: list[Reject] = []
    whole, _, _ = text.encode(errors="replace").decode().rpartition("\n")  # half a surrogate pair is no character
    for position, line in enumerate(line for line in whole.split("\n") if line.strip()):
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 4 or not all(fields):
            rejects.append(
                Reject(step=step, text=line, reason="expected entity | attribute | before | after", position=position)
            )
            continue
        entity, attribute, before, after = fields
        if before.lower() != after.lower():
            change = StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)
            found.setdefault(tuple(field.lower() for field in fields), change)
    return list(found.values()), rejects


def grammar(most: int) -> str:
    """The answers `read` can read, in GBNF: at most so many lines of four fields; none means that nothing changes.

    A field begins and ends with a character other than a blank, so that what is read back is what was written.
    """
    return "\n".join(
        [
            f"root ::= line{{0,{most}}}",
            'line ::= field " | " field " | " field " | " field "\\n"',
            rf"field ::= visible ( inner{{0,{MAX_FIELD - 2}}} visible )?",
            r"visible ::= [^|\n\r\t ]",
            r"inner ::= [^|\n\r\t]",
        ]
    )
