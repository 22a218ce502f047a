"""Places: who works on which item, for how long, and which item is next.

An item has as many places as it needs judges. `next` gives a member a free place for some time; the place is filled by
a decision, given back, or free again when the time is over. The database decides who gets a place, so that no place has
two holders whatever happens at the same time. What this module remembers itself only makes the search short.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, bindparam, select, union_all
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fluents.annotation.items import Item
from fluents.web.annotation_authors import OWN_WORDS, own_places
from fluents.web.annotation_blind_passes import seen_by
from fluents.web.annotation_members import Member
from fluents.web.annotation_records import ConflictError, item_of, stage_now
from fluents.web.annotation_tables import AuthorRow, DecisionRow, ItemRow, PlaceRow
from fluents.web.store import NotFoundError, Store

LEASE = 900.0
"""Seconds for which a place is held."""
LOOK_AGAIN = 30.0
"""Seconds after which all places are looked at again for somebody who found nothing to do."""
FIRST_LOOK, LONG_LOOK = 20, 5000
"""How many free places are looked at at first, and then at once."""
END = 2**31 - 1
"""A position after all others."""
TRIES = 5
"""How often something is tried again that came in the way of a request of the same member."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Lease:
    """An item in somebody's hands."""

    item: Item
    """With what they may see of it."""
    until: float | None
    """None of an item that is decided."""
    answer: str | None
    """What the member last answered, as JSON."""


class Spot(NamedTuple):
    """Where a place is in the order of its stage. (Stages of different projects share the numbers: no harm.)"""

    stage: int
    position: int


@dataclass
class _Mark:
    """From where on a member need look for a free place."""

    stage: int = 0
    position: int = 0
    looked: float = 0.0
    """When all places were looked at."""
    given_back: set[str] = field(default_factory=set)
    """Items that the member did not want; they come last."""


