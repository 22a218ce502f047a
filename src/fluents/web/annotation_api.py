"""The API for those who annotate: joining, the next item, decisions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from fluents.version import __version__
from fluents.web import annotation_adjudicator_api, annotation_owner_api
from fluents.web.annotation_blind_passes import keep_blind_pass
from fluents.web.annotation_decisions import UNDOABLE, Judgement
from fluents.web.annotation_members import Member
from fluents.web.annotation_resources import (
    AnnotationHealth,
    BlindPassGiven,
    DecisionGiven,
    DecisionKept,
    DecisionListed,
    DecisionUndone,
    GuidelineText,
    Handed,
    InvitationCode,
    InvitationInfo,
    Joined,
    JoinGiven,
    KeysGiven,
    LeaseShown,
    Me,
    MyWork,
    NextGiven,
    ProjectInfo,
    PromptShown,
    RecallShown,
    SuggestionShown,
    UndoGiven,
)
from fluents.web.annotation_services import (
    COOKIE,
    Annotating,
    AnnotationServices,
    Annotator,
    Someone,
    decisions_listed,
    handed,
    member_info,
    remember,
    stage_infos,
)
from fluents.web.annotation_suggestions import SuggestedKind
from fluents.web.guard import RefusedError
from fluents.web.resources import ErrorAnswer, SignIn

ItemPath = Annotated[str, Path(pattern="^[0-9a-f]{20}$", examples=["0123456789abcdef0123"])]
DecisionPath = Annotated[str, Path(pattern="^[A-Za-z0-9_-]{8,64}$", examples=["decision-0001"])]
BesidesQuery = Annotated[list[Annotated[str, Query(pattern="^[0-9a-f]{20}$")]], Query(max_length=50)]
KnownQuery = Annotated[list[Annotated[str, Query(max_length=300)]], Query(max_length=100)]
NOTHING: dict[int | str, dict[str, Any]] = {204: {"description": "No item is left for this member"}}

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (400, 401, 403, 404, 408, 409, 413, 422)
}
router = APIRouter(prefix="/api/v1/annotation", responses=_ERRORS)


@router.get("/health")
def health(services: Annotating) -> AnnotationHealth:
    """Whether the server works."""
    services.projects.all()
    return AnnotationHealth(status="ok", version=__version__, store=services.store.kind)


# Who I am


@router.post("/join/about")
def about_invitation(services: Annotating, given: InvitationCode) -> InvitationInfo:
    """Tell somebody who has an invitation what it is for, before they join."""
    found = services.members.invitation(given.invitation, services.only)
    project = services.projects.get(found.project)
    return InvitationInfo(project=project.name, role=found.role, name=found.member.name if found.member else None)


@router.post("/join", status_code=201)
def join(services: Annotating, given: JoinGiven, request: Request, response: Response) -> Joined:
    """Join a project with an invitation. The answer contains the member's token, and also sets it as a cookie."""
    member, token = services.members.join(given.invitation, given.name, consented=given.consent, only=services.only)
    remember(response, request, token)
    project = services.projects.get(member.project)
    return Joined(
        member=member_info(member),
        role=member.role,
        project=ProjectInfo(id=project.id, name=project.name),
        token=token,
    )


@router.post("/session", status_code=204)
def sign_in(services: Annotating, given: SignIn, request: Request) -> Response:
    """Sign in with a token. The answer sets it as a cookie, so that the page does not have to store it."""
    services.member(given.token)
    answer = Response(status_code=204)
    remember(answer, request, given.token)
    return answer


@router.delete("/session", status_code=204)
def sign_out() -> Response:
    """Sign out: delete the cookie."""
    answer = Response(status_code=204)
    answer.delete_cookie(COOKIE)
    return answer


@router.get("/me")
def me(services: Annotating, member: Someone) -> Me:
    """The member who asks, their project, and how many items of each stage are decided."""
    project = services.projects.get(member.project)
    stages = stage_infos(services, project)
    now = next((stage.number for stage in stages if stage.state == "open"), None)
    guideline = services.projects.guideline(project.id)
    tally = services.decisions.tally(member)
    return Me(
        member=member_info(member),
        project=ProjectInfo(id=project.id, name=project.name),
        stage=None if now is None else {"number": now, **project.design.stage(now).model_dump(mode="json")},
        stages=stages,
        guideline=GuidelineText(version=guideline.version, text=guideline.text),
        consent=project.design.consent,
        consented=member.consented is not None or project.design.consent is None,
        mine=MyWork(done=tally.done, today=tally.today),
        keys=member.keys,
    )


@router.put("/me/keys", status_code=204)
def set_keys(services: Annotating, member: Someone, given: KeysGiven) -> Response:
    """Replace the member's own keys on the page."""
    services.members.set_keys(member, given)
    return Response(status_code=204)


@router.post("/me/consent", status_code=204)
def consent(services: Annotating, member: Someone) -> Response:
    """Agree to the terms of the project."""
    services.members.consent(member)
    return Response(status_code=204)


