"""Who wrote the changes that a stage judges, so that nobody judges their own if enough others are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import bindparam, exists, func, insert, or_, select
from sqlalchemy.orm import Session, aliased

from fluents.annotation.authorship import JUDGING_KINDS, WRITING_KINDS, ChangeKey, authors, change_key
from fluents.annotation.items import Item
from fluents.web.annotation_members import Member
from fluents.web.annotation_records import BLOCK, Project, decisions_of, items_of, of_stage, pseudonym
from fluents.web.annotation_tables import AuthorRow, ItemRow, MemberRow, PlaceRow

WrittenBy: TypeAlias = Mapping[ChangeKey, set[str]]
"""The members who wrote each change, by their ids."""


def written_before(session: Session, project: Project, stage: int) -> WrittenBy:
    """Who wrote what in the stages before one in which changes are judged; of other stages, nothing."""
    if project.design.stage(stage).kind not in JUDGING_KINDS:
        return {}
    chosen = select(MemberRow.number, MemberRow.id).where(MemberRow.project_id == project.id)
    ids = {pseudonym(number): identity for number, identity in session.execute(chosen)}
    found: dict[ChangeKey, set[str]] = {}
    for number in range(1, stage):
        if project.design.stage(number).kind in WRITING_KINDS:
            written = authors(
                items_of(session, project.id, number), decisions_of(session, project.id, of_stage(number))
            )
            for change, names in written.items():
                found.setdefault(change, set()).update(ids[name] for name in names)
    return found


def insert_authors(session: Session, project_id: str, items: Iterable[Item], written: WrittenBy) -> None:
    """Note who wrote the changes that these items ask about."""
    rows = [
        {"project_id": project_id, "item_id": item.id, "author_id": author}
        for item in (items if written else ())
        for author in sorted(written.get(change_key(item), ()))
    ]
    if rows:
        session.connection().execute(insert(AuthorRow), rows)


def own_places(session: Session, member: Member, stage: int) -> Sequence[Any]:
    """Free places of changes that a member wrote, for which fewer others are there than judges are needed."""
    values = {"project": member.project, "stage": stage, "member": member.id}
    one = session.scalar(_UNDECIDED, values)
    if one is None:
        return ()
    judges = session.scalar(_JUDGES, {"project": member.project, "item": one}) or 0  # of all items of a stage
    people = session.scalars(_PEOPLE, {"project": member.project}).all()
    short = session.scalars(_SHORT, values | {"people": people, "spare": len(people) - judges}).all()
    return session.execute(_FREE_OF, {"project": member.project, "items": short}).all() if short else ()


_other = aliased(AuthorRow)
_OWN_UNDECIDED = (
    select(AuthorRow.item_id)
    .join(ItemRow, (ItemRow.project_id == AuthorRow.project_id) & (ItemRow.id == AuthorRow.item_id))
    .where(AuthorRow.project_id == bindparam("project"), AuthorRow.author_id == bindparam("member"))
    .where(ItemRow.stage == bindparam("stage"), ~ItemRow.decided)
)
_UNDECIDED = _OWN_UNDECIDED.limit(1)
_SHORT = (
    _OWN_UNDECIDED.join(_other, (_other.project_id == ItemRow.project_id) & (_other.item_id == ItemRow.id))
    .where(_other.author_id.in_(bindparam("people", expanding=True)))
    .where(
        ~exists().where(
            PlaceRow.project_id == ItemRow.project_id,
            PlaceRow.item_id == ItemRow.id,
            PlaceRow.holder == bindparam("member"),
        )
    )
    .group_by(AuthorRow.item_id, ItemRow.number)
    .having(func.count() > bindparam("spare"))
    .order_by(ItemRow.number)
    .limit(BLOCK)
)
_FREE_OF = (
    select(PlaceRow.project_id, PlaceRow.item_id, PlaceRow.number, PlaceRow.apart, PlaceRow.position)
    .where(PlaceRow.project_id == bindparam("project"), PlaceRow.item_id.in_(bindparam("items", expanding=True)))
    .where(PlaceRow.holder.is_(None))
    .order_by(PlaceRow.position)
)
_JUDGES = select(func.count()).where(PlaceRow.project_id == bindparam("project"), PlaceRow.item_id == bindparam("item"))
_PEOPLE = (  # owners and adjudicators count if they work on items
    select(MemberRow.id)
    .where(MemberRow.project_id == bindparam("project"), MemberRow.token.is_not(None))
    .where(or_(MemberRow.role == "annotator", exists().where(PlaceRow.holder == MemberRow.id)))
)
OWN_WORDS = select(AuthorRow.item_id).where(AuthorRow.author_id == bindparam("member"))
"""The items that ask about a change that a member wrote."""