class Places:
    """The places of all items in a store."""

    def __init__(self, store: Store, lease: float = LEASE, clock: Callable[[], float] = time.time) -> None:
        self._store, self._lease, self._clock = store, lease, clock
        self._marks: dict[str, _Mark] = {}
        self._looked_over = -1.0
        self._lock = threading.Lock()

    @property
    def ends(self) -> float:
        """When a lease that begins now ends."""
        return self._clock() + self._lease

    def next(
        self, member: Member, besides: Collection[str] = (), release: str | None = None, stage: int | None = None
    ) -> Lease | None:
        """An item for a member: one that they hold already, or the next with a free place; None if there is none.

        `besides` are items that the member has in hand, `release` is one to give back.
        """
        self._look_ahead(member)
        return tried_again(lambda: self._next(member, besides, release, stage))

    def _next(self, member: Member, besides: Collection[str], release: str | None, stage: int | None) -> Lease | None:
        freed: list[Spot] = []
        try:
            with self._store.writing() as session:
                freed += self._reclaimed(session)
                if release is not None:
                    freed += self._given_back(session, member, release)
                now = stage_now(session, member.project)
                if now is None or stage not in (None, now.number):
                    return None
                place = self._held(session, member, now.number, besides)
                place = place or self._first_free(session, member, now.number, besides)
                if place is None:
                    return None
                place.holder, place.until = member.id, self.ends
                session.flush()
                return _lease(session, member, place.item_id, place.until)
        finally:
            self.came_free(freed)  # once more: until now, others could not see it

    def renew(self, member: Member, item_id: str) -> Lease:
        """Hold an item for longer. One whose time was over, and that nobody else took, is held again."""
        return tried_again(lambda: self._renew(member, item_id))

    def _renew(self, member: Member, item_id: str) -> Lease:
        with self._store.writing() as session:
            place = own_place(session, member, item_id) or free_place(session, member, item_id)
            place = place or own_place(session, member, item_id)  # which another request of theirs took meanwhile
            if place is None:
                raise ConflictError(
                    "this question is no longer reserved for you", fix="continue with the next question"
                )
            if place.decision is None:
                place.holder, place.until = member.id, self.ends
            return _lease(session, member, place.item_id, place.until)

    def release(self, member: Member, item_id: str) -> None:
        """Give an item back."""
        with self._store.writing() as session:
            freed = self._given_back(session, member, item_id)
        self.came_free(freed)

    def release_all(self, member: Member) -> None:
        """Give back all that a member has in hand."""
        held = select(PlaceRow).where(PlaceRow.holder == member.id, PlaceRow.until.is_not(None)).with_for_update()
        with self._store.writing() as session:
            freed = self._freed(session, session.scalars(held).all())
        self.came_free(freed)

    def show(self, member: Member, item_id: str) -> Lease:
        """An item that the member has or had; adjudicators see every item of their project."""
        with self._store.reading() as session:
            place = session.scalar(_own(member, item_id))
            lease = _lease(session, member, item_id, None if place is None else place.until)
            if place is None and lease.answer is None and not member.may("adjudicator"):
                raise NotFoundError(
                    "this question does not exist, or was never given to you", fix="continue with the next question"
                )
            return lease

    # Inside a transaction

    def _reclaimed(self, session: Session) -> list[Spot]:
        """The places whose time was over, freed; they are looked for once a second."""
        with self._lock:
            if 0 <= self._clock() - self._looked_over < 1:
                return []
            self._looked_over = self._clock()
        over = select(PlaceRow).where(PlaceRow.until < self._clock()).with_for_update(skip_locked=True)
        return self._freed(session, session.scalars(over).all())

    def _given_back(self, session: Session, member: Member, item_id: str) -> list[Spot]:
        place = own_place(session, member, item_id)
        if place is None or place.decision is not None:
            return []
        with self._lock:
            self._mark(member, place.stage).given_back.add(item_id)
        return self._freed(session, [place])

    def _freed(self, session: Session, places: Sequence[PlaceRow]) -> list[Spot]:
        spots = []
        for place in places:
            if session.get_one(ItemRow, (place.project_id, place.item_id)).decided:  # an adjudicator was faster
                session.delete(place)
                continue
            place.holder = place.until = None
            spots.append(Spot(place.stage, place.position))
        session.flush()
        self.came_free(spots)
        return spots

    def came_free(self, spots: Sequence[Spot]) -> None:
        """Let everybody look again from there on."""
        with self._lock:
            for spot in spots:
                for mark in self._marks.values():
                    if mark.stage == spot.stage:
                        mark.position = min(mark.position, spot.position)

    def _held(self, session: Session, member: Member, stage: int, besides: Collection[str]) -> PlaceRow | None:
        values = {"project": member.project, "stage": stage, "member": member.id, "besides": list(besides)}
        found: PlaceRow | None = session.execute(_HELD, values).scalar()
        return found

    def _first_free(self, session: Session, member: Member, stage: int, besides: Collection[str]) -> PlaceRow | None:
        with self._lock:
            mark = self._mark(member, stage)
            begin, unwanted = mark.position, {*mark.given_back, *besides}
        place = _locked(session, _candidates(session, member, stage, begin, unwanted))
        if place is None and mark.given_back:
            with self._lock:
                mark.given_back.clear()
            place = _locked(session, _candidates(session, member, stage, 0, besides))
        with self._lock:
            mark.position = END if place is None else place.position
        if place is None:
            own = own_places(session, member, stage)
            place = _locked(session, (row for row in own if row.item_id not in besides))
        return place

    def _look_ahead(self, member: Member) -> None:
        """Find a member's mark without keeping others from writing: the first look may take a second.

        Likewise when nothing was found for some time: a place may have been overlooked while somebody else's request
        held it for a moment.
        """
        with self._lock:
            mark = self._marks.get(member.id, _Mark())
            if mark.looked and mark.position < END:  # of another stage: that is noticed when the place is taken
                return
        with self._store.reading() as session:
            now = stage_now(session, member.project)
            if now is None:
                return
            with self._lock:
                mark = self._mark(member, now.number)
                known = mark.looked and (mark.position < END or self._clock() - mark.looked < LOOK_AGAIN)
            if known:
                return
            begun = self._clock()
            found = next(_candidates(session, member, now.number, 0, ()), None)
        with self._lock:
            mark.looked = begun
            mark.position = END if found is None else found.position

    def _mark(self, member: Member, stage: int) -> _Mark:
        mark = self._marks.setdefault(member.id, _Mark())
        if mark.stage != stage:
            mark = self._marks[member.id] = _Mark(stage)
        return mark


def _lease(session: Session, member: Member, item_id: str, until: float | None) -> Lease:
    item = seen_by(session, member, item_of(session, member.project, item_id))
    return Lease(item, until, _answer(session, member, item_id))


