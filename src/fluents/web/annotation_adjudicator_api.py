"""The API for those who settle what others disagree on, and for experts who check samples."""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Query

from fluents.annotation.labels import majority_answer
from fluents.web.annotation_decisions import Judgement
from fluents.web.annotation_members import Member
from fluents.web.annotation_owner_resources import (
    BulkAccepted,
    BulkGiven,
    ChecksPage,
    Disagreement,
    DisagreementPage,
    GivenAnswer,
)
from fluents.web.annotation_resources import ItemShown
from fluents.web.annotation_services import (
    Adjudicator,
    Annotating,
    AnnotationServices,
    StageQuery,
    item_shown,
    stage_number,
)

router = APIRouter()
PAGE = 50
Offset = Annotated[int, Query(ge=0, le=10_000_000)]


@router.get("/disagreements")
def disagreements(
    services: Annotating, member: Adjudicator, stage: StageQuery = None, offset: Offset = 0
) -> DisagreementPage:
    """Items that everybody has decided and on which people disagree, with the least agreement first."""
    project = services.projects.get(member.project)
    number = stage_number(services, project, stage)
    figures = services.figures.stage(project, number)
    ids = list(figures.open)
    shown = services.decisions.answers(project.id, ids[offset : offset + PAGE])
    following = offset + PAGE
    return DisagreementPage(
        items=[
            Disagreement(
                item=item_shown(one.item),
                answers=[GivenAnswer(author=author, answer=dict(answer)) for author, answer in one.by_author.items()],
                agreement=figures.agreement.by_item[one.item.id],
            )
            for one in shown
        ],
        total=len(ids),
        next=following if following < len(ids) else None,
    )


@router.post("/adjudicate/bulk")
def adjudicate_many(services: Annotating, member: Adjudicator, given: BulkGiven) -> BulkAccepted:
    """Accept the majority's answer for all items whose agreement is at least `threshold`. Each of these is a separate
    decision, which can be undone."""
    project = services.projects.get(member.project)
    figures = services.figures.stage(project, stage_number(services, project, given.stage))
    wanted = [
        item
        for item, answer in figures.open.items()
        if answer is not None and figures.agreement.by_item[item] >= given.threshold
    ]
    accepted = 0
    for item in wanted:
        [now] = services.decisions.answers(project.id, [item])  # the figures may be older than somebody's ruling
        most = majority_answer(now)
        if now.ruling is None and now.is_decided and most is not None:
            services.decisions.give(member, Judgement(uuid4().hex, item, most, adjudicates=True))
            accepted += 1
    return BulkAccepted(accepted=accepted)


@router.get("/checks")
def checks(services: Annotating, member: Adjudicator, stage: StageQuery = None) -> ChecksPage:
    """Sampled items that no expert has checked yet. To check one, send a decision with `checks`."""
    project = services.projects.get(member.project)
    figures = services.figures.stage(project, stage_number(services, project, stage))
    return ChecksPage(items=_items(services, member, figures.unchecked[:PAGE]), total=len(figures.unchecked))


def _items(services: AnnotationServices, member: Member, ids: tuple[str, ...]) -> list[ItemShown]:
    return [item_shown(services.places.show(member, item).item) for item in ids]
