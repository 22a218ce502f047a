"""What a language model's answers say. A reader returns plain values, or says why an answer cannot be read.

An answer is read if it has the form asked for, with or without the odd bad item: such an item becomes a `Reject`. Only
an answer of which nothing can be used is unreadable and asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from fluents.llm.answers import THOUGHT_ENDS, UnreadableAnswer, json_in, parsed_json
from fluents.records import Reject, StateChange
from fluents.text.names import counted, one_line, plain_name
from fluents.text.template import NoChange, parse, split_answers

MAX_FIELD = 300
"""Characters of a name or state: past this an answer has run away."""
MAX_ITEMS = 40
"""Pairs or changes of one step: each may cost another question."""
MAX_REJECTED = 1000
"""Characters of a bad item that are kept."""


T = TypeVar("T")


class ReadAnswer(NamedTuple, Generic[T]):
    """The good items of an answer, and the bad ones."""

    said: tuple[T, ...]
    rejects: tuple[Reject, ...] = ()


Changes: TypeAlias = ReadAnswer[StateChange]
"""Changes of a step, all with the step number they were read for."""


def read_pairs(text: str) -> ReadAnswer[tuple[str, str]]:
    """(entity, attribute) of {"entities": [{"entity", "attributes"}]}, or of {entity: [attributes]} as models write."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    rejects: list[Reject] = []
    items = _entity_items(json_in(text))
    for item in items:
        try:
            entity, attributes = _field(item, "entity"), _attributes(item)
        except UnreadableAnswer as error:
            rejects.append(_bad(item, error.reason))
            continue
        if not attributes:
            rejects.append(Reject(text=f"{entity} | ", reason="this entity has no attribute"))
        for attribute in attributes:
            found.setdefault((plain_name(entity), plain_name(attribute)), (entity, attribute))
    if items and not found and not any(reject.text.endswith(" | ") for reject in rejects):
        raise UnreadableAnswer(f"no item can be read: {rejects[0].reason}")
    return ReadAnswer(_first(tuple(found.values()), rejects), tuple(rejects))


def _entity_items(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("entities"), (list, dict)):
        value = value["entities"]
    if isinstance(value, dict):
        if not all(isinstance(attributes, list) for attributes in value.values()):
            raise UnreadableAnswer('the answer contains no list "entities"')
        return [{"entity": entity, "attributes": attributes} for entity, attributes in value.items()]
    if isinstance(value, list):
        return value
    raise UnreadableAnswer('the answer contains no list "entities"')


def _attributes(item: Mapping[str, Any]) -> list[str]:
    value = item.get("attributes", item.get("attribute"))
    listed = value if isinstance(value, list) else [value]
    return [_text(attribute, "attribute") for attribute in listed]


def read_states(text: str) -> tuple[str, str]:
    """Of {"before", "after"}."""
    value = json_in(text)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return _field(value, "before"), _field(value, "after")


def read_changes_of(text: str) -> ReadAnswer[tuple[str, str, str]]:
    """(attribute, before, after) of {"changes": [{"attribute", "before", "after"}]}, or of such a list alone."""
    value = json_in(text)
    items = value.get("changes") if isinstance(value, dict) else value
    if not isinstance(items, list):
        raise UnreadableAnswer('the answer contains no list "changes"')
    found: list[tuple[str, str, str]] = []
    rejects: list[Reject] = []
    for item in items:
        try:
            found.append((_field(item, "attribute"), _field(item, "before"), _field(item, "after")))
        except UnreadableAnswer as error:
            rejects.append(_bad(item, error.reason))
    if items and not found:
        raise UnreadableAnswer(f"no item can be read: {rejects[0].reason}")
    return ReadAnswer(_first(tuple(found), rejects), tuple(rejects[:MAX_ITEMS]))


def read_verdict(text: str) -> bool:
    """Of {"changes": true} or false; the bare word does as well."""
    word = _spoken(text).strip().strip(".!\"'`").casefold()
    if word in _VERDICTS:
        return _VERDICTS[word]
    value = json_in(text)
    said = value.get("changes") if isinstance(value, dict) else None
    if not isinstance(said, bool):
        raise UnreadableAnswer('"changes" must be true or false')
    return said


_VERDICTS = {"true": True, "yes": True, "false": False, "no": False}


def read_sentences(text: str) -> Changes:
    """Templated sentences, a line each, or the one that says that nothing changes; read as if of step 1."""
    lines = split_answers(_spoken(text))
    changes: dict[tuple[str, ...], StateChange] = {}
    rejects: list[Reject] = []
    nothing = False
    for line in lines[:MAX_ITEMS]:
        parsed = parse(line, 1)
        if isinstance(parsed, StateChange) and all(len(field) <= MAX_FIELD for field in _fields(parsed)):
            changes.setdefault(tuple(map(plain_name, _fields(parsed))), parsed)
        elif isinstance(parsed, NoChange):
            nothing = True
        else:
            reason = parsed.reason if isinstance(parsed, Reject) else f"a field is longer than {MAX_FIELD} characters"
            place = len(changes) + len(rejects)
            rejects.append(Reject(step=1, text=line[:MAX_REJECTED], reason=reason, position=place))
    if not changes and not nothing:
        raise UnreadableAnswer(rejects[0].reason if rejects else "the answer is empty")
    if len(lines) > MAX_ITEMS:
        rejects.append(_too_many(len(lines)))
    return ReadAnswer(tuple(changes.values()), tuple(rejects))


