"""What the REST API takes and gives about traces: their changes, corrections, comparisons, questions and plans."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, StringConstraints, model_validator

from fluents.questions import States
from fluents.records import Procedure, Reject
from fluents.task_records import Likelihood
from fluents.web.resources import Given, Name, TraceSummary

Verdict: TypeAlias = Literal["right", "wrong", "edited", "added", "withdrawn"]

Words: TypeAlias = Annotated[str, StringConstraints(max_length=1000)]
SomeWords: TypeAlias = Annotated[str, StringConstraints(pattern=r"\S", max_length=1000)]


class CorrectedWords(Given):
    """A change in a person's words."""

    entity: SomeWords
    attribute: SomeWords
    before: Words
    after: Words


class ChangeView(BaseModel):
    """A change of a trace, what people said of it, and how much its entity matters."""

    position: int
    """What a correction names: the model's changes come first, then those that people added."""
    step: int
    entity: str
    attribute: str
    before: str
    after: str
    """These four as the model (or whoever added it) said them."""
    confidence: float | None
    support: float | None
    mentioned: bool | None
    salience: float | None
    """Of its entity, for the goal, from 0 to 5."""
    verdict: Verdict | None
    """The latest; None where nobody judged, or it was withdrawn."""
    corrected: CorrectedWords | None = None
    """What `edited` made of it."""


class TraceView(TraceSummary):
    """A trace as the page shows it. `/download` has the record."""

    procedure: Procedure
    covered: list[int]
    """The steps that are tracked."""
    shown: list[ChangeView]
    """What the filters leave; all without filters."""
    rejects: list[Reject]
    provenance: dict[str, Any]
    has_confidence: bool
    """Whether `min_confidence` makes sense; likewise `has_support`."""
    has_support: bool


class CorrectionGiven(Given):
    """A judgement on a change, or a change that is missing.

    `right`, `wrong` and `withdrawn` name a change by its position, `edited` gives its new words too, `added` gives the
    step and the words.
    """

    verdict: Verdict
    position: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    step: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    words: CorrectedWords | None = None

    @model_validator(mode="after")
    def _belong_together(self) -> CorrectionGiven:
        wanted = {"step", "words"} if self.verdict == "added" else {"position"}
        wanted |= {"words"} if self.verdict == "edited" else set()
        given = {name for name in ("position", "step", "words") if getattr(self, name) is not None}
        if given != wanted:
            raise ValueError(
                f"a correction with the verdict `{self.verdict}` must contain {' and '.join(sorted(wanted))}, and "
                "nothing else"
            )
        return self


class Correction(BaseModel):
    """A judgement as it was given; a later one on the same change counts."""

    id: str
    trace: str
    position: int
    verdict: Verdict
    step: int
    words: CorrectedWords | None
    created: datetime


class Match(BaseModel):
    """Two changes that say much the same."""

    step: int
    gold: int
    """Position in its trace; likewise `pred`."""
    pred: int
    likeness: float
    """0 to 1 (ROUGE-L)."""
    right: bool
    """Whether that is enough."""


class SideBySide(BaseModel):
    """Two traces of the same steps, as the metric `readers` compares them."""

    gold: TraceView
    pred: TraceView
    matches: list[Match]
    score: dict[str, dict[str, float | None]]
    """Figures by name, such as soft → f1."""
    signature: str
    warnings: list[str]


class QuestionGiven(Given):
    """Something that may or may not be so."""

    question: SomeWords
    states: States = "all"
    min_salience: Annotated[float, Field(ge=0, le=5)] | None = None


class LikelihoodAnswer(BaseModel):
    """How likely it is before step 1 (step 0) and after each step."""

    question: str
    likelihoods: list[Likelihood]


class PlanGiven(Given):
    """What to reach; None is the final states of what is salient."""

    goal: Name | None = None
    min_salience: Annotated[float, Field(ge=0, le=5)] = 4.0
    side_effects: bool = True
    order: bool = False


class PlanFound(BaseModel):
    """What came of it."""

    id: str
    goal: str
    status: Literal["solved", "unsolvable", "gave-up"]
    planner: str
    reason: str
    plan: list[str]
    unreachable: list[dict[str, str]]
    steps: list[int]
    """The steps of the text that the plan takes, in its order."""
    domain: str | None
    problem: str | None
