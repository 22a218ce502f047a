"""A project run by scripted annotators: what its stages keep, how far people agree, and what it costs, before anybody
is paid."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from fluents.annotation.design import ProjectDesign, StageDesign, StageKind
from fluents.annotation.forms import check_answer, is_writable
from fluents.annotation.items import Decision
from fluents.annotation.labels import WRITTEN, labels, majority_answer
from fluents.annotation.outcomes import StageOutcome
from fluents.annotation.pay import pay_of
from fluents.annotation.scripted_people import (
    ErrorRates,
    PlantedShares,
    ScriptedAnnotator,
    Truth,
    planted,
    with_unique_steps,
    words_of,
)
from fluents.annotation.stages import items as items_of
from fluents.annotation.stages import outcome as outcome_of
from fluents.errors import InputError
from fluents.records import Trace
from fluents.text.names import fold

Noun: TypeAlias = Literal["procedures", "steps", "changes"]
Progress: TypeAlias = Callable[[int, int], None]
"""Told how many runs of a stage are done, and how many there are."""

MEASURED: dict[StageKind, Noun] = {
    "select": "procedures",
    "clean-procedures": "procedures",
    "clean-steps": "steps",
    "author": "changes",
    "audit": "changes",
    "vet": "changes",
    "clean-changes": "changes",
    "correct": "changes",
}
"""What a stage keeps or removes; the others add to what is there."""

TABLED: tuple[StageKind, ...] = ("author", "vet", "clean-procedures", "clean-steps", "clean-changes")
"""Stages whose number of judges matters to what they keep."""

ERROR_RATES = (0.05, 0.1, 0.2, 0.3)
MOST_JUDGES = 7
MOST_TABLED = 25
"""Procedures in the table's runs: more change the numbers little."""


@dataclass(frozen=True)
class StageSimulation:
    """What one stage did with scripted annotators."""

    number: int
    kind: StageKind
    judges: int
    items: int
    decisions: int
    full: float | None
    """The share of questions on which all agree."""
    alpha: float | None
    f1: float | None
    """Agreement modulo paraphrase of those who write."""
    right: float | None
    """The share of questions on which the majority is right; where there is a tie, nobody is."""
    noun: Noun | None
    kept: int | None
    precision: float | None
    """Of what was kept, the share that is right."""
    recall: float | None
    """Of what is right, the share that was kept."""
    pay: float | None


@dataclass(frozen=True)
class JudgesNeeded:
    """What a stage would keep with so many judges who err so often."""

    kind: StageKind
    judges: int
    error: float
    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class Simulation:
    """A project run by scripted annotators."""

    stages: Sequence[StageSimulation]
    needed: Sequence[JudgesNeeded] = ()
    currency: str | None = None

    @property
    def pay(self) -> float | None:
        """In all; None where no stage pays."""
        paid = [stage.pay for stage in self.stages if stage.pay is not None]
        return sum(paid) if paid else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "stages": [asdict(stage) for stage in self.stages],
            "needed": [asdict(one) for one in self.needed],
            "pay": self.pay,
            "currency": self.currency,
        }


def simulate(
    design: ProjectDesign,
    traces: Iterable[Trace],
    annotators: Sequence[ErrorRates],
    *,
    seed: int = 0,
    shares: PlantedShares | None = None,
    table: bool = False,
    progress: Progress = lambda *_: None,
) -> Simulation:
    """Run a project on gold traces with annotators who know the gold and err at given rates.

    Authors start from the bare procedures. Where a stage takes something away, `shares` of the material are planted
    first: foreign procedures, steps and changes that it should find. `table` adds what the stages would keep with
    one to seven judges at several error rates.

    >>> rates = [ErrorRates(miss=0.3, invent=0.05, flip=0.1)] * 5
    >>> print(simulate(design_of("soups", "author,vet"), gold, rates).stages[-1].recall)  # doctest: +SKIP
    """
    gold = with_unique_steps(traces)
    _check_gold(design, gold)
    if len(annotators) < (need := _needed_people(design)):
        raise InputError(
            f"the stages need at least {need} annotators, but only {len(annotators)} are simulated",
            fix=f"set `annotators` to {need} or more",
        )
    truth = Truth.of(gold)
    material = planted(gold, _shares_for(design, shares or PlantedShares()), seed)
    people = _people(annotators, truth, gold, seed)
    before: Sequence[Trace] = material
    reports = []
    runs = len(design.stages) + (_table_runs(design, ERROR_RATES) if table else 0)
    for number in range(1, len(design.stages) + 1):
        found = _decided(design, number, before, people, seed, _systems(gold, seed))
        reports.append(_report(design, number, found, truth, gold))
        before = found.traces
        progress(number, runs)

    def later(done: int, _: int) -> None:
        progress(len(design.stages) + done, runs)

    needed = judges_needed(design, gold, seed=seed, shares=shares, progress=later) if table else []
    currency = next((stage.pay.currency for stage in design.stages if stage.pay is not None), None)
    return Simulation(reports, needed, currency)


