"""Decisions: each is kept once, at once and for ever; what counts of them fills the places of the item."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fluents.annotation.forms import check_answer, is_blind_first
from fluents.annotation.items import Decision, Item, ItemAnswers, is_decided, latest, standing
from fluents.web.annotation_blind_passes import blind_pass_of
from fluents.web.annotation_members import Member
from fluents.web.annotation_places import Places, Spot, free_place, tried_again
from fluents.web.annotation_records import (
    ConflictError,
    decision_of,
    decisions_of,
)
from fluents.web.annotation_stages import new_place
from fluents.web.annotation_tables import DecisionRow, GuidelineRow, ItemRow, MemberRow, PlaceRow, ProjectRow, StageRow
from fluents.web.store import NotFoundError, Store

UNDOABLE = 20
"""How many of a member's latest decisions can be undone."""
DAY = 86400.0


@dataclass(frozen=True)
class Judgement:
    """What a client sends as a decision."""

    id: str
    item: str
    answer: Mapping[str, Any]
    seconds: float | None = None
    undoes: str | None = None
    adjudicates: bool = False
    checks: bool = False


@dataclass(frozen=True)
class Receipt:
    """A decision that is kept."""

    decision: Decision
    number: int
    is_new: bool
    """False of one that was there already: the client sent it again."""


@dataclass(frozen=True)
class DecisionEntry:
    """A decision in a list, with what people want to know about it."""

    decision: Decision
    number: int
    stage: int
    undone: bool


@dataclass(frozen=True)
class Tally:
    """What a member has done."""

    done: int
    today: int
    last: float | None = None
    """When they decided last."""


