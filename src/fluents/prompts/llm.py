"""The questions about a procedure: OpenPI2.0's formulations, each a versioned prompt in `texts/`: `schemata-1.txt`.

A prompt that was used is never edited: a better wording gets the next number, so a trace's provenance stays true.
Text from outside, such as a step or a name that a model gave, stands between quotation marks on one line: it can forge
neither another step's line nor the end of its own. What a question is about stands last, so that many questions share
their beginning and an endpoint can cache it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fluents.errors import InputError
from fluents.records import Procedure, StateChange
from fluents.text.names import counted, fold, one_line
from fluents.text.template import NO_CHANGE_SENTENCE

TEXTS = Path(__file__).parent / "texts"

SCHEMATA, STATES, CHANGES_OF = "schemata-1", "states-1", "changes-of-1"
COMPLETE, WHOLE, VERIFY = "complete-1", "whole-1", "verify-1"

NEXT_QUESTION = ("\nGoal:", "\nThe step now,")
"""How another question begins: generation stops here, or a model that completes text would go on to ask one."""

MAX_NAME_BYTES = 400
MAX_STEP_BYTES = 4_000
MAX_PAST_BYTES = 16_000
MAX_WHOLE_BYTES = 48_000
MAX_SCHEMA_STEPS = 50
MAX_KNOWN = 60
"""Limits on a long procedure: the newest past steps and states are shown, and the beginning of a long step."""


@cache
def _environment() -> Environment:
    # A value that is not given is an error, never an empty place in a question. Nothing is escaped: this is no HTML.
    return Environment(
        loader=FileSystemLoader(TEXTS),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(name: str, **values: Any) -> str:
    """The prompt of this name, such as "schemata-1", filled in. Values are never read as templates themselves."""
    return _environment().get_template(f"{name}.txt").render(**values)


@dataclass(frozen=True)
class PromptExample:
    """A question with its correct answer, shown before the real one."""

    scene: str
    answer: str
    entity: str = ""
    attribute: str = ""


def quoted(text: str, most: int = MAX_STEP_BYTES) -> str:
    """A text between quotation marks on one line, its own marks escaped, cut to so many bytes."""
    line = one_line(text).encode(errors="replace")[:most].decode(errors="ignore").rstrip()
    return json.dumps(line, ensure_ascii=False)


def system() -> str:
    """What every question begins with."""
    return render("system-1")


def scene(procedure: Procedure, step: int, *, past: bool = True, known: Iterable[StateChange] = ()) -> str:
    """Goal, past steps, what is known by now, and the step in question."""
    return render(
        "scene-1",
        goal=quoted_name(procedure.goal),
        past=_newest(procedure.steps[: step - 1]) if past else [],
        known=[tuple(map(quoted_name, (c.entity, c.attribute, c.after))) for c in tuple(known)[-MAX_KNOWN:]],
        number=step,
        text=quoted(procedure.steps[step - 1]),
    )


def opening_scene(procedure: Procedure) -> str:
    """The goal, before anything is done."""
    return f"Goal: {quoted_name(procedure.goal)}\nNothing has been done yet: the step now is none."


def whole_scene(procedure: Procedure) -> str:
    """Goal and all steps; of very many very long ones the beginnings."""
    each = min(MAX_STEP_BYTES, max(80, MAX_WHOLE_BYTES // max(1, len(procedure.steps))))
    steps = [(number, quoted(text, each)) for number, text in enumerate(procedure.steps, start=1)]
    return render("procedure-1", goal=quoted_name(procedure.goal), steps=steps)


def about_step(prompt: str, scene: str, examples: Sequence[PromptExample] = (), **names: str) -> str:
    """A question about a step; `names` are the entity and the attribute, where the prompt is about them."""
    return render(prompt, scene=scene, examples=examples, **{kind: quoted_name(name) for kind, name in names.items()})


def whole(procedure: Procedure, examples: Sequence[PromptExample] = ()) -> str:
    return render(WHOLE, scene=whole_scene(procedure), count=len(procedure.steps), examples=examples)


def quoted_name(text: str) -> str:
    """An entity, an attribute or a state between quotation marks."""
    return quoted(text, MAX_NAME_BYTES)


def _newest(past: Sequence[str]) -> list[tuple[int, str]]:
    """The past steps with their numbers, the oldest left out where all are too long."""
    kept: list[tuple[int, str]] = []
    room = MAX_PAST_BYTES
    for number in range(len(past), 0, -1):
        text = quoted(past[number - 1])
        room -= len(text.encode())
        if room < 0:
            break
        kept.append((number, text))
    return kept[::-1]


# The right answers of examples, in the form each prompt asks for


def schemata_answer(changes: Iterable[StateChange]) -> str:
    found: dict[str, list[str]] = {}
    for change in changes:
        attributes = found.setdefault(change.entity, [])
        if change.attribute not in attributes:
            attributes.append(change.attribute)
    return _json({"entities": [{"entity": entity, "attributes": found[entity]} for entity in found]})


def states_answer(change: StateChange) -> str:
    return _json({"before": change.before, "after": change.after})


def changes_of_answer(changes: Iterable[StateChange], entity: str) -> str:
    mine = [change for change in changes if change.entity == entity]
    return _json({"changes": [{"attribute": c.attribute, "before": c.before, "after": c.after} for c in mine]})


def complete_answer(changes: Iterable[StateChange]) -> str:
    return "\n".join(one_line(change.templated) for change in changes) or NO_CHANGE_SENTENCE


def whole_answer(procedure: Procedure, changes: Sequence[StateChange]) -> str:
    found: dict[str, list[dict[str, str]]] = {str(step): [] for step in range(1, len(procedure.steps) + 1)}
    for c in changes:
        found[str(c.step)].append({"entity": c.entity, "attribute": c.attribute, "before": c.before, "after": c.after})
    return _json(found)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# JSON schemata of the answers: closed objects with every key required, as the strictest endpoints want them

JSON_TEXT = {"type": "string"}


def json_object(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def json_list(item: object) -> dict[str, object]:
    return {"type": "array", "items": item}


_CHANGE = json_object(entity=JSON_TEXT, attribute=JSON_TEXT, before=JSON_TEXT, after=JSON_TEXT)
_SCHEMAS = {
    SCHEMATA: json_object(entities=json_list(json_object(entity=JSON_TEXT, attributes=json_list(JSON_TEXT)))),
    STATES: json_object(before=JSON_TEXT, after=JSON_TEXT),
    CHANGES_OF: json_object(changes=json_list(json_object(attribute=JSON_TEXT, before=JSON_TEXT, after=JSON_TEXT))),
    VERIFY: json_object(changes={"type": "boolean"}),
}


def schema(prompt: str, steps: int = 0) -> dict[str, object] | None:
    """The JSON schema of the answers to a prompt; of `whole` with a key for each step, so that none can be left out.
    None for sentences, and for more steps than endpoints take keys."""
    if prompt == WHOLE and steps <= MAX_SCHEMA_STEPS:
        return json_object(**{str(step): json_list(_CHANGE) for step in range(1, steps + 1)})
    return _SCHEMAS.get(prompt)


# Which procedures may be shown as examples: never the one that the question is about

T = TypeVar("T")


def of_others(drawn: Iterable[tuple[Procedure, T]], procedure: Procedure, count: int, source: str) -> list[T]:
    """The first `count` of other procedures than this; an InputError if there are fewer."""
    others = [one for shown, one in drawn if not is_same(shown, procedure)][:count]
    if len(others) < count:
        raise InputError(
            f"`shots` is {count}, but {'only ' * bool(others)}{counted(len(others), 'procedure')} in `examples` can be "
            f"shown in the prompt for {procedure.id!r:.80}",
            where=source or None,
            fix="lower `shots`, or set `examples` to a file or dataset with more annotated procedures",
        )
    return others


def is_same(one: Procedure, other: Procedure) -> bool:
    """One text has several ids in the datasets that were made from one another: goal or steps give it away."""
    if one.id == other.id or list(map(fold, one.steps)) == list(map(fold, other.steps)):
        return True
    return bool(one.goal.strip()) and fold(one.goal) == fold(other.goal)
