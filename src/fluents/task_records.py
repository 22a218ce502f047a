"""The values of the tasks that use traces: CREPE's questions and Proc2PDDL's planning domains."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from fluents.records import FrozenDict, Procedure, Provenance, Record, StateChange, Text

NO_CHANGE, CANNOT_TELL = "no change", "cannot tell"
"""What `fluents ask` says beside CREPE's own words."""


class Likelihood(Record):
    """After a step, something has become more or less likely than before it (CREPE)."""

    step: int
    """Counted from 0, which is the state before anything is done."""
    change: Text
    """The file's own word: "more likely", "less likely", rarely another. `fluents ask` also says "no change", and
    "cannot tell" where nothing supports a judgement."""
    event: str | None = None
    entity: str | None = None
    attribute: str | None = None
    predicted: bool = False
    """Said by a model rather than an annotator."""
    rating: Annotated[float, Field(ge=1, le=5)] | None = None
    """How likely it is after the step, from 1 to 5, in the judgement of a model."""
    reason: str | None = None
    support: tuple[StateChange, ...] = ()
    """The changes of the step that a model's judgement rests on."""


class CrepeCase(Record):
    """A procedure and how likely events and entity states become along it."""

    procedure: Procedure
    """Its steps leave out the file's step 0, "Start."."""
    likelihoods: tuple[Likelihood, ...] = ()
    annotator: str | None = None
    provenance: Provenance = Provenance()
    """How a model's judgements were made."""

    @property
    def id(self) -> str:
        return self.procedure.id

    @property
    def events(self) -> tuple[str, ...]:
        """The events asked about, in the order of their first mention by an annotator."""
        return tuple(dict.fromkeys(e.event for e in self.likelihoods if e.event is not None and not e.predicted))

    @property
    def asked(self) -> tuple[str, ...]:
        """The events that a model was asked about, in their order."""
        return tuple(dict.fromkeys(e.event for e in self.likelihoods if e.event is not None and e.predicted))


class PddlTask(Record):
    """A wikiHow text and the planning domain and problems written for it (Proc2PDDL).

    The PDDL is held as text: the published files are not strict PDDL, and reading them is planning's work.
    """

    procedure: Procedure
    text: str
    """The whole article."""
    domain: str
    domain_header: str
    actions: str
    """The actions' names and one-line descriptions."""
    action_step_map: str
    """Which action comes from which step."""
    problems: Annotated[dict[str, str], AfterValidator(FrozenDict)]
    """Problem name to PDDL."""

    @property
    def id(self) -> str:
        return self.procedure.id
