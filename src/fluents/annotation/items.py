"""Items to decide on, decisions on them, and which decisions count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field, StringConstraints

from fluents.annotation.design import StageKind
from fluents.records import Extra, Record, StateChange, Text, Trace

FormAnswer: TypeAlias = Mapping[str, Any]
"""What somebody answered, as JSON; its fields depend on the kind of the item."""

if TYPE_CHECKING:
    JsonObject: TypeAlias = dict[str, Any]  # what stands in it depends on the kind of the item
else:
    JsonObject = Extra

DecisionId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{8,64}$")]


class Item(Record):
    """One thing to decide, with all that its form shows."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{20}$")]
    """Made from the stage and what is asked, so that the same stage gives the same items."""
    stage: Annotated[int, Field(ge=1)]
    kind: StageKind
    procedure: Text
    """The id of the procedure."""
    payload: JsonObject
    judges: Annotated[int, Field(ge=1)]
    """How many people decide on it."""
    secret: JsonObject = Field(default={}, validate_default=True)
    """What annotators must not see, such as which system said what."""
    apart: str | None = None
    """Nobody decides on two items with the same value."""


class Decision(Record):
    """What one person said about one item, and when. Decisions are never changed; a later one takes another's place."""

    id: DecisionId
    """Made by the client, so that a decision that is sent twice is kept once."""
    item: str
    author: Text
    answer: JsonObject
    """Empty where an earlier decision is withdrawn and nothing takes its place."""
    time: float
    seconds: Annotated[float, Field(ge=0)] | None = None
    """How long the author looked at the item."""
    undoes: str | None = None
    """The id of an earlier decision of the same author that no longer counts."""
    adjudicates: bool = False
    """Outweighs all other decisions on the item."""
    checks: bool = False
    """An expert's check: compared with the majority, and without effect on the outcome."""
    guideline: Annotated[int, Field(ge=1)] = 1
    """The version of the guideline that the author had."""


@dataclass(frozen=True)
class ItemAnswers:
    """An item, and the answers to it that count."""

    item: Item
    by_author: Mapping[str, FormAnswer]
    """In the order of the authors' ids, so that it does not matter who was first."""
    ruling: FormAnswer | None = None
    """An adjudicator's answer, which outweighs the others."""
    check: FormAnswer | None = None
    """An expert's answer, which the outcome is compared with."""

    @property
    def answers(self) -> list[FormAnswer]:
        """The answers that decide: the ruling alone, if there is one."""
        return list(self.by_author.values()) if self.ruling is None else [self.ruling]

    @property
    def majority(self) -> int:
        """How many answers are more than half of those that the item asks for."""
        return 1 if self.ruling is not None else max(self.item.judges, len(self.by_author)) // 2 + 1

    @property
    def is_decided(self) -> bool:
        return self.ruling is not None or len(self.by_author) >= self.item.judges

    def votes(self, field: str, value: Any) -> int:
        """How many answers have this value."""
        return sum(answer.get(field) == value for answer in self.answers)


def standing(items: Iterable[Item], decisions: Iterable[Decision]) -> list[ItemAnswers]:
    """Each item with the answers that count. Decisions of one author must be in the order in which they were made."""
    by_item: dict[str, list[Decision]] = {}
    for decision in latest(decisions):
        by_item.setdefault(decision.item, []).append(decision)
    return [_answers(item, by_item.get(item.id, ())) for item in items]


def latest(decisions: Iterable[Decision]) -> list[Decision]:
    """The decisions that count: of each author on each item the last that was not undone.

    Adjudications and checks stand beside the author's own answer, not in its place.
    """
    undone: set[tuple[str, str]] = set()
    found: dict[tuple[str, str, bool, bool], Decision] = {}
    for decision in reversed(list(decisions)):
        if (decision.author, decision.id) in undone:
            continue
        if decision.undoes is not None:
            undone.add((decision.author, decision.undoes))
        if decision.answer:
            key = (decision.item, decision.author, decision.adjudicates, decision.checks)
            found.setdefault(key, decision)
    return list(found.values())


def _answers(item: Item, decisions: Sequence[Decision]) -> ItemAnswers:
    plain = sorted((one for one in decisions if not one.adjudicates and not one.checks), key=lambda one: one.author)
    return ItemAnswers(
        item,
        {one.author: one.answer for one in plain},
        _newest([one for one in decisions if one.adjudicates]),
        _newest([one for one in decisions if one.checks and not one.adjudicates]),
    )


def _newest(decisions: Sequence[Decision]) -> FormAnswer | None:
    """Of several people's; at the same time, by their ids."""
    return max(decisions, key=lambda one: (one.time, one.author, one.id)).answer if decisions else None


def is_decided(item: Item, decisions: Iterable[Decision]) -> bool:
    """Whether as many people as it asks for have decided on the item, or an adjudicator has."""
    [found] = standing([item], (one for one in decisions if one.item == item.id))
    return found.is_decided


def item_id(stage: int, *key: Any) -> str:
    """An id made from the stage and what tells the item from others of the stage."""
    text = json.dumps([stage, *key], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def procedure_payload(trace: Trace, *, images: bool = False) -> dict[str, Any]:
    """The procedure as forms show it."""
    shown: dict[str, Any] = {"goal": trace.procedure.goal, "steps": list(trace.procedure.steps)}
    if images and trace.procedure.images:
        shown["images"] = list(trace.procedure.images)
    return shown


def change_payload(change: StateChange) -> dict[str, Any]:
    """A change as forms show it."""
    return {
        "step": change.step,
        "entity": change.entity,
        "attribute": change.attribute,
        "before": change.before,
        "after": change.after,
    }


def change_payloads(trace: Trace) -> list[dict[str, Any]]:
    """All changes of a trace, with their positions."""
    return [change_payload(change) | {"position": position} for position, change in enumerate(trace.changes)]