def tried_again(work: Callable[[], Result]) -> Result:
    """Two requests of one member at the same time may want the same thing; the second finds what the first did."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except IntegrityError:
            continue
    return work()


def own_place(session: Session, member: Member, item_id: str) -> PlaceRow | None:
    """The place of an item that a member holds or filled, for a transaction that changes it."""
    found: PlaceRow | None = session.scalar(_own(member, item_id).with_for_update())
    return found


def free_place(session: Session, member: Member, item_id: str) -> PlaceRow | None:
    """A free place of an item that the member may take."""
    rows = session.execute(_PLACES_OF_ITEM, {"project": member.project, "item": item_id}).all()
    values = {"project": member.project, "member": member.id, "apart": [row.apart for row in rows]}
    free: Iterable[Any] = (row for row in rows if row.holder is None)
    if rows and session.scalar(_OWN_APART, values) is not None:
        free = (row for row in own_places(session, member, rows[0].stage) if row.item_id == item_id)
    return _locked(session, free)


def _own(member: Member, item_id: str) -> Select[Any]:
    return select(PlaceRow).where(
        PlaceRow.project_id == member.project, PlaceRow.item_id == item_id, PlaceRow.holder == member.id
    )


def _candidates(session: Session, member: Member, stage: int, begin: int, unwanted: Collection[str]) -> Iterator[Any]:
    """Free places from a position on that a member could take, in order.

    In steps that a database can only do by an index: one query for all of it made PostgreSQL look at every place.
    """
    size = FIRST_LOOK
    every: set[str] | None = None
    while True:
        values = {"project": member.project, "stage": stage, "begin": begin, "most": size}
        rows = session.execute(_FREE, values).all()
        mine = {"project": member.project, "member": member.id, "apart": [row.apart for row in rows]}
        own = set(session.scalars(_OWN_APART, mine)) if every is None else every
        yield from (row for row in rows if row.apart not in own and row.item_id not in unwanted)
        if len(rows) < size:
            return
        begin, size = rows[-1].position + 1, LONG_LOOK
        if every is None:  # many are not for this member: then all that are theirs are looked up at once
            every = set(session.scalars(_ALL_APART, {"member": member.id}))


def _locked(session: Session, candidates: Iterable[Any]) -> PlaceRow | None:
    """The first that is still free, and that nobody else's request is about to take."""
    for row in candidates:
        values = {"project": row.project_id, "item": row.item_id, "number": row.number}
        place: PlaceRow | None = session.execute(_FREE_PLACE, values).scalar()
        if place is not None:
            return place
    return None


# Built once: that takes longer than running them.
_FREE = (
    select(PlaceRow.project_id, PlaceRow.item_id, PlaceRow.number, PlaceRow.apart, PlaceRow.position)
    .where(PlaceRow.project_id == bindparam("project"), PlaceRow.stage == bindparam("stage"))
    .where(PlaceRow.holder.is_(None), PlaceRow.position >= bindparam("begin"))
    .order_by(PlaceRow.project_id, PlaceRow.stage, PlaceRow.holder, PlaceRow.position)  # as the index has them
    .limit(bindparam("most"))
)
_OWN_APART = union_all(
    select(PlaceRow.apart).where(
        PlaceRow.project_id == bindparam("project"),
        PlaceRow.apart.in_(bindparam("apart", expanding=True)),
        PlaceRow.holder == bindparam("member"),
    ),
    OWN_WORDS.where(  # where changes are judged, each item stands apart by its id
        AuthorRow.project_id == bindparam("project"), AuthorRow.item_id.in_(bindparam("apart", expanding=True))
    ),
)
_ALL_APART = union_all(select(PlaceRow.apart).where(PlaceRow.holder == bindparam("member")), OWN_WORDS)
_FREE_PLACE = (
    select(PlaceRow)
    .where(PlaceRow.project_id == bindparam("project"), PlaceRow.item_id == bindparam("item"))
    .where(PlaceRow.number == bindparam("number"), PlaceRow.holder.is_(None))
    .with_for_update(skip_locked=True)
)
_HELD = (
    select(PlaceRow)
    .where(PlaceRow.project_id == bindparam("project"), PlaceRow.stage == bindparam("stage"))
    .where(PlaceRow.holder == bindparam("member"), PlaceRow.until.is_not(None))
    .where(PlaceRow.item_id.not_in(bindparam("besides", expanding=True)))
    .order_by(PlaceRow.position)
    .limit(1)
    .with_for_update()
)
_ANSWER = (
    select(DecisionRow.answer)
    .where(DecisionRow.project_id == bindparam("project"), DecisionRow.item_id == bindparam("item"))
    .where(DecisionRow.author_id == bindparam("member"), DecisionRow.undoes.is_(None))
    .order_by(DecisionRow.number.desc())
    .limit(1)
)
_PLACES_OF_ITEM = (
    select(PlaceRow.project_id, PlaceRow.item_id, PlaceRow.number, PlaceRow.stage, PlaceRow.apart, PlaceRow.holder)
    .where(PlaceRow.project_id == bindparam("project"), PlaceRow.item_id == bindparam("item"))
    .order_by(PlaceRow.project_id, PlaceRow.item_id, PlaceRow.number)
)


def _answer(session: Session, member: Member, item_id: str) -> str | None:
    return session.execute(
        _ANSWER, {"project": member.project, "item": item_id, "member": member.id}
    ).scalar_one_or_none()