class Decisions:
    """The decisions of all projects in a store."""

    def __init__(self, store: Store, places: Places, clock: Callable[[], float] = time.time) -> None:
        self._store, self._places, self._clock = store, places, clock

    def give(self, member: Member, given: Judgement) -> Receipt:
        """Keep a decision. The same again is not kept twice; another one with the same id is refused."""
        try:
            return self._give(member, given)
        except IntegrityError:  # two requests at once, or an id that stands for a decision on another item
            with self._store.reading() as session:
                if (kept := _with_id(session, member.project, given.id)) is not None and kept.item_id != given.item:
                    raise _id_taken() from None
            return tried_again(lambda: self._give(member, given))

    def _give(self, member: Member, given: Judgement) -> Receipt:
        with self._store.writing() as session:
            now = session.execute(_PROJECT_NOW, {"project": member.project}).one()
            row = session.execute(_ITEM_LOCKED, {"project": member.project, "item": given.item}).scalar()
            if row is None:
                raise NotFoundError("this project has no item with this id", fix="continue with the next question")
            item = Item.model_validate_json(row.record)
            answer = _checked(session, member, item, given)
            earlier = session.execute(_OF_ITEM, {"project": member.project, "item": given.item}).all()
            for kept, _ in earlier:
                if kept.id == given.id:
                    return _again(kept, member, given, answer)
            if now.stage != row.stage:
                raise ConflictError(
                    f"stage {row.stage} is closed, so this answer does not count", fix="continue with the next question"
                )
            if given.undoes is not None:
                _check_undo(session, member, given)
            added = DecisionRow(
                project_id=member.project,
                id=given.id,
                item_id=item.id,
                author_id=member.id,
                answer=json.dumps(answer),
                time=self._clock(),
                seconds=given.seconds,
                undoes=given.undoes,
                adjudicates=given.adjudicates,
                checks=given.checks,
                guideline=now.guideline,
            )
            session.add(added)
            session.flush()
            decision = decision_of(added, member.number)
            decisions = [*(decision_of(one, author) for one, author in earlier), decision]
            came_free = self._settle(session, member, row, item, decisions)
            receipt = Receipt(decision, added.number, is_new=True)
        self._places.came_free(came_free)
        return receipt

    def undo(self, member: Member, decision_id: str, new_id: str) -> Receipt:
        """Take a decision back. What the member said before it counts again; otherwise the item is theirs to decide."""
        with self._store.reading() as session:
            found = _with_id(session, member.project, decision_id)
            if found is None or found.author_id != member.id:
                raise NotFoundError("you made no decision with this id", fix="use the id of one of your own decisions")
            given = Judgement(new_id, found.item_id, {}, None, decision_id, found.adjudicates, found.checks)
        return self.give(member, given)

    def _settle(
        self, session: Session, member: Member, row: ItemRow, item: Item, decisions: Sequence[Decision]
    ) -> list[Spot]:
        """Make the places of an item agree with the decisions on it; returns the places that are free again."""
        counts = [
            one
            for one in latest(decisions)
            if one.author == member.pseudonym and not one.adjudicates and not one.checks
        ]
        places = session.execute(_PLACES_LOCKED, {"project": member.project, "item": item.id}).scalars().all()
        place = next((one for one in places if one.holder == member.id), None)
        if counts:
            place = place or free_place(session, member, item.id)
            if place is None:
                raise ConflictError(
                    "this question is no longer reserved for you, and other people answer it instead",
                    fix="continue with the next question",
                )
            place.holder, place.until, place.decision = member.id, None, counts[0].id
        elif place is not None and place.decision is not None:
            place.until, place.decision = self._places.ends, None
        row.decided = is_decided(item, decisions)
        missing = set(range(item.judges)).difference(one.number for one in places)
        if row.decided:  # then there are no free places
            for one in places:
                if one.holder is None:
                    session.delete(one)
        elif missing:
            again = [new_place(row.project_id, row.stage, item, row.number, number) for number in sorted(missing)]
            session.execute(insert(PlaceRow), again)
            return [Spot(row.stage, one["position"]) for one in again]
        return []

    # Lists

    def mine(self, member: Member, limit: int = UNDOABLE) -> list[DecisionEntry]:
        """A member's latest decisions, newest first, without those that only undo another."""
        with self._store.reading() as session:
            return _entries(session, DecisionRow.author_id == member.id, DecisionRow.undoes.is_(None), limit=limit)

    def audit(self, project_id: str, offset: int = 0, limit: int = 100) -> tuple[list[DecisionEntry], int]:
        """All decisions of a project, newest first, and how many there are."""
        with self._store.reading() as session:
            total = session.scalar(select(func.count()).where(DecisionRow.project_id == project_id))
            found = _entries(session, DecisionRow.project_id == project_id, limit=limit, offset=offset)
            return found, total or 0

    def answers(self, project_id: str, item_ids: Sequence[str]) -> list[ItemAnswers]:
        """These items with the answers that count, in this order."""
        with self._store.reading() as session:
            chosen = select(ItemRow).where(ItemRow.project_id == project_id, ItemRow.id.in_(item_ids))
            found = {row.id: Item.model_validate_json(row.record) for row in session.scalars(chosen)}
            decisions = list(decisions_of(session, project_id, DecisionRow.item_id.in_(item_ids)))
            return standing([found[item] for item in item_ids if item in found], decisions)

    def tally(self, member: Member) -> Tally:
        """How many items a member has decided, in all and since midnight (UTC), and when last."""
        with self._store.reading() as session:
            return self._tallies(session, [member.id])[member.id]

    def tallies(self, project_id: str) -> dict[str, Tally]:
        """The same for all members of a project, by their ids."""
        with self._store.reading() as session:
            members = session.scalars(select(MemberRow.id).where(MemberRow.project_id == project_id)).all()
            return self._tallies(session, members)

    def _tallies(self, session: Session, members: Sequence[str]) -> dict[str, Tally]:
        values = {"members": members, "midnight": self._clock() // DAY * DAY}
        done, today, last = (
            {row[0]: row[1] for row in session.execute(query, values)} for query in (_DONE, _DONE_TODAY, _LAST)
        )
        return {one: Tally(done.get(one, 0), today.get(one, 0), last.get(one)) for one in members}


_MADE = DecisionRow.author_id.in_(bindparam("members", expanding=True))
_DONE = (
    select(PlaceRow.holder, func.count())
    .where(PlaceRow.holder.in_(bindparam("members", expanding=True)), PlaceRow.until.is_(None))
    .group_by(PlaceRow.holder)
)
_DONE_TODAY = (
    select(DecisionRow.author_id, func.count(DecisionRow.item_id.distinct()))
    .join(
        PlaceRow,
        (PlaceRow.project_id == DecisionRow.project_id)
        & (PlaceRow.item_id == DecisionRow.item_id)
        & (PlaceRow.holder == DecisionRow.author_id)
        & PlaceRow.until.is_(None),
    )
    .where(_MADE, DecisionRow.time >= bindparam("midnight"))
    .group_by(DecisionRow.author_id)
)
_LAST = select(DecisionRow.author_id, func.max(DecisionRow.time)).where(_MADE).group_by(DecisionRow.author_id)


def _with_id(session: Session, project_id: str, decision_id: str) -> DecisionRow | None:
    return session.scalar(
        select(DecisionRow).where(DecisionRow.project_id == project_id, DecisionRow.id == decision_id)
    )


def _checked(session: Session, member: Member, item: Item, given: Judgement) -> dict[str, Any]:
    """The answer as it is kept. Of a blind pass, what was saved before the draft was shown counts."""
    if given.undoes is not None and not given.answer:
        return {}
    answer = dict(given.answer)
    if is_blind_first(item) and not given.adjudicates:
        blind = blind_pass_of(session, member, item)
        if blind is None:
            raise ConflictError(
                "you must write your own changes before you see the draft",
                fix="first send them to /annotation/items/ID/blind",
            )
        answer["blind"] = blind
    return check_answer(item, answer)


def _again(kept: DecisionRow, member: Member, given: Judgement, answer: Mapping[str, Any]) -> Receipt:
    """The decision that is there, if it is the same."""
    known = decision_of(kept, member.number)
    sent = (given.item, member.id, answer, given.undoes, given.adjudicates, given.checks)
    if sent != (known.item, kept.author_id, known.answer, known.undoes, known.adjudicates, known.checks):
        raise _id_taken()
    return Receipt(known, kept.number, is_new=False)


def _id_taken() -> ConflictError:
    return ConflictError("another decision already has this id", fix="send each decision with a new id")


def _check_undo(session: Session, member: Member, given: Judgement) -> None:
    """Only one's own, only on the same item, and only one of the latest of its sort."""
    undone = _with_id(session, member.project, str(given.undoes))
    if undone is None or undone.author_id != member.id or undone.item_id != given.item:
        raise NotFoundError(
            "you made no decision with this id on this item", fix="use the id of your own decision on this item"
        )
    sort = DecisionRow.undoes.is_(None) if undone.undoes is None else DecisionRow.undoes.is_not(None)
    newer = session.scalar(
        select(func.count()).where(DecisionRow.author_id == member.id, sort, DecisionRow.number > undone.number)
    )
    if (newer or 0) >= UNDOABLE:
        raise ConflictError(
            f"you can undo only your latest {UNDOABLE} answers",
            fix="ask an adjudicator of the project to correct this answer",
        )


def _entries(session: Session, *where: Any, limit: int, offset: int = 0) -> list[DecisionEntry]:
    same = (ItemRow.project_id == DecisionRow.project_id) & (ItemRow.id == DecisionRow.item_id)
    chosen = select(DecisionRow, ItemRow.stage, MemberRow.number).join(ItemRow, same).join(MemberRow).where(*where)
    rows = session.execute(chosen.order_by(DecisionRow.number.desc()).offset(offset).limit(limit)).all()
    undone = _undone(session, rows[0][0].project_id, [row.id for row, _, _ in rows]) if rows else set()
    return [DecisionEntry(decision_of(row, author), row.number, stage, row.id in undone) for row, stage, author in rows]


def _undone(session: Session, project_id: str, ids: Sequence[str]) -> set[str]:
    """Those of the decisions that were undone, and whose undoing was not undone itself."""
    if not ids:
        return set()
    chosen = select(DecisionRow.id, DecisionRow.undoes)
    chosen = chosen.where(DecisionRow.project_id == project_id, DecisionRow.undoes.in_(ids))
    undoing = dict(session.execute(chosen).all())
    taken_back = _undone(session, project_id, list(undoing))
    return {str(undone) for one, undone in undoing.items() if one not in taken_back}


# Built once: that takes longer than running them.
_PROJECT_NOW = (  # the lock keeps the stage from being closed meanwhile
    select(
        ProjectRow.id,
        select(func.max(GuidelineRow.version))
        .where(GuidelineRow.project_id == ProjectRow.id)
        .scalar_subquery()
        .label("guideline"),
        select(StageRow.number)
        .where(StageRow.project_id == ProjectRow.id, StageRow.closed.is_(None))
        .scalar_subquery()
        .label("stage"),
    )
    .where(ProjectRow.id == bindparam("project"))
    .with_for_update(read=True, of=ProjectRow)
)
_ITEM_LOCKED = (
    select(ItemRow).where(ItemRow.project_id == bindparam("project"), ItemRow.id == bindparam("item")).with_for_update()
)
_OF_ITEM = (
    select(DecisionRow, MemberRow.number)
    .join(MemberRow)
    .where(DecisionRow.project_id == bindparam("project"), DecisionRow.item_id == bindparam("item"))
    .order_by(DecisionRow.number)
)
_PLACES_LOCKED = (
    select(PlaceRow)
    .where(PlaceRow.project_id == bindparam("project"), PlaceRow.item_id == bindparam("item"))
    .order_by(PlaceRow.number)
    .with_for_update()
)