def _check_gold(design: ProjectDesign, gold: Sequence[Trace]) -> None:
    """Without changes, nobody knows an answer, except in stages about procedures and steps."""
    fix = "choose a file or a dataset with gold traces"
    if not gold:
        raise InputError("the source contains no procedures", fix=fix)
    about_changes = [stage.kind for stage in design.stages if MEASURED.get(stage.kind, "changes") == "changes"]
    if about_changes and not any(trace.changes for trace in gold):
        raise InputError(f"the source contains no changes, but the stage {about_changes[0]} needs some", fix=fix)


def _needed_people(design: ProjectDesign) -> int:
    """How many different people a stage needs at least; nobody writes in two modalities."""
    return max(stage.judges * (len(stage.modalities) if stage.kind == "author" else 1) for stage in design.stages)


def _shares_for(design: ProjectDesign, shares: PlantedShares) -> PlantedShares:
    """Only what some stage looks for is planted; authors make their own mistakes."""
    kinds = {stage.kind for stage in design.stages}
    written = design.stages[0].kind in ("author", "select") or "author" in kinds
    return PlantedShares(
        procedures=shares.procedures if kinds & {"select", "clean-procedures"} else 0,
        steps=shares.steps if "clean-steps" in kinds else 0,
        changes=0 if written or not kinds & {"vet", "clean-changes", "correct"} else shares.changes,
    )


def _people(
    annotators: Sequence[ErrorRates], truth: Truth, gold: Sequence[Trace], seed: int
) -> list[ScriptedAnnotator]:
    inventions = [change for trace in gold for change in trace.changes if is_writable(change)]
    return [
        ScriptedAnnotator(f"S{number}", rates, truth, inventions, seed)
        for number, rates in enumerate(annotators, start=1)
    ]


def _systems(gold: Sequence[Trace], seed: int) -> dict[str, list[Trace]]:
    """A system to judge, a third of whose changes are wrong."""
    return {"simulated": planted(gold, PlantedShares(procedures=0, steps=0, changes=1 / 3), seed + 1)}


def _decided(
    design: ProjectDesign,
    number: int,
    traces: Sequence[Trace],
    people: Sequence[ScriptedAnnotator],
    seed: int,
    systems: dict[str, list[Trace]],
) -> StageOutcome:
    """The outcome of a stage on which these people decide, each item by some of them."""
    made = list(items_of(design, number, traces, systems=systems))
    decisions: list[Decision] = []
    busy: dict[str, set[str]] = {}
    for item in made:
        taken = busy.setdefault(item.apart, set()) if item.apart is not None else set()
        free = [person for person in people if person.name not in taken]
        for person in random.Random(f"{seed} {item.id}").sample(free, min(item.judges, len(free))):
            taken.add(person.name)
            place = len(decisions) + 1
            decisions.append(
                Decision(
                    id=f"{number:04}-{place:08}",
                    item=item.id,
                    author=person.name,
                    answer=check_answer(item, person.answer(item)),
                    time=float(place),
                )
            )
    return outcome_of(design, number, traces, made, decisions)