@dataclass(frozen=True)
class WholeReader:
    """Reads the answer for a whole procedure, by step number: order does not matter, and no step can shift another.

    It is {"1": [changes], …}, or a list of {"step", "changes"} as a model may write it anyway.
    """

    steps: int

    def all_steps(self, text: str) -> dict[int, Changes]:
        """Every step of the procedure, or the answer is unreadable."""
        found = self._read(json_in(text))
        if missing := [number for number in range(1, self.steps + 1) if number not in found]:
            more = f", and {counted(len(missing) - 1, 'other step')}" if len(missing) > 1 else ""
            raise UnreadableAnswer(f"step {missing[0]} is missing{more}")
        return found

    def those_there(self, text: str) -> dict[int, Changes]:
        """The steps that can be read, at least one; of an answer that broke off, those before the last."""
        try:
            return self._read(json_in(text))
        except UnreadableAnswer:
            return self._read(_before_the_break(text))

    def _read(self, value: Any) -> dict[int, Changes]:
        """By step number. What is said of steps that do not exist stands among the rejects of step 0."""
        found: dict[int, Changes] = {}
        foreign: list[Reject] = []
        for item in _step_items(value):
            number = item.get("step") if isinstance(item, dict) else None
            number = int(number) if isinstance(number, str) and number.isdecimal() and len(number) < 10 else number
            if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= self.steps:
                foreign.append(_bad(item, f"unknown step: the procedure has steps 1 to {self.steps}"))
            elif number in found:
                foreign.append(_bad(item, f"step {number} appears twice: only the first is used"))
            elif isinstance(item.get("changes"), list):
                found[number] = _changes(item["changes"], number)
            else:
                foreign.append(_bad(item, 'this step has no list "changes"'))
        if not found:
            raise UnreadableAnswer(foreign[0].reason if foreign else "the answer contains no steps")
        if foreign:
            found[0] = ReadAnswer((), tuple(foreign[:MAX_ITEMS]))
        return found


def _step_items(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("steps"), (list, dict)):
        value = value["steps"]
    if isinstance(value, dict):
        return [{"step": number, "changes": changes} for number, changes in value.items()]
    if isinstance(value, list):
        return value
    raise UnreadableAnswer("the answer contains no steps")


def _before_the_break(text: str) -> Any:
    """The steps that an answer which breaks off had begun, without the last one, of which there may be more."""
    spoken = _spoken(text)
    trouble = UnreadableAnswer("the answer contains no JSON")
    for start in sorted(place for place in map(spoken.find, "{[") if place >= 0):  # the first may be prose, as in [1]
        try:
            steps = _step_items(parsed_json(spoken[start:], partial=True))[:-1]
        except UnreadableAnswer as error:
            trouble = error
            continue
        if any(isinstance(step, dict) for step in steps):
            return steps
    raise trouble


def _changes(items: Iterable[Any], step: int) -> Changes:
    found: dict[tuple[str, ...], StateChange] = {}
    rejects: list[Reject] = []
    for item in items:
        try:
            fields = {name: _field(item, name) for name in ("entity", "attribute", "before", "after")}
        except UnreadableAnswer as error:
            rejects.append(_bad(item, error.reason).replace(step=step))
            continue
        if plain_name(fields["before"]) != plain_name(fields["after"]):
            found.setdefault(tuple(map(plain_name, fields.values())), StateChange(step=step, **fields))
    return ReadAnswer(_first(tuple(found.values()), rejects), tuple(rejects[:MAX_ITEMS]))


def _first(items: tuple[Any, ...], rejects: list[Reject]) -> tuple[Any, ...]:
    if len(items) > MAX_ITEMS:
        rejects.append(_too_many(len(items)))
    return items[:MAX_ITEMS]


def _too_many(count: int) -> Reject:
    return Reject(text=f"{count} items", reason=f"too many items: only the first {MAX_ITEMS} are used")


def _spoken(text: str) -> str:
    """An answer without what the model thought aloud before it, and without halves of surrogate pairs."""
    return text.encode(errors="replace").decode().rpartition(THOUGHT_ENDS)[2]


def _fields(change: StateChange) -> tuple[str, str, str, str]:
    return change.entity, change.attribute, change.before, change.after


def _field(item: Any, name: str) -> str:
    if not isinstance(item, dict):
        raise UnreadableAnswer(f"an item is not an object with {name!r}")
    return _text(item.get(name), name)


def _text(value: Any, name: str) -> str:
    """A name or state. A number will do; nothing at all will not."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise UnreadableAnswer(f"{name!r} is missing or has no text")
    if len(value) > MAX_FIELD:
        raise UnreadableAnswer(f"{name!r} is longer than {MAX_FIELD} characters")
    return one_line(value.encode(errors="replace").decode())


def _bad(item: Any, reason: str) -> Reject:
    return Reject(text=str(item)[:MAX_REJECTED].encode(errors="replace").decode(), reason=reason)
