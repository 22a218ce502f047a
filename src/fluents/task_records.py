"""The values of the tasks that use traces: CREPE's questions and Proc2PDDL's planning domains."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from fluents.records import FrozenDict, Procedure, Record, Text


class Likelihood(Record):
    """After a step, something has become more or less likely than before it (CREPE)."""

    step: int
    """Counted from 0, which is the state before anything is done."""
    change: Text
    """The file's own word: "more likely", "less likely", rarely another."""
    event: str | None = None
    entity: str | None = None
    attribute: str | None = None
    predicted: bool = False
    """Said by a model rather than an annotator."""


class CrepeCase(Record):
    """A procedure and how likely events and entity states become along it."""

    procedure: Procedure
    """Its steps leave out the file's step 0, "Start."."""
    likelihoods: tuple[Likelihood, ...] = ()
    annotator: str | None = None

    @property
    def id(self) -> str:
        return self.procedure.id

    @property
    def events(self) -> tuple[str, ...]:
        """The events asked about, in the order of their first mention by an annotator."""
        return tuple(dict.fromkeys(e.event for e in self.likelihoods if e.event is not None and not e.predicted))


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
