"""What the API of annotation projects takes and gives. Times are seconds since 1970, as decisions have them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Body
from pydantic import AfterValidator, BaseModel, Field, JsonValue, StringConstraints

from fluents.annotation.design import Role, StageKind
from fluents.annotation.items import DecisionId
from fluents.web.resources import Given

ItemId: TypeAlias = Annotated[str, StringConstraints(pattern="^[0-9a-f]{20}$")]
CODE = "^[A-Za-z0-9_-]{8,100}$"


def _whole_code(code: str) -> str:
    """People see this error when they open half a link: it must not show them a pattern."""
    if re.fullmatch(CODE, code) is None:
        raise ValueError("the link of this invitation is incomplete: copy all of it")
    return code


Code: TypeAlias = Annotated[str, AfterValidator(_whole_code), Field(json_schema_extra={"pattern": CODE})]
PersonName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$", max_length=100)
]
KeyName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=20)]
Number: TypeAlias = Annotated[int, Field(ge=1, le=10_000)]

MAX_KEYS = 40


# Members


class JoinGiven(Given):
    """An invitation's code, and the name that the project's owner will see."""

    invitation: Code
    name: PersonName
    consent: bool = False


class InvitationCode(Given):
    """An invitation's code."""

    invitation: Code


class InvitationInfo(BaseModel):
    """What an invitation is for."""

    project: str
    """The name of the project."""
    role: Role
    name: str | None
    """Of a member whom it lets in again."""


class MemberInfo(BaseModel):
    """A member as the members of the same project see them."""

    id: str
    name: str
    role: Role
    pseudonym: str


class ProjectInfo(BaseModel):
    """Which project it is."""

    id: str
    name: str


class Joined(BaseModel):
    """A new member, and their token, which is never shown again."""

    member: MemberInfo
    role: Role
    project: ProjectInfo
    token: str


class StageInfo(BaseModel):
    """A stage, and how far it has come."""

    number: int
    kind: StageKind
    state: Literal["waiting", "open", "done"]
    items: int
    decided: int


class GuidelineText(BaseModel):
    """The guideline in its newest version."""

    version: int
    text: str


class MyWork(BaseModel):
    """How many items the member has decided."""

    done: int
    today: int


class Me(BaseModel):
    """What the page needs at its start."""

    member: MemberInfo
    project: ProjectInfo
    stage: dict[str, Any] | None
    """The open stage: its number, kind, judges and the other settings of its design. None if all are done."""
    stages: list[StageInfo]
    guideline: GuidelineText
    consent: str | None
    """What one must agree to before working."""
    consented: bool
    mine: MyWork
    keys: dict[str, str]


KeysGiven: TypeAlias = Annotated[dict[KeyName, KeyName], Body(max_length=MAX_KEYS)]
"""Which key does what, in the page's words."""


# Items and decisions


class NextGiven(Given):
    """Which items not to send (`besides`), and which item the member gives back (`release`)."""

    stage: Number | None = None
    release: ItemId | None = None
    besides: Annotated[list[ItemId], Field(max_length=50)] = []


class ItemShown(BaseModel):
    """An item, without what annotators must not see."""

    id: str
    stage: int
    kind: StageKind
    procedure: str
    """The id of the procedure."""
    judges: int
    payload: dict[str, Any]


class LeaseShown(BaseModel):
    """Until when an item is reserved for the member."""

    until: float | None
    """None of an item that I have decided."""


class Handed(BaseModel):
    """An item for the member who asks."""

    item: ItemShown
    lease: LeaseShown
    answer: dict[str, Any] | None
    """What I answered last time, if I did."""


class BlindPassGiven(Given):
    """The changes that a member wrote before seeing the draft."""

    changes: list[dict[str, JsonValue]]


class DecisionGiven(Given):
    """A decision. The client makes its id, and sends the decision again until the server acknowledges it."""

    id: DecisionId
    item: ItemId
    answer: dict[str, JsonValue]
    seconds: Annotated[float, Field(ge=0, le=10**7)] | None = None
    undoes: DecisionId | None = None
    adjudicates: bool = False
    checks: bool = False


class DecisionKept(BaseModel):
    """A decision that is in the store."""

    id: str
    number: int
    """In the order of the store."""
    time: float
    next: Handed | None = None
    """The next item, if that was asked for and there is one."""


class UndoGiven(Given):
    """The id of the new decision, which undoes the earlier one."""

    id: DecisionId


class DecisionUndone(DecisionKept):
    """The item is reserved for the member again, unless an earlier answer of theirs now counts."""

    item: ItemShown
    lease: LeaseShown
    answer: dict[str, Any] | None


class DecisionListed(BaseModel):
    """A decision in a list."""

    id: str
    number: int
    item: str
    stage: int
    kind: StageKind
    author: str
    """The pseudonym."""
    answer: dict[str, Any]
    time: float
    seconds: float | None
    undoes: str | None
    undone: bool
    adjudicates: bool
    checks: bool
    guideline: int


class AuditPage(BaseModel):
    """All decisions with their authors and times, newest first."""

    items: list[DecisionListed]
    total: int
    next: int | None


class SuggestionShown(BaseModel):
    """A suggested text. With `same_as`: a name already in use that may mean the same as the typed text."""

    text: str
    same_as: str | None = None
    score: float
    """0 to 1."""


class PromptShown(BaseModel):
    """An entity of the draft that nobody has mentioned yet."""

    entity: str
    attribute: str
    step: int


class RecallShown(BaseModel):
    """What the draft mentions and people do not."""

    prompts: list[PromptShown]


# The server


class AnnotationHealth(BaseModel):
    """Whether the server works."""

    status: Literal["ok"]
    version: str
    store: Literal["sqlite", "postgresql"]
