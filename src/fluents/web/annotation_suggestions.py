"""What is offered while somebody writes: names in use, other names for the same thing, what nobody mentioned.

Those who write on their own must not see the words of others. They are offered their own, those of the text, and the
attributes of the design; whoever judges or corrects what was written is offered all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import select
from sqlalchemy.orm import Session

from fluents.annotation.forms import is_blind_first
from fluents.annotation.grid import RecallPrompt, recall_prompts, same_as
from fluents.annotation.items import Item
from fluents.annotation.writing import change_of
from fluents.errors import InputError
from fluents.text.names import fold
from fluents.web.annotation_members import Member
from fluents.web.annotation_places import Places
from fluents.web.annotation_tables import DecisionRow, SourceRow
from fluents.web.archive import trace_of
from fluents.web.store import Store, storable

SuggestedKind: TypeAlias = Literal["entity", "attribute", "value"]

OWN_DECISIONS = 200
"""How many of a member's latest decisions are looked through."""
MOST = 8
"""Suggestions at once."""
LEAST_LETTERS = 3
"""Of a name that is compared with others."""
_FIELDS: Mapping[SuggestedKind, tuple[str, ...]] = {
    "entity": ("entity",),
    "attribute": ("attribute",),
    "value": ("before", "after"),
}


class Suggestion(NamedTuple):
    """A text to take, or a name that may mean the same as what was typed."""

    text: str
    score: float
    same_as: str | None = None


class Suggestions:
    """Suggestions for the members of all projects in a store."""

    def __init__(self, store: Store, places: Places) -> None:
        self._store, self._places = store, places

    def suggest(
        self, member: Member, item_id: str, kind: SuggestedKind, typed: str, unsent: Iterable[str] = ()
    ) -> list[Suggestion]:
        """What may be meant by the beginning of a name or value. `unsent` are words that stand in the member's form."""
        item = self._places.show(member, item_id).item
        with self._store.reading() as session:
            own = list(_words(_own_changes(session, member), kind))
        used = dict.fromkeys([*unsent, *own, *_words(_shown_changes(item), kind)])
        wanted = fold(typed)
        offered = item.payload.get("offered", ()) if kind == "attribute" else ()
        text = _words_of_text(item) if kind == "entity" else ()
        known = {fold(name): name for name in (*text, *offered, *reversed(used))}
        found = [
            Suggestion(name, 1.0 if name in used else 0.5)
            for plain, name in known.items()
            if plain.startswith(wanted) and plain != wanted
        ]
        found = sorted(found, key=lambda one: (-one.score, one.text))[:MOST]
        if kind == "value" or len(wanted) < LEAST_LETTERS or wanted in map(fold, used):
            return found
        others = [name for name in used if not fold(name).startswith(wanted)]
        return [*found, *(Suggestion(typed, one.score, one.name) for one in same_as(typed, others, kind))][:MOST]

    def recall(self, member: Member, item_id: str) -> list[RecallPrompt]:
        """Entities of the project's draft that neither the item nor the member mentions.

        Authors are told only after they have given an answer of their own, and others after their blind pass.
        """
        lease = self._places.show(member, item_id)
        item = lease.item
        answer = json.loads(lease.answer) if lease.answer else {}
        if (item.kind == "author" and not answer) or (is_blind_first(item) and "blind" not in item.payload):
            raise InputError(
                "the entities that you did not mention are shown only after you have answered",
                fix="answer this item first",
            )
        if item.kind not in ("author", "audit", "correct"):
            return []
        with self._store.reading() as session:
            draft = session.scalar(
                select(SourceRow.record).where(
                    SourceRow.project_id == member.project,
                    SourceRow.role == "draft",
                    SourceRow.procedure == storable(item.procedure),
                )
            )
        if draft is None:
            return []
        said = [*answer.get("changes", ()), *answer.get("missing", ()), *item.payload.get("changes", ())]
        return recall_prompts(trace_of(draft), [change_of(change) for change in said])


def _own_changes(session: Session, member: Member) -> Iterator[Mapping[str, Any]]:
    chosen = select(DecisionRow.answer).where(DecisionRow.author_id == member.id)
    for answer in session.scalars(chosen.order_by(DecisionRow.time.desc()).limit(OWN_DECISIONS)):
        said = json.loads(answer)
        for field in ("changes", "missing", "blind"):
            yield from said.get(field) or ()


def _shown_changes(item: Item) -> list[Mapping[str, Any]]:
    """The changes that the item shows anyway; a draft is not among them before the blind pass."""
    return list(item.payload.get("changes", ()))


def _words(changes: Iterable[Mapping[str, Any]], kind: SuggestedKind) -> Iterator[str]:
    for change in changes:
        yield from (change[field] for field in _FIELDS[kind] if change.get(field))


def _words_of_text(item: Item) -> list[str]:
    """The words of the procedure, each once."""
    procedure = item.payload["procedure"]
    text = " ".join((procedure["goal"], *procedure["steps"])).lower()
    return list(dict.fromkeys(word for word in re.findall(r"[^\W\d_]{3,}", text)))
