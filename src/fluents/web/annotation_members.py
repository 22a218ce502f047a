"""Who works on a project: invitations, members, their tokens and roles."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.orm import Session

from fluents.annotation.design import Role
from fluents.errors import FluentsError
from fluents.web.annotation_records import ConflictError, lock_project, pseudonym
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
    has_access: bool
    """False of those whose access was ended, and of members of an imported project who were not let in again."""

    @property
    def pseudonym(self) -> str:
        """What others see of them: A3 joined as the third."""
        return pseudonym(self.number)

    def may(self, role: Role) -> bool:
        """Whether they may do what this role may."""
        return RANKS[self.role] >= RANKS[role]


@dataclass(frozen=True)
class Invitation:
    """A link that lets people in, without its code."""

    id: str
    project: str
    role: Role
    uses: int
    """How many more people it lets in."""
    created: float
    member: Member | None
    """Of a link that lets a member in again."""

    @property
    def expires(self) -> float:
        return self.created + INVITATION_SECONDS


class Members:
    """The members of all projects in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

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

    def join(self, code: str, name: str, *, consented: bool = False, only: str | None = None) -> tuple[Member, str]:
        """A new member with their token, which is kept nowhere. An invitation to another project than `only` is left
        as it is."""
        token = secrets.token_urlsafe(24)
        with self._store.writing() as session:
            invitation = _usable(session, code, only, locked=True)
            invitation.uses -= 1
            if invitation.member_id is not None:
                return _let_in_again(session, invitation.member_id, token), token
            role = cast(Role, invitation.role)
            return add_member(session, invitation.project_id, name, role, token, consented), token

    def invitation(self, code: str, only: str | None = None) -> Invitation:
        """What an invitation is for; an InvitationError if it lets nobody in."""
        with self._store.reading() as session:
            return _invitation(session, _usable(session, code, only))

    def invitations(self, project_id: str) -> list[Invitation]:
        """The invitations to a project that still let somebody in, the oldest first."""
        of_project = (InvitationRow.project_id == project_id) & (InvitationRow.uses > 0)
        chosen = select(InvitationRow).where(of_project, InvitationRow.created >= time.time() - INVITATION_SECONDS)
        with self._store.reading() as session:
            return [_invitation(session, row) for row in session.scalars(chosen.order_by(InvitationRow.created)).all()]

    def revoke(self, project_id: str, invitation_id: str) -> None:
        """Let an invitation let nobody in any more."""
        with self._store.writing() as session:
            found = session.get(InvitationRow, invitation_id, with_for_update=True)
            if found is None or found.project_id != project_id:
                raise NotFoundError(
                    f"this project has no invitation {invitation_id!r:.40}",
                    fix="list the invitations with `fluents annotate status`",
                )
            found.uses = 0

    def end_access(self, project_id: str, name: str) -> Member:
        """Let a member (a pseudonym) in no more; what they decided stays. A new invitation lets them in again."""
        with self._store.writing() as session:
            lock_project(session, project_id)  # two owners could end each other's access
            row = _with_pseudonym(session, project_id, name)
            owners = session.scalars(
                select(MemberRow.id).where(
                    MemberRow.project_id == project_id, MemberRow.role == "owner", MemberRow.token.is_not(None)
                )
            ).all()
            if list(owners) == [row.id]:
                raise ConflictError(
                    f"{name} is the only owner of this project",
                    fix=f"invite another owner, wait until they have joined, and then end the access of {name}",
                )
            # First the invitations, as when somebody joins: otherwise each could wait for the other.
            session.execute(update(InvitationRow).where(InvitationRow.member_id == row.id).values(uses=0))
            row.token = None
            return member_of(row)

    def by_token(self, token: str) -> Member | None:
        """Whose token this is. It is looked up each time, because a command can end somebody's access meanwhile."""
        with self._store.reading() as session:
            row = session.scalar(_BY_TOKEN, {"token": digest(token)})
            return None if row is None else member_of(row)

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

    def set_keys(self, member: Member, keys: Mapping[str, str]) -> None:
        """Keep which key does what for this member."""
        with self._store.writing() as session:
            row = session.get(MemberRow, member.id)
            if row is None:
                raise NotFoundError("you are no longer a member of this project", fix="ask its owner for a new link")
            row.keys = json.dumps(dict(keys))


def _usable(session: Session, code: str, only: str | None, *, locked: bool = False) -> InvitationRow:
    chosen = select(InvitationRow).where(InvitationRow.code == digest(code))
    found = session.scalar(chosen.with_for_update() if locked else chosen)
    fix = "ask the person who invited you for a new link"
    if found is None:
        raise InvitationError("this invitation does not exist", fix=fix)
    if only not in (None, found.project_id):
        raise InvitationError(
            "this invitation is for another project, which is not on this server",
            fix="ask the person who invited you for the right link",
        )
    if found.uses < 1:
        raise InvitationError("this invitation has been used up, or has been revoked", fix=fix)
    if found.created < time.time() - INVITATION_SECONDS:
        raise InvitationError("this invitation has expired", fix=fix)
    return found


def _invitation(session: Session, row: InvitationRow) -> Invitation:
    member = None if row.member_id is None else member_of(session.get_one(MemberRow, row.member_id))
    return Invitation(row.id, row.project_id, cast(Role, row.role), row.uses, row.created, member)


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
        row.token is not None,
    )


_BY_TOKEN = select(MemberRow).where(MemberRow.token == bindparam("token"))
"""Built once: that takes longer than running it."""
