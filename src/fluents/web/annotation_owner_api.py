"""The API for those who run a project: stages, people, guideline, agreement, exports."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from fluents.annotation.export import MEDIA_TYPES, SUFFIXES, ExportFormat
from fluents.records import id_from
from fluents.web.annotation_export import exported
from fluents.web.annotation_owner_resources import (
    AgreementShown,
    GuidelineGiven,
    InvitationGiven,
    InvitationMade,
    InvitationShown,
    ItemAgreed,
    OutcomeShown,
    PayShown,
    PersonAgreed,
    PersonPaid,
    PersonProgress,
    StageOpened,
    StageOpenGiven,
)
from fluents.web.annotation_resources import AuditPage, GuidelineText, StageInfo
from fluents.web.annotation_services import (
    Annotating,
    Owner,
    StageQuery,
    address_of,
    decisions_listed,
    stage_infos,
    stage_number,
)

router = APIRouter()
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
LEAST_AGREED = 100
MemberPath = Annotated[str, Path(pattern="^[A-Za-z0-9]{1,20}$", examples=["A3"])]
InvitationPath = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=["0123456789abcdef"])]
Limit = Annotated[int, Query(ge=1, le=100)]


@router.post("/stages/open")
def open_stage(services: Annotating, member: Owner, given: StageOpenGiven) -> StageOpened:
    """Close the open stage, and open the next one. Its items are made from the result of the closed stage."""
    project = services.projects.get(member.project)
    number = services.stages.open_next(project, force=given.force, closing=given.stage)
    stages = stage_infos(services, project)
    return StageOpened(stage=None if number is None else stages[number - 1])


@router.get("/progress")
def progress(services: Annotating, member: Owner) -> list[StageInfo]:
    """How many items of each stage are decided."""
    return stage_infos(services, services.projects.get(member.project))


@router.get("/agreement")
def agreement(services: Annotating, member: Owner, stage: StageQuery = None) -> AgreementShown:
    """How well people agree in a stage."""
    project = services.projects.get(member.project)
    number = stage_number(services, project, stage)
    figures = services.figures.stage(project, number)
    found = figures.agreement
    least = sorted(found.by_item, key=found.by_item.__getitem__)[:LEAST_AGREED]
    return AgreementShown(
        stage=number,
        kind=project.design.stage(number).kind,
        level=found.level,
        **asdict(found.overall),
        paraphrase=None if found.paraphrase is None else asdict(found.paraphrase),
        by_scope={name: asdict(one) for name, one in found.by_scope.items()},
        by_person=[
            PersonAgreed(pseudonym=one.author, decisions=one.items, agreement=one.share, f1=one.f1)
            for one in found.by_person
        ],
        by_item=[
            ItemAgreed(item=one.item.id, procedure=one.item.procedure, agreement=found.by_item[one.item.id])
            for one in services.decisions.answers(project.id, least)
        ],
        expert=None if found.expert is None else {**asdict(found.expert), "share": found.expert.share},
    )


@router.get("/outcome")
def outcome(services: Annotating, member: Owner, stage: StageQuery = None) -> OutcomeShown:
    """The result of a stage so far: counts before and after, what was removed and why, and the scores of systems."""
    project = services.projects.get(member.project)
    number = stage_number(services, project, stage)
    return OutcomeShown(stage=number, **services.figures.outcome(project, number))


@router.get("/pay")
def pay(services: Annotating, member: Owner) -> PayShown:
    """What each member has earned, and how long they worked."""
    found = services.figures.pay(services.projects.get(member.project))
    return PayShown(
        currency=next((one.currency for one in found), None),
        people=[
            PersonPaid(
                pseudonym=one.author,
                items=one.items,
                changes=one.changes,
                seconds=one.seconds,
                amount=one.amount,
                per_hour=one.per_hour,
            )
            for one in found
        ],
    )


@router.get("/people")
def people(services: Annotating, member: Owner) -> list[PersonProgress]:
    """The members of the project, and how many items each has decided."""
    tallies = services.decisions.tallies(member.project)
    return [
        PersonProgress(
            id=one.id,
            name=one.name,
            role=one.role,
            pseudonym=one.pseudonym,
            joined=one.joined,
            consented=one.consented is not None,
            access=one.has_access,
            done=tallies[one.id].done,
            today=tallies[one.id].today,
            last=tallies[one.id].last,
        )
        for one in services.members.all(member.project)
    ]


@router.delete("/people/{name}", status_code=204)
def end_access(services: Annotating, member: Owner, name: MemberPath) -> Response:
    """End the access of a member, at once. Their decisions stay, and what they have in hand is free for others."""
    services.places.release_all(services.members.end_access(member.project, name))
    return Response(status_code=204)


@router.get("/audit")
def audit(services: Annotating, member: Owner, offset: Offset = 0, limit: Limit = 100) -> AuditPage:
    """All decisions with their authors and times, newest first."""
    entries, total = services.decisions.audit(member.project, offset, limit)
    listed = decisions_listed(services.projects.get(member.project), entries)
    following = offset + len(listed)
    return AuditPage(items=listed, total=total, next=following if following < total else None)


@router.put("/guideline")
def write_guideline(services: Annotating, member: Owner, given: GuidelineGiven) -> GuidelineText:
    """Publish a new version of the guideline. Each decision records the version that was current at the time."""
    kept = services.projects.write_guideline(member.project, given.text)
    return GuidelineText(version=kept.version, text=kept.text)


@router.post("/invitations", status_code=201)
def invite(services: Annotating, member: Owner, given: InvitationGiven, request: Request) -> InvitationMade:
    """Make a link with which people join. Its code is in the fragment, which browsers do not send to servers."""
    code = services.members.invite(member.project, given.role, given.uses, given.member)
    link = f"{address_of(request)}/?join#{code}"
    return InvitationMade(link=link, role=given.role, uses=given.uses)


@router.get("/invitations")
def invitations(services: Annotating, member: Owner) -> list[InvitationShown]:
    """The links that still let people in."""
    return [
        InvitationShown(
            id=one.id,
            role=one.role,
            uses=one.uses,
            member=one.member.pseudonym if one.member else None,
            created=one.created,
            expires=one.expires,
        )
        for one in services.members.invitations(member.project)
    ]


@router.delete("/invitations/{invitation_id}", status_code=204)
def revoke_invitation(services: Annotating, member: Owner, invitation_id: InvitationPath) -> Response:
    """Revoke a link, at once. Those who joined with it stay."""
    services.members.revoke(member.project, invitation_id)
    return Response(status_code=204)


@router.get("/export", response_class=StreamingResponse)
def export(
    services: Annotating, member: Owner, format: ExportFormat = "fluents", pseudonymous: bool = False
) -> Response:
    """Download the current results or the whole history of the project."""
    project = services.projects.get(member.project)
    name = f"{id_from(project.name)}{SUFFIXES[format]}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    parts = exported(services.store, project, format, pseudonymous=pseudonymous)
    return StreamingResponse(parts, media_type=MEDIA_TYPES[format], headers=headers)
