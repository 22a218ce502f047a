"""The stages of a project: the items each makes, and what its decisions leave."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from fluents.annotation import cleaning, judging, naming, writing
from fluents.annotation.design import ProjectDesign, StageKind
from fluents.annotation.forms import check_answer
from fluents.annotation.items import Decision, Item, ItemAnswers, is_decided, item_id, standing
from fluents.annotation.outcomes import (
    Asks,
    Decides,
    Removal,
    StageOutcome,
    StageSources,
    TraceCounts,
    TraceOutcome,
)
from fluents.errors import InputError
from fluents.records import Trace

__all__ = ["check_answer", "expert_sample", "is_decided", "items", "outcome"]

_STAGES: Mapping[StageKind, tuple[Asks, Decides]] = {
    "select": (cleaning.ask_selection, cleaning.decide_selection),
    "author": (writing.ask_authors, writing.decide_authors),
    "audit": (writing.ask_auditors, writing.decide_audit),
    "vet": (cleaning.ask_vetting, cleaning.decide_vetting),
    "clean-procedures": (cleaning.ask_whole_procedure, cleaning.decide_procedures),
    "clean-steps": (cleaning.ask_whole_procedure, cleaning.decide_steps),
    "clean-changes": (cleaning.ask_changes, cleaning.decide_changes),
    "entities": (naming.ask_entities, naming.decide_entities),
    "attributes": (naming.ask_attributes, naming.decide_attributes),
    "expansions": (naming.ask_expansions, naming.decide_expansions),
    "salience": (naming.ask_salience, naming.decide_salience),
    "judge": (judging.ask_pairs, judging.decide_judging),
    "hallucinations": (judging.ask_hallucinations, judging.decide_judging),
    "correct": (writing.ask_correction, writing.decide_correction),
}


def items(
    design: ProjectDesign,
    stage: int,
    traces: Iterable[Trace],
    *,
    drafts: Iterable[Trace] = (),
    systems: Mapping[str, Iterable[Trace]] | None = None,
) -> Iterator[Item]:
    """The items of a stage, counted from 1, for the traces of the stage before it.

    `drafts` are what people correct; where a procedure has none, they correct its trace.
    `systems` are the predictions that people judge, by the name of the system.
    """
    settings = design.stage(stage)
    asks, _ = _STAGES[settings.kind]
    sources = StageSources(
        {trace.id: trace for trace in drafts},
        {name: {trace.id: trace for trace in found} for name, found in (systems or {}).items()},
        design.seed,
    )
    seen: set[str] = set()
    for trace in traces:
        if trace.id in seen:
            raise InputError(f"two procedures have the same id, {trace.id!r}", fix="give every procedure a unique id")
        seen.add(trace.id)
        for asked in asks(settings, trace, sources):
            yield Item(
                id=item_id(stage, settings.kind, trace.id, *asked.key),
                stage=stage,
                kind=settings.kind,
                procedure=trace.id,
                payload=dict(asked.payload),
                judges=settings.judges,
                secret=dict(asked.secret),
                apart=asked.apart,
            )


def outcome(
    design: ProjectDesign,
    stage: int,
    traces: Iterable[Trace],
    items: Iterable[Item],
    decisions: Iterable[Decision],
) -> StageOutcome:
    """What a stage leaves of these traces. It depends on the decisions alone, not on the order of their authors."""
    settings = design.stage(stage)
    _, decides = _STAGES[settings.kind]
    of_stage = [item for item in items if item.stage == stage]
    known = {item.id for item in of_stage}
    made = [decision for decision in decisions if decision.item in known]
    by_procedure: dict[str, list[ItemAnswers]] = {}
    for one in standing(of_stage, made):
        by_procedure.setdefault(one.item.procedure, []).append(one)
    before = list(traces)
    left: list[Trace] = []
    removed: list[Removal] = []
    tallies: Counter[str] = Counter()
    for trace in before:
        found: TraceOutcome = decides(settings, trace, by_procedure.get(trace.id, ()))
        removed += found.removed
        tallies.update(found.tallies)
        if found.trace is not None:
            left.append(found.trace)
    return StageOutcome(
        settings.kind,
        tuple(left),
        TraceCounts.of(before),
        tuple(removed),
        dict(tallies),
        of_stage,
        made,
    )


def expert_sample(design: ProjectDesign, stage: int, items: Iterable[str]) -> tuple[str, ...]:
    """Of the ids of a stage's items, those that an expert judges as well: a sample that the design's seed fixes."""
    ids = sorted(items)
    count = min(design.stage(stage).expert_check, len(ids))
    return tuple(random.Random(f"{design.seed} {stage}").sample(ids, count))
