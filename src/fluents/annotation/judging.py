"""Stages that judge systems, blind to which system said what: OpenPI2.0's error analysis, OpenPI-C's hallucinations."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluents.annotation.design import StageDesign
from fluents.annotation.forms import same_words
from fluents.annotation.items import ItemAnswers, change_payload, item_id, procedure_payload
from fluents.annotation.outcomes import AskedItem, StageSources, TraceOutcome
from fluents.records import StateChange, Trace
from fluents.text.names import bare_name

if TYPE_CHECKING:
    from fluents.scoring.score import Score

GOLD = "gold"
"""The name under which the project's own changes are judged among the systems'."""

UNDECIDED = "undecided"


def _said(trace: Trace, sources: StageSources) -> Iterator[tuple[str, StateChange]]:
    """(system, change) for everything that was said of a procedure; steps that it does not have are left out."""
    for name, one in _traces(trace, sources).items():
        yield from ((name, change) for change in one.changes if change.step <= len(trace.procedure.steps))


def _traces(trace: Trace, sources: StageSources) -> dict[str, Trace]:
    """Whose predictions for a procedure are judged; the project's own only if it has some."""
    gold = {GOLD: trace} if trace.changes else {}
    return gold | {name: found[trace.id] for name, found in sources.systems.items() if trace.id in found}


def _shuffled(values: list[Any], *key: Any) -> list[Any]:
    """In an order that depends on the key alone, so that nobody can tell systems by their place."""
    random.Random(item_id(1, *key)).shuffle(values)
    return values


def ask_pairs(stage: StageDesign, trace: Trace, sources: StageSources) -> Iterator[AskedItem]:  # noqa: ARG001
    """An item for each step, with every pair of entity and attribute that somebody predicts, each once."""
    steps: dict[int, dict[tuple[str, str], tuple[dict[str, str], list[str]]]] = {}
    traces = _traces(trace, sources)
    for system, change in _said(trace, sources):
        pairs = steps.setdefault(change.step, {})
        shown = {"entity": change.entity, "attribute": change.attribute}
        _, systems = pairs.setdefault((bare_name(change.entity), bare_name(change.attribute)), (shown, []))
        if system not in systems:
            systems.append(system)
    for step, found in sorted(steps.items()):
        pairs_of_step = _shuffled([found[key] for key in sorted(found)], sources.seed, trace.id, step)
        yield AskedItem(
            {"procedure": procedure_payload(trace), "step": step, "pairs": [shown for shown, _ in pairs_of_step]},
            key=(step, [shown for shown, _ in pairs_of_step]),
            secret={
                "systems": [systems for _, systems in pairs_of_step],
                "judged": [name for name, one in traces.items() if step in one.covered_steps],
            },
        )


def ask_hallucinations(stage: StageDesign, trace: Trace, sources: StageSources) -> Iterator[AskedItem]:  # noqa: ARG001
    """An item for each change that somebody predicts; the same words of several systems are asked about once."""
    found: dict[tuple[Any, ...], tuple[dict[str, Any], list[str]]] = {}
    for system, change in _said(trace, sources):
        shown = change_payload(change)
        _, systems = found.setdefault(same_words(shown), (shown, []))
        if system not in systems:
            systems.append(system)
    for shown, systems in _shuffled([found[key] for key in sorted(found)], sources.seed, trace.id):
        payload = {"procedure": procedure_payload(trace), "change": shown}
        yield AskedItem(payload, key=(shown,), secret={"systems": systems})


def decide_judging(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """What is judged here is the systems: the trace goes on as it is."""
    tallies = Counter(f"{system}: {verdict}" for system, _, verdict in _verdicts(answers))
    return TraceOutcome(trace, tallies=tallies)


def _verdicts(answers: Iterable[ItemAnswers]) -> Iterator[tuple[str, tuple[str, int], str]]:
    """(system, (procedure, step), verdict) for all that was judged; "missing" is what a system should have said."""
    for one in answers:
        if not one.answers:
            continue
        payload = one.item.payload
        if one.item.kind == "hallucinations":
            yes = one.votes("hallucinated", True) >= one.majority
            for system in one.item.secret["systems"]:
                place = (one.item.procedure, payload["change"]["step"])
                yield system, place, "hallucinated" if yes else "not hallucinated"
            continue
        place = (one.item.procedure, payload["step"])
        sources: list[list[str]] = one.item.secret["systems"]
        known = {system for systems in sources for system in systems}.union(one.item.secret.get("judged", ()))
        for number, systems in enumerate(sources):
            verdict = _most(Counter(answer["verdicts"][number] for answer in one.answers), one.majority)
            for system in systems:
                yield system, place, verdict
            if verdict == "right":
                for system in known.difference(systems):
                    yield system, place, "missing"
        for _ in missing_pairs(one):
            yield from ((system, place, "missing") for system in known)


def missing_pairs(one: ItemAnswers) -> list[dict[str, str]]:
    """The pairs that most judges of a step miss, in the words of the first who wrote them."""
    words: dict[tuple[str, str], dict[str, str]] = {}
    count: Counter[tuple[str, str]] = Counter()
    for answer in one.answers:
        named = {(bare_name(pair["entity"]), bare_name(pair["attribute"])): pair for pair in answer["missing"]}
        count.update(named.keys())
        words = {**named, **words}
    return [dict(words[pair]) for pair in count if count[pair] >= one.majority]


def _most(votes: Counter[str], majority: int) -> str:
    verdict, count = votes.most_common(1)[0]
    return verdict if count >= majority else UNDECIDED


def system_scores(answers: Sequence[ItemAnswers]) -> dict[str, Score]:
    """For each system the score of what people judged, as `fluents eval judgements` gives it."""
    from fluents.metrics import judgements

    names: Mapping[str, str] = {"right": "correct", UNDECIDED: judgements.UNJUDGED}
    pairs: dict[str, list[tuple[str, int, str]]] = {}
    changes: dict[str, dict[tuple[str, int], list[int]]] = {}
    for system, place, verdict in _verdicts(answers):
        if verdict in ("hallucinated", "not hallucinated"):
            count = changes.setdefault(system, {}).setdefault(place, [0, 0])
            count[0] += verdict == "hallucinated"
            count[1] += 1
        else:
            pairs.setdefault(system, []).append((*place, names.get(verdict, verdict)))
    return {system: judgements.error_analysis(found) for system, found in sorted(pairs.items())} | {
        system: judgements.hallucination_score(found) for system, found in sorted(changes.items())
    }
