"""The steps a score lost most on, and those it lost least on, with what was said of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fluents.errors import InputError
from fluents.records import Trace
from fluents.scoring.alignment import StepAnswers, steps_of
from fluents.scoring.score import Score


@dataclass(frozen=True)
class StepPlace:
    """A step and its F1 in percent."""

    procedure_id: str
    step: int
    f1: float


@dataclass(frozen=True)
class StepCase:
    """A step with gold and prediction side by side."""

    place: StepPlace
    goal: str
    text: str
    gold: tuple[str, ...]
    predicted: tuple[str, ...]

    @property
    def shared(self) -> frozenset[str]:
        """Sentences both sides have, word by word."""
        return frozenset(self.gold) & frozenset(self.predicted)


def worst_steps(score: Score, count: int, row: str = "rouge") -> list[StepPlace]:
    """The steps with the lowest F1, of equal ones those with the most answers on both sides first."""
    return _ranked(score, count, row, lowest_first=True)


def best_steps(score: Score, count: int, row: str = "rouge") -> list[StepPlace]:
    """The steps with the highest F1 among those where something changes."""
    return _ranked(score, count, row, lowest_first=False)


def _ranked(score: Score, count: int, row: str, *, lowest_first: bool) -> list[StepPlace]:
    statistics = score.statistics
    if f"{row}.f1" not in statistics.columns:
        raise InputError(
            f"the metric {score.metric} does not compute {row} F1 for each step",
            fix="choose another metric, such as original",
        )
    f1, answers = statistics.column(f"{row}.f1"), statistics.column("gold") + statistics.column("predicted")
    sign = 1 if lowest_first else -1
    order = sorted(range(len(statistics)), key=lambda i: (sign * f1[i], -answers[i]))
    wanted = [i for i in order if lowest_first or statistics.column("gold")[i]][: max(0, count)]
    return [StepPlace(statistics.procedures[i], statistics.steps[i], float(100 * f1[i])) for i in wanted]


def cases(places: Sequence[StepPlace], gold: Iterable[Trace], pred: Iterable[Trace]) -> list[StepCase]:
    """What both sides say of these steps. Goes through each side once and holds nothing else of it."""
    procedures = {place.procedure_id for place in places}
    goals: dict[str, str] = {}
    texts: dict[tuple[str, int], str] = {}
    meant: dict[tuple[str, int], StepAnswers] = {}
    for trace in gold:
        if trace.id in procedures:
            goals[trace.id] = trace.procedure.goal
            texts |= {(trace.id, number): text for number, text in enumerate(trace.procedure.steps, start=1)}
            meant |= _answers(trace)
    said: dict[tuple[str, int], StepAnswers] = {}
    for trace in pred:
        if trace.id in procedures:
            said |= _answers(trace)
    found = []
    for place in places:
        key = place.procedure_id, place.step
        nothing = StepAnswers(*key, ())
        sentences = meant.get(key, nothing).sentences, said.get(key, nothing).sentences
        found.append(StepCase(place, goals.get(place.procedure_id, ""), texts.get(key, ""), *sentences))
    return found


def _answers(trace: Trace) -> dict[tuple[str, int], StepAnswers]:
    return {(trace.id, step.step): step for step in steps_of([trace])}
