"""Stages that take away: selection, vetting (OpenPI), and cleaning in three stages (OpenPI-C)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from fluents.annotation.design import Sight, StageDesign
from fluents.annotation.items import ItemAnswers, change_payload, procedure_payload
from fluents.annotation.outcomes import AskedItem, Removal, StageSources, TraceOutcome, without_steps
from fluents.records import Procedure, StateChange, Trace

FEWEST_STEPS = 3
"""OpenPI-C keeps no procedure with fewer steps."""

# Selection

_STATIVE = {
    "agree": "agree agrees agreed agreeing",
    "believe": "believe believes believed believing",
    "belong": "belong belongs belonged belonging",
    "deserve": "deserve deserves deserved",
    "dislike": "dislike dislikes disliked disliking",
    "doubt": "doubt doubts doubted doubting",
    "hate": "hate hates hated hating",
    "hear": "hear hears heard",
    "hope": "hope hopes hoped hoping",
    "imagine": "imagine imagines imagined imagining",
    "know": "know knows knew knowing",
    "love": "love loves loved loving",
    "own": "owns owned owning",
    "possess": "possess possesses possessed possessing",
    "realize": "realize realizes realized realizing realise realises realised realising",
    "recognize": "recognize recognizes recognizing recognise recognises recognising",
    "remember": "remember remembers remembered remembering",
    "see": "see sees saw seen seeing",
    "seem": "seem seems seemed seeming",
    "suppose": "suppose supposes supposing",
    "think": "think thinks thought thinking",
    "understand": "understand understands understood understanding",
    "want": "want wants wanted wanting",
    "wish": "wish wishes wishing",
}
"""Verbs of states of mind, of perception and of possession, with their forms, except for forms that are mostly
adjectives ("known", "own"). "Need", "enjoy" and "prefer" are left out, because OpenPI's articles have them."""

_VERB_OF = {form: verb for verb, forms in _STATIVE.items() for form in forms.split()}
_WORD = re.compile(r"[a-z]+")
_BEFORE_A_NOUN = frozenset({"a", "an", "the", "no", "any", "your", "my", "his", "her", "its", "our", "their", "of"})


def stative_verbs(procedure: Procedure) -> list[str]:
    """The verbs of its steps that name a state instead of an action; nouns such as "the need" do not count."""
    found: dict[str, None] = {}
    for step in procedure.steps:
        words = _WORD.findall(step.lower())
        for before, word in zip(["", *words], words, strict=False):
            if word in _VERB_OF and before not in _BEFORE_A_NOUN:
                found[_VERB_OF[word]] = None
    return list(found)


def selection_facts(procedure: Procedure, stage: StageDesign) -> dict[str, Any]:
    """What the filters of a selection stage see in a procedure."""
    steps, stative = len(procedure.steps), stative_verbs(procedure)
    return {
        "steps": steps,
        "stative": stative,
        "passes": stage.min_steps <= steps <= stage.max_steps and not stative,
    }


def selection_failure(procedure: Procedure, stage: StageDesign) -> str | None:
    """Why a procedure fails the filters, by the first that it fails."""
    if len(procedure.steps) < stage.min_steps:
        return f"fewer than {stage.min_steps} steps"
    if len(procedure.steps) > stage.max_steps:
        return f"more than {stage.max_steps} steps"
    return "stative verbs" if stative_verbs(procedure) else None


def selection_report(traces: Iterable[Trace], stage: StageDesign | None = None) -> dict[str, int]:
    """How many procedures there are, how many each filter removes in turn, and how many are left."""
    stage = stage or StageDesign(kind="select")
    failures = Counter(selection_failure(trace.procedure, stage) for trace in traces)
    reasons = (f"fewer than {stage.min_steps} steps", f"more than {stage.max_steps} steps", "stative verbs")
    return {
        "procedures": failures.total(),
        **{reason: failures[reason] for reason in reasons},
        "left": failures[None],
    }


def ask_selection(stage: StageDesign, trace: Trace, _: StageSources) -> Iterator[AskedItem]:
    if not stage.filtered or selection_failure(trace.procedure, stage) is None:
        yield AskedItem({"procedure": procedure_payload(trace), "facts": selection_facts(trace.procedure, stage)})


