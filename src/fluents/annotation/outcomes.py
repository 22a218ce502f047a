"""What a stage leaves: the traces that go on, what was removed and why, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fluents.annotation.design import StageDesign
from fluents.annotation.items import Decision, Item, ItemAnswers, standing
from fluents.records import Trace

if TYPE_CHECKING:
    from fluents.annotation.agreement import StageAgreement
    from fluents.annotation.anchoring import Anchoring


class Removal(NamedTuple):
    """Something that does not go on, and why."""

    what: str
    """A "procedure", a "step" or a "change"."""
    procedure: str
    reason: str
    step: int | None = None
    """As the stage's items number it."""
    words: str = ""
    """Of the change."""


@dataclass(frozen=True)
class TraceOutcome:
    """What a stage makes of one trace; None where the procedure does not go on."""

    trace: Trace | None
    removed: Sequence[Removal] = ()
    tallies: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StageSources:
    """What items are made from beside the traces of the stage before."""

    drafts: Mapping[str, Trace] = field(default_factory=dict)
    """By the id of the procedure."""
    systems: Mapping[str, Mapping[str, Trace]] = field(default_factory=dict)
    """By the name of the system and the id of the procedure."""
    seed: int = 0


@dataclass(frozen=True)
class AskedItem:
    """An item before it has an id."""

    payload: Mapping[str, Any]
    key: tuple[Any, ...] = ()
    """What tells it from the procedure's other items of the stage."""
    secret: Mapping[str, Any] = field(default_factory=dict)
    apart: str | None = None


Asks: TypeAlias = Callable[[StageDesign, Trace, StageSources], Iterator[AskedItem]]
Decides: TypeAlias = Callable[[StageDesign, Trace, Sequence[ItemAnswers]], TraceOutcome]


class TraceCounts(NamedTuple):
    """How large a set of traces is."""

    procedures: int
    steps: int
    changes: int

    @classmethod
    def of(cls, traces: Collection[Trace]) -> TraceCounts:
        return cls(
            len(traces),
            sum(len(trace.procedure.steps) for trace in traces),
            sum(len(trace.changes) for trace in traces),
        )


@dataclass(frozen=True)
class StageOutcome:
    """The traces that go on after a stage, and everything to be said of it."""

    kind: str
    traces: tuple[Trace, ...]
    before: TraceCounts
    removed: tuple[Removal, ...] = ()
    tallies: Mapping[str, int] = field(default_factory=dict)
    """Counts of what people said, such as the reasons why changes are invalid."""
    items: Sequence[Item] = ()
    decisions: Sequence[Decision] = ()

    @property
    def after(self) -> TraceCounts:
        return TraceCounts.of(self.traces)

    @property
    def removed_counts(self) -> dict[str, int]:
        """ "change: invalid" → how many, the most frequent first."""
        return dict(Counter(f"{one.what}: {one.reason}" for one in self.removed).most_common())

    @cached_property
    def answers(self) -> list[ItemAnswers]:
        """Each item with the answers that count."""
        return standing(self.items, self.decisions)

    @cached_property
    def agreement(self) -> StageAgreement:
        """How far the people who decided agree."""
        from fluents.annotation.agreement import stage_agreement

        return stage_agreement(self.items, self.decisions)

    @cached_property
    def anchoring(self) -> Anchoring | None:
        """How far the draft pulled those who corrected it; None without a blind pass."""
        from fluents.annotation.anchoring import anchoring

        return anchoring(self.answers) if self.kind == "correct" else None

    @property
    def coverage(self) -> float | None:
        """Of an audit: the share of all changes that were there before; None of other stages."""
        known, missing = self.tallies.get("changes", 0), self.tallies.get("missing", 0)
        return known / (known + missing) if known + missing else None

    def to_dict(self) -> dict[str, Any]:
        """Counts for JSON, without the traces."""
        return {
            "kind": self.kind,
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "removed": self.removed_counts,
            "tallies": dict(self.tallies),
            "coverage": self.coverage,
            "anchoring": self.anchoring.to_dict() if self.anchoring else None,
        }


def without_steps(trace: Trace, removed: Collection[int]) -> Trace | None:
    """The trace without some of its steps and all that is said of them, the others counted anew; None if none is left.

    Questions that the source printed for its steps repeat the steps before them, so they go.
    """
    procedure = trace.procedure
    kept = [step for step in range(1, len(procedure.steps) + 1) if step not in removed]
    if not kept:
        return None
    if len(kept) == len(procedure.steps):
        return trace
    number = {step: place for place, step in enumerate(kept, start=1)}

    def of_steps(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[step - 1] for step in kept) if values else ()

    def renumbered(records: Iterable[Any]) -> tuple[Any, ...]:
        present = (one for one in records if one.step is None or one.step in number)
        return tuple(one if one.step is None else one.replace(step=number[one.step]) for one in present)

    return trace.replace(
        procedure=procedure.replace(
            steps=of_steps(procedure.steps),
            images=of_steps(procedure.images),
            extra={name: value for name, value in procedure.extra.items() if name != "questions"},
        ),
        changes=renumbered(trace.changes),
        covered=None if trace.covered is None else tuple(number[step] for step in trace.covered if step in number),
        rejects=renumbered(trace.rejects),
        salience=renumbered(trace.salience),
        annotations=renumbered(trace.annotations),
        similar=renumbered(trace.similar),
        entities=tuple(
            one.replace(step_votes=of_steps(one.step_votes), step_scores=of_steps(one.step_scores))
            for one in trace.entities
        ),
    )
