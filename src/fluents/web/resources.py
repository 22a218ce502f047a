"""What the REST API takes and gives; `trace_resources.py` has what is about one or two traces."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from fluents.records import Reject, StateChange

MAX_STEPS = 1000
"""Of one document."""
MAX_STEP_LENGTH = 20_000
"""Characters; also of a goal, which may be any heading of a text."""
MAX_NAME = 300
"""Characters of a file's name, of a search."""

JobState: TypeAlias = Literal["queued", "running", "done", "cancelled", "failed"]

Name: TypeAlias = Annotated[str, StringConstraints(max_length=MAX_NAME)]
GoalText: TypeAlias = Annotated[str, StringConstraints(max_length=MAX_STEP_LENGTH)]
StepText: TypeAlias = Annotated[str, StringConstraints(pattern=r"\S", max_length=MAX_STEP_LENGTH)]


class Given(BaseModel):
    """What a client sends: no field goes unnoticed."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


# The server


class TrackerInfo(BaseModel):
    """A tracker that jobs can name."""

    name: str
    kind: Literal["embedded", "endpoint", "replay"]
    about: str
    ready: bool
    """False where the model must be fetched first: the job does that."""
    bytes: int | None = None
    """What is fetched then."""


class Limits(BaseModel):
    """What is refused."""

    body_bytes: int
    backup_bytes: int
    steps: int = MAX_STEPS
    step_length: int = MAX_STEP_LENGTH
    queued_jobs: int
    """Of one client, at once."""


class ServerInfo(BaseModel):
    """What this server can do."""

    version: str
    trackers: list[TrackerInfo]
    default_tracker: str
    limits: Limits
    needs_token: bool
    signed_in: bool


class Health(BaseModel):
    """Whether it works."""

    status: Literal["ok"]
    version: str
    store: Literal["sqlite", "postgresql"]
    queued: int
    running: str | None
    """The id of the running job."""


class SignIn(Given):
    """A token, for a cookie that stands for it."""

    token: Annotated[str, StringConstraints(max_length=1000)]


class ErrorAnswer(BaseModel):
    """Every answer from 400 on."""

    error: str
    """What is wrong, for people."""
    where: str | None = None
    fix: str | None = None


# Documents


class TextGiven(Given):
    """A text, Markdown or the source of a web page."""

    text: str
    goal: GoalText | None = None
    """In place of the goal that the text names."""
    name: Name | None = None
    """Where the text comes from, for people."""


class Segmented(BaseModel):
    """A text as steps."""

    goal: str
    steps: list[str]
    warnings: list[str] = []


class StepsGiven(Given):
    """Steps as a person corrected them; None is as they were read."""

    goal: GoalText | None = None
    steps: Annotated[list[StepText], Field(min_length=1, max_length=MAX_STEPS)] | None = None


class TraceSummary(BaseModel):
    """A trace in a list."""

    id: str
    document: str
    job: str | None
    """None of one that was uploaded."""
    name: str
    """The tracker, or the file it came from."""
    created: datetime
    steps: int
    changes: int
    corrections: int


class Job(BaseModel):
    """A document being tracked."""

    id: str
    document: str
    goal: str
    state: JobState
    tracker: str
    options: dict[str, Any]
    created: datetime
    started: datetime | None
    ended: datetime | None
    steps: int
    done: int
    """Finished steps."""
    ahead: int | None
    """How many jobs come before it, while it is queued."""
    trace: str | None
    """The id of its trace, when it is done."""
    error: str | None


class DocumentSummary(BaseModel):
    """A document in a list."""

    id: str
    goal: str
    name: str | None
    first_step: str
    """Its first words, for where there is neither goal nor name."""
    created: datetime
    steps: int
    traces: int
    state: JobState | None
    """Of its latest job."""


class Document(BaseModel):
    """A text, its steps, and what was tracked of it."""

    id: str
    goal: str
    """As corrected, or as read; likewise `steps`."""
    steps: list[str]
    read_goal: str
    """As read from the text; likewise `read_steps`."""
    read_steps: list[str]
    corrected: bool
    text: str
    """As it was given."""
    name: str | None
    created: datetime
    language: str | None
    """ISO 639-1, or null where it cannot be told."""
    warnings: list[str]
    jobs: list[Job]
    traces: list[TraceSummary]


class DocumentPage(BaseModel):
    """A part of the archive, newest first."""

    items: list[DocumentSummary]
    total: int
    next: int | None
    """The offset of the next page."""


class Uploaded(BaseModel):
    """What a file held: a text is one document; records are one each, with a trace where they have changes."""

    documents: list[DocumentSummary]
    traces: list[TraceSummary]


# Jobs


class JobGiven(Given):
    """How to track a document. What is left out is as `fluents track` has it."""

    tracker: Name | None = None
    """A name out of `/server`; None is its default."""
    samples: Annotated[int, Field(ge=1, le=64)] | None = None
    max_changes: Annotated[int, Field(ge=1, le=100)] | None = None
    min_confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1


class StepDone(BaseModel):
    """The event `step`: a step was tracked."""

    step: int
    text: str
    changes: list[StateChange]
    rejects: list[Reject] = []
    done: int
    steps: int
    seconds_left: float | None


class JobProgress(BaseModel):
    """The event `progress`, which has no id: nobody needs it again."""

    phase: Literal["starting", "fetching", "tracking"]
    """`fetching` counts bytes of the model; the others count steps."""
    done: float
    total: float
    seconds_left: float | None
    draft: str | None = None
    """The line the model wrote last, which may or may not become a change."""


# Search


class Found(BaseModel):
    """A change that a search found, in its current words."""

    document: str
    trace: str
    goal: str
    step: int
    text: str
    position: int
    entity: str
    attribute: str
    before: str
    after: str
    confidence: float | None


class FoundPage(BaseModel):
    """A part of what was found, newest first."""

    items: list[Found]
    total: int
    next: int | None


class Restored(BaseModel):
    """What a backup brought; what was there already is left as it is."""

    documents: int
    jobs: int
    traces: int
    corrections: int
    skipped: int
