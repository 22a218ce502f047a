"""People's judgements on a trace. The model's words stay; what people made of them is a trace of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluents.errors import InputError
from fluents.records import StateChange, Trace
from fluents.web.trace_resources import CorrectedWords, Correction, CorrectionGiven, Verdict


@dataclass(frozen=True)
class JudgedChange:
    """A change at its position, which never moves: first the model's changes, then those that people added."""

    position: int
    change: StateChange
    """In the words of the model, or of whoever added it."""
    verdict: Verdict | None = None
    """The latest; None where there is none, or it was withdrawn."""
    words: CorrectedWords | None = None
    """The latest new words, while the verdict is `edited`."""
    added: bool = False
    """By a person."""

    @property
    def current(self) -> StateChange | None:
        """The change as people left it; None if it is wrong, or an added one that was withdrawn."""
        if self.verdict == "wrong" or self.is_taken_back:
            return None
        if self.words is None:
            return self.change
        # What the model said of its own words does not hold for others.
        return StateChange(step=self.change.step, mentioned=self.change.mentioned, **self.words.model_dump())

    @property
    def is_taken_back(self) -> bool:
        """Whether somebody added it and nobody stands by it any more."""
        return self.verdict is None and self.added


def judged(trace: Trace, corrections: Sequence[Correction]) -> list[JudgedChange]:
    """Every change with the latest judgement on it; `corrections` in the order in which they were given."""
    changes = list(trace.changes)
    latest: dict[int, Correction] = {}
    for one in corrections:
        if one.verdict == "added" and one.words is not None:
            changes.append(StateChange(step=one.step, **one.words.model_dump()))
        latest[one.position] = one
    found = []
    for position, change in enumerate(changes):
        last = latest.get(position)
        verdict = None if last is None or last.verdict == "withdrawn" else last.verdict
        words = last.words if last is not None and verdict == "edited" else None
        found.append(JudgedChange(position, change, verdict, words, position >= len(trace.changes)))
    return found


def corrected(trace: Trace, corrections: Sequence[Correction]) -> Trace:
    """The trace as people left it: without what is wrong, in their words, with what they added at the end of its step.

    What nobody judged stays as it is. The provenance notes how many changes were judged.
    """
    return as_judged(trace, judged(trace, corrections)) if corrections else trace


def as_judged(trace: Trace, changes: Sequence[JudgedChange]) -> Trace:
    """The trace with these changes in place of its own, as people left them."""
    current = [change for one in changes if (change := one.current) is not None]
    note = {"corrected": sum(one.verdict is not None for one in changes)}
    return trace.replace(
        changes=tuple(sorted(current, key=lambda change: change.step)),
        provenance=trace.provenance.replace(decoding={**trace.provenance.decoding, **note}),
    )


def placed(trace: Trace, corrections: Sequence[Correction], given: CorrectionGiven) -> tuple[int, int]:
    """(position, step) of what a new judgement is about; an InputError if there is no such change or step."""
    changes = judged(trace, corrections)
    if given.verdict == "added":
        steps = len(trace.procedure.steps)
        if given.step is None or given.step > steps:
            raise InputError(f"the procedure has no step {given.step}", fix=f"give a step from 1 to {steps}")
        return len(changes), given.step
    if given.position is None or given.position >= len(changes):
        what = f"the trace has no change at position {given.position}"
        fix = f"give a position from 0 to {len(changes) - 1}" if changes else "choose a trace that has changes"
        raise InputError(what, fix=fix)
    return given.position, changes[given.position].change.step