# Items


@router.post("/next", response_model=Handed, responses=NOTHING)
def next_item(services: Annotating, member: Annotator, given: NextGiven) -> Handed | Response:
    """Get the next item: one that the member already works on, or a free one, which is then reserved for them."""
    lease = services.places.next(member, given.besides, given.release, given.stage)
    return Response(status_code=204) if lease is None else handed(lease)


@router.get("/items/{item_id}")
def show_item(services: Annotating, member: Annotator, item_id: ItemPath) -> Handed:
    """Show an item that the member works on or has decided. Adjudicators can see every item of their project."""
    return handed(services.places.show(member, item_id))


@router.post("/items/{item_id}/renew")
def renew(services: Annotating, member: Annotator, item_id: ItemPath) -> LeaseShown:
    """Reserve an item for longer."""
    return LeaseShown(until=services.places.renew(member, item_id).until)


@router.post("/items/{item_id}/release", status_code=204)
def release(services: Annotating, member: Annotator, item_id: ItemPath) -> Response:
    """Give an item back without a decision."""
    services.places.release(member, item_id)
    return Response(status_code=204)


@router.post("/items/{item_id}/blind")
def write_blind_pass(services: Annotating, member: Annotator, item_id: ItemPath, given: BlindPassGiven) -> Handed:
    """Save the changes that the member wrote before seeing the draft. The answer contains the draft. If they are sent
    again, the first ones count."""
    services.places.show(member, item_id)  # or it is not mine
    keep_blind_pass(services.store, member, item_id, given.changes)
    return handed(services.places.show(member, item_id))


# Decisions


@router.post("/decisions", status_code=201, responses={200: {"model": DecisionKept}})
def decide(
    services: Annotating,
    member: Annotator,
    given: DecisionGiven,
    response: Response,
    next: bool = False,
    besides: BesidesQuery = [],  # noqa: B006 - FastAPI copies it
) -> DecisionKept:
    """Decide on an item. If it is sent twice, it is stored once. A different decision with the same id is refused."""
    if (given.adjudicates or given.checks) and not member.may("adjudicator"):
        raise RefusedError(
            403, "only adjudicators and owners of the project can do this", "ask an owner of the project to do it"
        )
    kept = services.decisions.give(member, Judgement(**given.model_dump()))
    response.status_code = 201 if kept.is_new else 200
    following = _following(services, member, besides) if next else None
    return DecisionKept(id=kept.decision.id, number=kept.number, time=kept.decision.time, next=following)


def _following(services: AnnotationServices, member: Member, besides: list[str]) -> Handed | None:
    lease = services.places.next(member, besides)
    return None if lease is None else handed(lease)


@router.post("/decisions/{decision_id}/undo", status_code=201, responses={200: {"model": DecisionUndone}})
def undo(
    services: Annotating, member: Annotator, decision_id: DecisionPath, given: UndoGiven, response: Response
) -> DecisionUndone:
    """Undo one of the member's latest twenty decisions. The history keeps the decision and the undo."""
    kept = services.decisions.undo(member, decision_id, given.id)
    response.status_code = 201 if kept.is_new else 200
    again = handed(services.places.show(member, kept.decision.item))
    return DecisionUndone(
        id=kept.decision.id,
        number=kept.number,
        time=kept.decision.time,
        item=again.item,
        lease=again.lease,
        answer=again.answer,
    )


@router.get("/mine")
def mine(
    services: Annotating, member: Someone, limit: Annotated[int, Query(ge=1, le=100)] = UNDOABLE
) -> list[DecisionListed]:
    """The member's latest decisions, newest first."""
    project = services.projects.get(member.project)
    return decisions_listed(project, services.decisions.mine(member, limit))


# While somebody writes


@router.get("/suggest")
def suggest(
    services: Annotating,
    member: Annotator,
    item: Annotated[str, Query(pattern="^[0-9a-f]{20}$")],
    kind: SuggestedKind,
    q: Annotated[str, Query(max_length=300)] = "",
    known: KnownQuery = [],  # noqa: B006 - FastAPI copies it
) -> list[SuggestionShown]:
    """Suggest completions of what the member types (`q`), and names that may mean the same. Authors get only their own
    words, words of the text and the attributes of the design. `known` lists names that the member has written in this
    form and not sent yet."""
    found = services.suggestions.suggest(member, item, kind, q, known)
    return [SuggestionShown(text=one.text, same_as=one.same_as, score=one.score) for one in found]


@router.get("/recall")
def recall(
    services: Annotating, member: Annotator, item: Annotated[str, Query(pattern="^[0-9a-f]{20}$")]
) -> RecallShown:
    """Entities that the project's draft mentions and nobody else does. Authors must answer the item first."""
    found = services.suggestions.recall(member, item)
    return RecallShown(prompts=[PromptShown(**one._asdict()) for one in found])


router.include_router(annotation_adjudicator_api.router)
router.include_router(annotation_owner_api.router)