def decide_selection(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:
    failure = selection_failure(trace.procedure, stage) if stage.filtered else None
    if failure is not None:
        return TraceOutcome(None, [Removal("procedure", trace.id, failure)])
    return _unless_most(trace, answers, "keep", "not selected")


def _unless_most(trace: Trace, answers: Sequence[ItemAnswers], field: str, reason: str) -> TraceOutcome:
    """The trace, unless most judges answer no."""
    if any(one.votes(field, False) >= one.majority for one in answers):
        return TraceOutcome(None, [Removal("procedure", trace.id, reason), *_retired(trace, reason)])
    return TraceOutcome(trace)


# Vetting


def sights_of(change: StateChange) -> tuple[Sight, ...]:
    """The modalities in which a change was written; one of which nothing is known was written without images."""
    if change.modality == "both":
        return ("with_image", "without_image")
    return (change.modality or "without_image",)


def ask_vetting(stage: StageDesign, trace: Trace, _: StageSources) -> Iterator[AskedItem]:  # noqa: ARG001
    for position, change in enumerate(trace.changes):
        for sight in sights_of(change):
            payload = {
                "procedure": procedure_payload(trace, images=sight == "with_image"),
                "change": change_payload(change),
                "modality": sight,
                "position": position,
            }
            yield AskedItem(payload, key=(position, change_payload(change), sight))


def decide_vetting(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """A change stays where most judges of a modality in which it was written call it valid."""
    confirmed: dict[int, set[Sight]] = {}
    tallies: Counter[str] = Counter()
    for one in answers:
        if one.votes("valid", True) >= one.majority:
            confirmed.setdefault(one.item.payload["position"], set()).add(one.item.payload["modality"])
        for answer in one.answers:
            if not answer["valid"]:
                tallies[answer["reason"] or "no reason given"] += 1
    decided = {one.item.payload["position"] for one in answers if one.is_decided}
    kept: list[StateChange] = []
    removed = []
    for position, change in enumerate(trace.changes):
        sights = confirmed.get(position, set())
        if not sights:
            reason = "invalid" if position in decided else "not judged by enough people"
            removed.append(Removal("change", trace.id, reason, change.step, change.templated))
        elif change.modality == "both" and len(sights) == 1:
            kept.append(change.replace(modality=next(iter(sights))))
        else:
            kept.append(change)
    return TraceOutcome(trace.replace(changes=tuple(kept)), removed, tallies)


# Cleaning


def ask_whole_procedure(stage: StageDesign, trace: Trace, _: StageSources) -> Iterator[AskedItem]:  # noqa: ARG001
    yield AskedItem({"procedure": procedure_payload(trace)})


def decide_procedures(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    return _unless_most(trace, answers, "procedure", "not a procedure")


def decide_steps(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """A step goes, with its changes, where most judges call it invalid."""
    removed = {
        step
        for one in answers
        for step in range(1, len(trace.procedure.steps) + 1)
        if sum(not answer["valid"][step - 1] for answer in one.answers) >= one.majority
    }
    return _dropped(trace, removed, "invalid step")


def ask_changes(stage: StageDesign, trace: Trace, _: StageSources) -> Iterator[AskedItem]:  # noqa: ARG001
    for position, change in enumerate(trace.changes):
        shown = change_payload(change)
        payload = {"procedure": procedure_payload(trace), "change": shown, "position": position}
        yield AskedItem(payload, key=(position, shown))


def decide_changes(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """A change goes where one of two judges doubts it, or most of more judges; then come OpenPI-C's two heuristics."""
    tallies: Counter[str] = Counter()
    doubtful: dict[int, str] = {}
    for one in answers:
        verdicts = [answer["verdict"] for answer in one.answers]
        tallies.update(verdicts)
        needed = 1 if one.item.judges <= 2 else one.majority
        if len(verdicts) - verdicts.count("certain") >= needed:
            worst = "impossible" if "impossible" in verdicts else "uncertain"
            doubtful[one.item.payload["position"]] = worst
    removed = [
        Removal("change", trace.id, doubtful[position], change.step, change.templated)
        for position, change in enumerate(trace.changes)
        if position in doubtful
    ]
    kept = tuple(change for position, change in enumerate(trace.changes) if position not in doubtful)
    left = final_heuristics(trace.replace(changes=kept))
    return TraceOutcome(left.trace, [*removed, *left.removed], tallies)


def final_heuristics(trace: Trace) -> TraceOutcome:
    """OpenPI-C's last rules: steps without changes go, then procedures with fewer than three steps."""
    changing = {change.step for change in trace.changes}
    empty = {step for step in range(1, len(trace.procedure.steps) + 1) if step not in changing}
    found = _dropped(trace, empty, "no changes left")
    if found.trace is not None and len(found.trace.procedure.steps) < FEWEST_STEPS:
        few = Removal("procedure", trace.id, f"fewer than {FEWEST_STEPS} steps left")
        return TraceOutcome(None, [*found.removed, few, *_retired(trace, few.reason, but=empty)])
    return found


def _dropped(trace: Trace, steps: set[int], reason: str) -> TraceOutcome:
    """The trace without these steps; their changes are named with them."""
    removed = []
    for step in sorted(steps):
        removed.append(Removal("step", trace.id, reason, step))
        removed += [Removal("change", trace.id, reason, step, change.templated) for change in trace.at(step)]
    left = without_steps(trace, steps)
    if left is None:
        removed.append(Removal("procedure", trace.id, "no steps left"))
    return TraceOutcome(left, removed)


def _retired(trace: Trace, reason: str, but: Collection[int] = ()) -> list[Removal]:
    """The steps and changes that go with their procedure, except for steps that went before."""
    steps = [step for step in range(1, len(trace.procedure.steps) + 1) if step not in but]
    changes = (change for change in trace.changes if change.step in steps)
    return [
        *(Removal("step", trace.id, reason, step) for step in steps),
        *(Removal("change", trace.id, reason, change.step, change.templated) for change in changes),
    ]
