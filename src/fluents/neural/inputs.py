"""What the papers' systems read and write, as text: questions about a step, and templated sentences as answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fluents.errors import UnknownNameError
from fluents.records import Procedure, Reject, StateChange
from fluents.text.names import fold, one_line
from fluents.text.template import NO_CHANGE_SENTENCE, parse_all, split_answers

Style: TypeAlias = Literal["openpi", "openpi-c"]
STYLES: tuple[Style, ...] = ("openpi", "openpi-c")
"""How a question is put: OpenPI (2020) gives the steps alone, OpenPI-C the goal too and asks what happens."""

CARD = "fluents.json"
"""The file that makes a folder a checkpoint of ours."""

SEPARATOR = "[SEP]"
"""Between the past steps and the current one, in the style of 2020."""


@dataclass(frozen=True)
class NeuralSystem:
    """What a system adds to the baseline; everything can be joined with everything but memory with told states."""

    states: bool = False
    """The past changes are told in the input."""
    memory: bool = False
    """The past changes are kept in an entity memory."""
    entity: bool = False
    """Each entity is asked about on its own."""


SystemName: TypeAlias = Literal["baseline", "concat-states", "emem", "econd", "emem+econd"]

SYSTEMS: dict[str, NeuralSystem] = {
    "baseline": NeuralSystem(),
    "concat-states": NeuralSystem(states=True),
    "emem": NeuralSystem(memory=True),
    "econd": NeuralSystem(entity=True),
    "emem+econd": NeuralSystem(memory=True, entity=True),
}


def system_named(name: str) -> NeuralSystem:
    """The system of that name."""
    if name not in SYSTEMS:
        raise UnknownNameError(f"unknown `system` {name!r}", fix=f"choose one of: {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


@dataclass(frozen=True)
class Decoding:
    """How answers are drawn: greedily, by beam search, or by sampling where top-k or top-p is given."""

    beams: int = 4
    top_k: int | None = None
    top_p: float | None = None
    length_penalty: float = 1.0
    """Over 1, beam search prefers longer answers: more changes."""

    def options(self) -> dict[str, Any]:
        """As the library's `generate` takes them."""
        if self.top_k is not None or self.top_p is not None:
            return {"do_sample": True, "top_k": self.top_k or 0, "top_p": 1.0 if self.top_p is None else self.top_p}
        if self.beams == 1:
            return {"do_sample": False}
        return {"do_sample": False, "num_beams": self.beams, "length_penalty": self.length_penalty}


@dataclass(frozen=True)
class StepQuestion:
    """What is asked about a step, in parts, so that the oldest of the past can go when it is too long."""

    head: str
    past: tuple[str, ...]
    """A text for each earlier step."""
    tail: str

    def text(self, past: int | None = None) -> str:
        """The whole, or with the latest `past` steps alone."""
        kept = self.past if past is None else self.past[len(self.past) - past :]
        return " ".join(part for part in (self.head, *kept, self.tail) if part)


def question(
    procedure: Procedure,
    step: int,
    style: Style = "openpi-c",
    *,
    states: Sequence[Sequence[StateChange]] | None = None,
    entity: str | None = None,
) -> StepQuestion:
    """What a model reads about a step; with `states`, the changes of every earlier step; about one entity, or all."""
    past = list(procedure.steps[: step - 1])
    if states is not None:
        past = [f"{text} {answer(changes)}." for text, changes in zip(past, states, strict=True)]
    current = procedure.steps[step - 1]
    if style == "openpi":
        asked = f"{SEPARATOR} {current}" if entity is None else f"{SEPARATOR} {current} {SEPARATOR} {entity}"
        return StepQuestion("", tuple(past), asked)
    asked = "Now, what happens?" if entity is None else f"Now, what happens to {entity}?"
    return StepQuestion(
        f"{procedure.goal.strip().rstrip('.')}." if procedure.goal.strip() else "", tuple(past), f"{current} {asked}"
    )


def sentences(changes: Iterable[StateChange]) -> list[str]:
    """The changes as templated sentences, each once; the no-change sentence for none."""
    return list(dict.fromkeys(one_line(change.templated) for change in changes)) or [NO_CHANGE_SENTENCE]


def answer(changes: Iterable[StateChange]) -> str:
    """What a model should write."""
    return ", ".join(sentences(changes))


def pieces(lines: Sequence[str]) -> list[str]:
    """The answer cut at its sentences, comma and space with them: joined, they are the answer again.

    Each is tokenised on its own, so that every sentence has its own tokens, whatever the tokenizer.
    """
    last = len(lines) - 1
    return [f"{' ' if place else ''}{line}{',' if place < last else ''}" for place, line in enumerate(lines)]


def read_answer(text: str, step: int) -> tuple[list[StateChange], list[Reject]]:
    """The changes of a generated answer, each once, and what could not be read. Values keep their commas."""
    changes, rejects = parse_all(split_answers(text), step)
    return merged([changes]), rejects


def merged(answers: Iterable[Iterable[StateChange]]) -> list[StateChange]:
    """Several answers as one: what they say alike, but for case and spaces, is said once."""
    found: dict[tuple[str, ...], StateChange] = {}
    for changes in answers:
        for change in changes:
            fields = (change.entity, change.attribute, change.before, change.after)
            found.setdefault(tuple(map(fold, fields)), change)
    return list(found.values())


Key: TypeAlias = tuple[str, str]


def key(change: StateChange) -> Key:
    """The (entity, attribute) a memory slot belongs to: case and spaces do not count."""
    return fold(change.entity), fold(change.attribute)


def entities(changes: Iterable[StateChange]) -> list[str]:
    """The entities of some changes, each once, as first written."""
    found: dict[str, str] = {}
    for change in changes:
        found.setdefault(fold(change.entity), change.entity)
    return list(found.values())


def about(changes: Iterable[StateChange], entity: str) -> list[StateChange]:
    """The changes of one entity."""
    return [change for change in changes if fold(change.entity) == fold(entity)]
