"""How the llm tracker works: which formulation, and which of the papers' ideas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from fluents.errors import InputError, UnknownNameError
from fluents.trackers.consensus import Consensus

Form: TypeAlias = Literal["schemata", "states", "complete", "whole"]
FORMS: tuple[Form, ...] = get_args(Form)

MAX_SAMPLES = 1000
"""Far more than consensus gains from: a larger number is a typing error, and a costly one."""

DRAWN_TEMPERATURE = 0.7
"""Where several answers are drawn; a single one is the likeliest."""


@dataclass(frozen=True)
class LlmSettings:
    """The default, "states", is OpenPI2.0's pipeline: which attributes of which entities change in each step, then the
    states of each. It gives whole changes, its questions are small enough for small models, and a bad answer costs a
    step or a pair, not the procedure, as it does with "whole"."""

    form: Form = "states"
    """schemata: entities and attributes alone. states: these, then their states. complete: sentences, a question a
    step. whole: a question a procedure."""
    samples: int = 1
    """Answers drawn to each question and agreed on."""
    temperature: float | None = None
    verify: bool = False
    """Whether each predicted pair is asked about again, and dropped if the model no longer says that it changes."""
    econd: bool = False
    """Whether the second question is about an entity (OpenPI-C) instead of an entity's attribute."""
    memory: bool = False
    """Whether a question tells the states that earlier steps left, and names and states carry over (OpenPI-C). Steps
    then follow one another."""
    past: bool = True
    """Whether a question tells the earlier steps. Without them, no step's text can reach another step's answer."""
    shots: int = 0
    """Examples shown with each question."""
    most: int | None = None
    """At most so many changes a step."""
    seed: int = 1

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UnknownNameError(f"unknown `form` {self.form!r}", fix=f"choose one of: {', '.join(FORMS)}")
        if not 1 <= self.samples <= MAX_SAMPLES:
            raise InputError(
                f"`samples` must be from 1 to {MAX_SAMPLES}, not {self.samples}",
                fix=f"give a number from 1 to {MAX_SAMPLES}",
            )
        if not 0 <= self.drawn_at <= 2:  # "not a number" is neither
            raise InputError(f"`temperature` must be from 0 to 2, not {self.drawn_at}", fix="give a number from 0 to 2")
        if self.econd and self.form != "states":
            raise InputError("`econd` works only with `form` states", fix="set `form` to states, or leave out `econd`")
        if self.memory and self.form not in ("states", "complete"):
            raise InputError(
                "`memory` works only with `form` states or complete",
                fix="set `form` to states or complete, or leave out `memory`",
            )

    @property
    def rounds(self) -> int:
        """How often questions are asked about a step, each round depending on the answers of the last."""
        return (2 if self.form == "states" else 1) + self.verify

    @property
    def drawn_at(self) -> float:
        """The temperature."""
        if self.temperature is not None:
            return self.temperature
        return 0.0 if self.samples == 1 else DRAWN_TEMPERATURE

    def consensus(self, *, whole: bool) -> Consensus:
        """How samples are agreed on, as for readers of the local tracker. Pairs without states are all alike in these,
        so that they must not count as one."""
        return Consensus(exact=4, most=self.most or Consensus.most, distinct=whole)
