"""What the API of annotation projects takes from adjudicators and owners, and gives them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from fluents.annotation.design import MAX_TEXT, Role, StageKind
from fluents.web.annotation_resources import ItemShown, Number, StageInfo
from fluents.web.resources import Given

MAX_USES = 1000
"""How many people one link can let in."""


# The adjudicator's


class GivenAnswer(BaseModel):
    """What somebody answered."""

    author: str
    """The pseudonym."""
    answer: dict[str, Any]


class Disagreement(BaseModel):
    """An item, and what each person answered."""

    item: ItemShown
    answers: list[GivenAnswer]
    agreement: float
    """The share of the most frequent answer."""


class DisagreementPage(BaseModel):
    """Items on which people disagree, those with the least agreement first."""

    items: list[Disagreement]
    total: int
    next: int | None


class BulkGiven(Given):
    """The lowest agreement at which the majority's answer is accepted."""

    stage: Number | None = None
    threshold: Annotated[float, Field(ge=0, le=1)]


class BulkAccepted(BaseModel):
    """How many items were settled."""

    accepted: int


class ChecksPage(BaseModel):
    """Items for an expert to check."""

    items: list[ItemShown]
    total: int


# The owner's


class StageOpenGiven(Given):
    """`force` closes a stage that has undecided items."""

    force: bool = False
    stage: Number | None = None
    """The stage to close, so that the same request sent twice closes one stage only."""


class StageOpened(BaseModel):
    """The stage that is open now; None when all are done."""

    stage: StageInfo | None


class GuidelineGiven(Given):
    """A new version of the guideline."""

    text: Annotated[str, StringConstraints(max_length=MAX_TEXT)]


class InvitationGiven(Given):
    """For whom a link is, and how many people can use it."""

    role: Role = "annotator"
    uses: Annotated[int, Field(ge=1, le=MAX_USES)] = 1
    member: Annotated[str, StringConstraints(pattern="^[A-Za-z0-9]{1,20}$")] | None = None
    """The pseudonym of a member who is to be let in again: they get a new token, and stay who they are."""


class InvitationMade(BaseModel):
    """A link to send to people. It is never shown again."""

    link: str
    role: Role
    uses: int


class InvitationShown(BaseModel):
    """A link that still lets people in; the link itself is kept nowhere."""

    id: str
    role: Role
    uses: int
    """How many more people can join with it."""
    member: str | None
    """The pseudonym of a member whom it lets in again."""
    created: float
    expires: float


class PersonProgress(BaseModel):
    """A member, as the owner sees them."""

    id: str
    name: str
    role: Role
    pseudonym: str
    joined: float
    consented: bool
    access: bool
    """Whether they can sign in."""
    done: int
    """Items that they decided."""
    today: int
    last: float | None
    """When they decided last."""


class PersonAgreed(BaseModel):
    """How well one person agrees with the others."""

    pseudonym: str
    decisions: int
    """Items that they decided."""
    agreement: float | None
    """How often they say what most of the others say."""
    f1: float | None
    """Where people write: of their changes against the others', other words for the same counting as the same."""


class ItemAgreed(BaseModel):
    """How well people agree on an item."""

    item: str
    procedure: str
    agreement: float


class AgreementShown(BaseModel):
    """How well people agree in a stage."""

    stage: int
    kind: StageKind
    level: str
    units: int
    """Questions that at least two people answered."""
    full: float | None
    """The share on which all agree."""
    alpha: float | None
    """Krippendorff's."""
    paraphrase: dict[str, float | None] | None
    """Where people write: alpha and F1 with other words for the same counting as the same."""
    by_scope: dict[str, dict[str, float | None]]
    by_person: list[PersonAgreed]
    by_item: list[ItemAgreed]
    """Those with the least agreement, at most a hundred."""
    expert: dict[str, float | None] | None
    """How often an expert says what the outcome says."""


class OutcomeShown(BaseModel):
    """The result of a stage so far."""

    stage: int
    kind: StageKind
    before: dict[str, int]
    """How many procedures, steps and changes there were; likewise `after`."""
    after: dict[str, int]
    removed: dict[str, int]
    """What was removed and why → how often."""
    tallies: dict[str, int]
    coverage: float | None
    """Of an audit: the share of all changes that were there before."""
    anchoring: dict[str, Any] | None
    """Of a correction after a blind pass: how far the draft pulled."""
    systems: dict[str, Any]
    """Where systems were judged: the score of each."""


class PersonPaid(BaseModel):
    """What one person did and earned."""

    pseudonym: str
    items: int
    changes: int
    seconds: float | None
    amount: float | None
    per_hour: float | None


class PayShown(BaseModel):
    """What each person earned, at the prices in the design."""

    currency: str | None
    people: list[PersonPaid]