def _report(
    design: ProjectDesign, number: int, found: StageOutcome, truth: Truth, gold: Sequence[Trace]
) -> StageSimulation:
    stage = design.stage(number)
    agreement = found.agreement
    noun = MEASURED.get(stage.kind)
    kept, precision, recall = _quality(found.traces, noun, gold) if noun else (None, None, None)
    amounts = [one.amount for one in pay_of(design, found.items, found.decisions) if one.amount is not None]
    return StageSimulation(
        number,
        stage.kind,
        stage.judges,
        len(found.items),
        len(found.decisions),
        agreement.overall.full,
        agreement.overall.alpha,
        agreement.paraphrase.f1 if agreement.paraphrase else None,
        _right(found, truth),
        noun,
        kept,
        precision,
        recall,
        round(sum(amounts), 2) if stage.pay is not None else None,
    )


def _quality(traces: Sequence[Trace], noun: Noun, gold: Sequence[Trace]) -> tuple[int, float | None, float | None]:
    """How many were kept, which share of them is right, and which share of what is right they are."""
    kept = [key for trace in traces for key in _keys(trace, noun)]
    known = {key for trace in gold for key in _keys(trace, noun)}
    right = [key for key in kept if key in known]
    return (
        len(kept),
        len(right) / len(kept) if kept else None,
        len(set(right)) / len(known) if known else None,
    )


def _keys(trace: Trace, noun: Noun) -> list[tuple[Any, ...]]:
    if noun == "procedures":
        return [(trace.id,)]
    if noun == "steps":
        return [(trace.id, fold(text)) for text in trace.procedure.steps]
    return [
        (trace.id, fold(trace.procedure.steps[change.step - 1]), words_of(change))
        for change in trace.changes
        if is_writable(change)
    ]


def _right(found: StageOutcome, truth: Truth) -> float | None:
    """The share of questions on which the majority says what somebody without errors would say."""
    sure = ScriptedAnnotator("truth", ErrorRates(), truth)
    right = asked = 0
    for one in found.answers:
        if one.item.kind in WRITTEN or not one.by_author:
            continue
        true = labels(one.item, sure.answer(one.item))
        most = majority_answer(one)
        said = {} if most is None else labels(one.item, most)
        asked += len(true)
        right += sum(said.get(question) == label for question, label in true.items())
    return right / asked if asked else None


def judges_needed(
    design: ProjectDesign,
    gold: Sequence[Trace],
    *,
    seed: int = 0,
    shares: PlantedShares | None = None,
    errors: Sequence[float] = ERROR_RATES,
    progress: Progress = lambda *_: None,
) -> list[JudgesNeeded]:
    """What each stage would keep with one to seven judges who all err at the same rate, run alone on the gold."""
    chosen = with_unique_steps(random.Random(seed).sample(list(gold), min(MOST_TABLED, len(gold))))
    truth = Truth.of(chosen)
    found = []
    for kind in _tabled_kinds(design):
        stage = next(stage for stage in design.stages if stage.kind == kind)
        for error in errors:
            for judges in range(1, MOST_JUDGES + 1):
                alone = design.replace(stages=(_alone(stage, judges),))
                material = planted(chosen, _shares_for(alone, shares or PlantedShares()), seed)
                rates = ErrorRates(miss=error, invent=error, flip=error)
                people = _people([rates] * judges, truth, chosen, seed)
                outcome = _decided(alone, 1, material, people, seed, {})
                _, precision, recall = _quality(outcome.traces, MEASURED[kind], chosen)
                found.append(JudgesNeeded(kind, judges, error, precision, recall))
                progress(len(found), _table_runs(design, errors))
    return found


def _tabled_kinds(design: ProjectDesign) -> list[StageKind]:
    return list(dict.fromkeys(stage.kind for stage in design.stages if stage.kind in TABLED))


def _table_runs(design: ProjectDesign, errors: Sequence[float]) -> int:
    return len(_tabled_kinds(design)) * len(errors) * MOST_JUDGES


def _alone(stage: StageDesign, judges: int) -> StageDesign:
    return stage.replace(judges=judges, modalities=("without_image",), pay=None)
