"""What the routes of annotation projects work with: the store's parts, and who asks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response

from fluents.annotation.design import Role
from fluents.annotation.items import Item
from fluents.web.annotation_decisions import DecisionEntry, Decisions
from fluents.web.annotation_figures import Figures
from fluents.web.annotation_members import Member, Members
from fluents.web.annotation_places import Lease, Places
from fluents.web.annotation_projects import Projects
from fluents.web.annotation_records import Project
from fluents.web.annotation_resources import (
    DecisionListed,
    Handed,
    ItemShown,
    LeaseShown,
    MemberInfo,
    StageInfo,
)
from fluents.web.annotation_stages import ProjectStages, stage_rows
from fluents.web.annotation_suggestions import Suggestions
from fluents.web.guard import RefusedError
from fluents.web.store import NotFoundError, Store

COOKIE = "fluents_member"
"""Holds the token of somebody who works on the page."""


@dataclass(frozen=True)
class AnnotationServices:
    """What the API works with."""

    store: Store
    projects: Projects
    stages: ProjectStages
    members: Members
    places: Places
    decisions: Decisions
    figures: Figures
    suggestions: Suggestions
    only: str | None = None
    """The id of the one project that is served; None for all."""

    def member(self, token: str) -> Member:
        """Whose token it is, if that member's project is served."""
        found = self.members.by_token(token) if token else None
        if found is None or self.only not in (None, found.project):
            raise RefusedError(
                401, "you are not signed in", "open the link with which you were invited, or sign in with your token"
            )
        return found


async def _services(request: Request) -> AnnotationServices:
    found: AnnotationServices = request.app.state.services
    return found


Annotating = Annotated[AnnotationServices, Depends(_services)]


ClaimedMember = Annotated[str | None, Query(max_length=64)]


def _member(services: Annotating, request: Request, member: ClaimedMember = None) -> Member:
    """Who asks. A client can say who it thinks that is: in one browser, another window may have joined as somebody
    else, and what was decided before must not be kept under the wrong name."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    found = services.member(given.strip() if scheme.lower() == "bearer" else request.cookies.get(COOKIE, ""))
    if member not in (None, found.id):
        raise RefusedError(401, "you are signed in as somebody else", "sign in as the person who gave this answer")
    return found


def _role(role: Role) -> Any:
    """Whoever has this role, and has agreed to the project's terms."""

    def check(services: Annotating, request: Request, member: ClaimedMember = None) -> Member:
        found = _member(services, request, member)
        if found.consented is None and services.projects.get(found.project).design.consent is not None:
            raise RefusedError(
                403, "you have not agreed to the terms of this project yet", "reload the page, read the terms and agree"
            )
        if not found.may(role):
            who = "owners" if role == "owner" else "adjudicators and owners"
            raise RefusedError(403, f"only {who} of the project can do this", "ask an owner of the project to do it")
        return found

    return check


Someone = Annotated[Member, Depends(_member)]
"""Any member, whether or not they have agreed to the project's terms."""
Annotator = Annotated[Member, Depends(_role("annotator"))]
Adjudicator = Annotated[Member, Depends(_role("adjudicator"))]
Owner = Annotated[Member, Depends(_role("owner"))]
StageQuery = Annotated[int | None, Query(ge=1, le=10_000)]


def remember(answer: Response, request: Request, token: str) -> None:
    """Let the page keep the token where no script can read it, and no other site can use it."""
    secure = address_of(request).startswith("https:")
    answer.set_cookie(COOKIE, token, max_age=31_536_000, httponly=True, samesite="strict", secure=secure)


def address_of(request: Request) -> str:
    """Where the page reaches this server. Behind a proxy only the browser knows whether that is HTTPS; the guard lets
    no origin through that is not ours."""
    return request.headers.get("origin") or f"{request.url.scheme}://{request.headers['host']}"


def item_shown(item: Item) -> ItemShown:
    """An item as annotators see it."""
    return ItemShown(
        id=item.id,
        stage=item.stage,
        kind=item.kind,
        procedure=item.procedure,
        judges=item.judges,
        payload=item.payload,
    )


def handed(lease: Lease) -> Handed:
    return Handed(
        item=item_shown(lease.item),
        lease=LeaseShown(until=lease.until),
        answer=None if lease.answer is None else json.loads(lease.answer),
    )


def member_info(member: Member) -> MemberInfo:
    return MemberInfo(id=member.id, name=member.name, role=member.role, pseudonym=member.pseudonym)


def stage_infos(services: AnnotationServices, project: Project) -> list[StageInfo]:
    """All stages of the design, and how far each has come."""
    return [StageInfo(**row) for row in stage_rows(project, services.stages.progress(project.id))]


def stage_number(services: AnnotationServices, project: Project, wanted: int | None) -> int:
    """A stage that was opened; the newest where none is named."""
    opened = [one.number for one in services.stages.progress(project.id)]
    if not opened or wanted not in (None, *opened):
        raise NotFoundError(
            f"stage {wanted or 1} has not been opened yet",
            fix=f"choose one of: {', '.join(map(str, opened))}" if opened else "ask an owner of the project to open it",
        )
    return wanted or opened[-1]


def decisions_listed(project: Project, entries: list[DecisionEntry]) -> list[DecisionListed]:
    return [
        DecisionListed(
            number=entry.number,
            stage=entry.stage,
            kind=project.design.stage(entry.stage).kind,
            undone=entry.undone,
            **entry.decision.model_dump(),
        )
        for entry in entries
    ]
