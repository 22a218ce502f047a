"""Stages in which people write changes: authoring and audit (OpenPI), and the correction of a draft."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fluents.annotation.design import Sight, StageDesign
from fluents.annotation.forms import same_words
from fluents.annotation.grid import contradictions
from fluents.annotation.items import ItemAnswers, change_payloads, procedure_payload
from fluents.annotation.outcomes import AskedItem, StageSources, TraceOutcome
from fluents.records import Annotation, Modality, StateChange, Trace

HELPFUL = ("indirect", "dimension")
"""Types of missed changes that say something new; of the others an audit only counts how many there are."""


class WrittenChange(NamedTuple):
    """A change as one person wrote it."""

    author: str
    change: StateChange
    sight: Sight | None = None


def change_of(value: Mapping[str, Any]) -> StateChange:
    """The change in an answer or in a payload."""
    return StateChange(**{name: value[name] for name in ("step", "entity", "attribute", "before", "after")})


def written_changes(answers: Sequence[ItemAnswers], field: str = "changes") -> list[WrittenChange]:
    """All changes that people wrote, by step, then by author. Those of an adjudicator stand alone."""
    found = []
    for one in answers:
        by_author = one.by_author if one.ruling is None else {"": one.ruling}
        sight = one.item.payload.get("modality")
        for author, answer in by_author.items():
            found += [WrittenChange(author, change_of(value), sight) for value in answer[field] or ()]
    return sorted(found, key=lambda one: (one.change.step, one.author))


def merged(written: Sequence[WrittenChange]) -> tuple[StateChange, ...]:
    """Changes in the same words as one, with the number of its authors and the modalities they wrote in."""
    groups: dict[tuple[Any, ...], list[WrittenChange]] = {}
    for one in written:
        groups.setdefault(same_words(one.change.model_dump()), []).append(one)
    return tuple(
        same[0].change.replace(votes=len({one.author for one in same}), modality=_modality(same))
        for same in groups.values()
    )


def _modality(same: Sequence[WrittenChange]) -> Modality | None:
    sights = {one.sight for one in same if one.sight is not None}
    return "both" if len(sights) > 1 else next(iter(sights), None)


# Authoring


def ask_authors(stage: StageDesign, trace: Trace, _: StageSources) -> Iterator[AskedItem]:
    possible = [sight for sight in stage.modalities if sight == "without_image" or trace.procedure.images]
    for sight in possible or ["without_image"]:
        payload = {
            "procedure": procedure_payload(trace, images=sight == "with_image"),
            "max_changes": stage.max_changes,
            "offered": list(stage.offered),
            "modality": sight,
        }
        yield AskedItem(payload, key=(sight,), apart=trace.id if len(possible) > 1 else None)


def decide_authors(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """The procedure with what its annotators wrote; changes that it had before are not theirs, and go."""
    written = written_changes(answers)
    annotations = tuple(
        Annotation(
            step=one.change.step,
            sentence=one.change.templated,
            entity=one.change.entity,
            attribute=one.change.attribute,
            before=one.change.before,
            after=one.change.after,
            modality=one.sight or "without_image",
        )
        for one in written
    )
    tallies = Counter(str(one.sight) for one in written if one.sight is not None)
    trace = Trace(procedure=trace.procedure, changes=merged(written), annotations=annotations)
    tallies["contradictions"] = sum(
        len(contradictions([change_of(value) for value in answer["changes"]]))
        for one in answers
        for answer in one.answers
    )
    return TraceOutcome(trace, tallies={"written": len(written), **tallies})


# Audit


def ask_auditors(stage: StageDesign, trace: Trace, _: StageSources) -> Iterator[AskedItem]:  # noqa: ARG001
    yield AskedItem({"procedure": procedure_payload(trace), "changes": change_payloads(trace)})


def decide_audit(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """The trace with the changes that were missing, at the end of their steps; the tallies count what they are."""
    missed = [value for one in answers for answer in one.answers for value in answer["missing"]]
    known = {same_words(change.model_dump()) for change in trace.changes}
    tallies = Counter(value["type"] for value in missed)
    helpful = [
        one
        for one in written_changes([_only_helpful(one) for one in answers], "missing")
        if same_words(one.change.model_dump()) not in known
    ]
    changes = sorted((*trace.changes, *merged(helpful)), key=lambda change: change.step)
    totals = {"changes": len(trace.changes), "missing": len(missed)}
    return TraceOutcome(trace.replace(changes=tuple(changes)), tallies={**totals, **tallies})


def _only_helpful(one: ItemAnswers) -> ItemAnswers:
    def helpful(answer: Mapping[str, Any]) -> dict[str, Any]:
        return {"missing": [value for value in answer["missing"] if value["type"] in HELPFUL]}

    ruling = None if one.ruling is None else helpful(one.ruling)
    return ItemAnswers(one.item, {author: helpful(answer) for author, answer in one.by_author.items()}, ruling)


# Correction


def ask_correction(stage: StageDesign, trace: Trace, sources: StageSources) -> Iterator[AskedItem]:
    draft = sources.drafts.get(trace.id, trace)
    steps = len(trace.procedure.steps)
    fitting = draft.replace(
        procedure=trace.procedure, changes=tuple(change for change in draft.changes if change.step <= steps)
    )
    yield AskedItem(
        {
            "procedure": procedure_payload(trace),
            "changes": change_payloads(fitting),
            "blind_first": stage.blind_first,
        }
    )


def decide_correction(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """The changes as people left them. Where nobody corrected the draft, the trace stays as it is."""
    given = [(one, answer) for one in answers for answer in one.answers]
    if not given:
        return TraceOutcome(trace)
    tallies: Counter[str] = Counter()
    for one, answer in given:
        draft = {value["position"]: value for value in one.item.payload["changes"]}
        kept = [value for value in answer["changes"] if value["from"] is not None]
        same = sum(same_words(value) == same_words(draft[value["from"]]) for value in kept)
        tallies += Counter(
            kept=same,
            edited=len(kept) - same,
            added=len(answer["changes"]) - len(kept),
            dropped=len(draft.keys() - {value["from"] for value in kept}),
        )
    changes = merged(written_changes(answers))
    return TraceOutcome(trace.replace(changes=changes), tallies=tallies)
