"""Who works on a project: invitations, members, their tokens and roles."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from fluents.annotation.design import Role
from fluents.errors import FluentsError
from fluents.web.annotation_records import lock_project, pseudonym
from fluents.web.annotation_tables import InvitationRow, MemberRow
from fluents.web.guard import digest
from fluents.web.store import NotFoundError, Store, new_id

RANKS: Mapping[Role, int] = {"annotator": 0, "adjudicator": 1, "owner": 2}
"""Whoever has a role may do all that those before it may."""
INVITATION_SECONDS = 30 * 86400.0
"""For which an invitation can be used."""


class InvitationError(FluentsError):
    """An invitation that does not let anybody in."""


@dataclass(frozen=True)
class Member:
    """Somebody who works on a project."""

    id: str
    project: str
    number: int
    name: str
    role: Role
    joined: float
    consented: float | None
    keys: dict[str, str]

    @property
    def pseudonym(self) -> str:
        """What others see of them: A3 joined as the third."""
        return pseudonym(self.number)

    def may(self, role: Role) -> bool:
        """Whether they may do what this role may."""
        return RANKS[self.role] >= RANKS[role]


class Members:
    """The members of all projects in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Member] = {}
        """By the digest of the token. One server has the store, so nobody else changes a member."""
        self._forgotten = 0
        self._lock = threading.Lock()

    def invite(self, project_id: str, role: Role = "annotator", uses: int = 1, member: str | None = None) -> str:
        """The code of a new invitation, which is kept nowhere. That of a `member` (a pseudonym) lets them in again."""
        code = secrets.token_urlsafe(18)
        with self._store.writing() as session:
            lock_project(session, project_id, shared=True)
            returning = None if member is None else _with_pseudonym(session, project_id, member)
            session.add(
                InvitationRow(
                    id=new_id(),
                    project_id=project_id,
                    code=digest(code),
                    role=role if returning is None else returning.role,
                    uses=uses if returning is None else 1,
                    member_id=None if returning is None else returning.id,
                    created=time.time(),
                )
            )
        return code

    def join(self, code: str, name: str, *, consented: bool = False) -> tuple[Member, str]:
        """A new member with their token, which is kept nowhere."""
        token = secrets.token_urlsafe(24)
        with self._store.writing() as session:
            chosen = select(InvitationRow).where(InvitationRow.code == digest(code)).with_for_update()
            invitation = session.scalar(chosen)
            if invitation is None or invitation.uses < 1 or invitation.created < time.time() - INVITATION_SECONDS:
                what = (
                    "this invitation has been used up or has expired"
                    if invitation
                    else "this invitation does not exist"
                )
                raise InvitationError(what, fix="ask the owner of the project for a new link")
            invitation.uses -= 1
            if invitation.member_id is None:
                role = cast(Role, invitation.role)
                return add_member(session, invitation.project_id, name, role, token, consented), token
            member = _let_in_again(session, invitation.member_id, token)
        self._forget()
        return member, token

    def by_token(self, token: str) -> Member | None:
        """Whose token this is."""
        key = digest(token)
        with self._lock:
            known, forgotten = self._known.get(key), self._forgotten
        if known is not None:
            return known
        with self._store.reading() as session:
            row = session.scalar(select(MemberRow).where(MemberRow.token == key))
            found = None if row is None else member_of(row)
        with self._lock:
            if found is not None and forgotten == self._forgotten:  # or it may be out of date already
                self._known[key] = found
        return found

    def _forget(self) -> None:
        """Look members up again: one of them has changed."""
        with self._lock:
            self._known.clear()
            self._forgotten += 1

    def all(self, project_id: str) -> list[Member]:
        """The members of a project, in the order in which they joined."""
        chosen = select(MemberRow).where(MemberRow.project_id == project_id).order_by(MemberRow.number)
        with self._store.reading() as session:
            return [member_of(row) for row in session.scalars(chosen)]

    def consent(self, member: Member) -> None:
        """Keep when a member agreed to the consent text; the first time counts."""
        with self._store.writing() as session:
            session.execute(
                update(MemberRow)
                .where(MemberRow.id == member.id, MemberRow.consented.is_(None))
                .values(consented=time.time())
            )
        self._forget()

    def set_keys(self, member: Member, keys: Mapping[str, str]) -> None:
        """Keep which key does what for this member."""
        with self._store.writing() as session:
            row = session.get(MemberRow, member.id)
            if row is None:
                raise NotFoundError("this member does not exist any more")
            row.keys = json.dumps(dict(keys))
        self._forget()


def _with_pseudonym(session: Session, project_id: str, name: str) -> MemberRow:
    for row in session.scalars(select(MemberRow).where(MemberRow.project_id == project_id)):
        if name in (pseudonym(row.number), row.id):
            return row
    raise NotFoundError(
        f"this project has no member {name!r:.40}", fix="list the members with `fluents annotate status`"
    )


def _let_in_again(session: Session, member_id: str, token: str) -> Member:
    """With a new token; the old one is worth nothing from now on."""
    row = session.get(MemberRow, member_id)
    assert row is not None
    row.token = digest(token)
    return member_of(row)


def add_member(session: Session, project_id: str, name: str, role: Role, token: str, consented: bool) -> Member:
    """Add a member with the next number."""
    lock_project(session, project_id)
    newest = session.scalar(select(func.max(MemberRow.number)).where(MemberRow.project_id == project_id)) or 0
    now = time.time()
    row = MemberRow(
        id=new_id(),
        project_id=project_id,
        number=newest + 1,
        name=name,
        role=role,
        token=digest(token),
        joined=now,
        consented=now if consented else None,
        keys="{}",
    )
    session.add(row)
    session.flush()
    return member_of(row)


def member_of(row: MemberRow) -> Member:
    return Member(
        row.id,
        row.project_id,
        row.number,
        row.name,
        cast(Role, row.role),
        row.joined,
        row.consented,
        json.loads(row.keys),
    )
