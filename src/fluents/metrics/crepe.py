"""CREPE's question: after each step, is an event more likely, less likely, or as likely as before?

Every step is asked about every event of its procedure; what nobody mentions is as likely as before. The score is the F1
of each of the three classes, and their mean. compat takes any word but "less likely" for "more likely", and leaves out
predictions on events nobody asked about; strict refuses both. "no change" and "cannot tell", as `fluents ask`
writes them, are as likely as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from fluents.errors import InputError
from fluents.scoring import Mode
from fluents.scoring.alignment import ProcedurePairs, first_problems
from fluents.scoring.score import Figures, Harmonic, MeanOf, Ratio, Score, Signature, Statistics, StepRow
from fluents.task_records import CANNOT_TELL, NO_CHANGE, CrepeCase

CLASSES = (NO_CHANGE, "less likely", "more likely")
COMPAT = "ignores unknown events and steps, and counts unknown labels as “more likely”"

Labels: TypeAlias = dict[tuple[int, str], str]
"""Step and event → the word for how its likelihood changed."""


def crepe(gold: Iterable[CrepeCase], pred: Iterable[CrepeCase], *, mode: Mode = "compat") -> Score:
    """Macro F1 over the three classes. The same cases may be both: a file can hold annotations and a model's answers.

    The answers are what `pred` marks as predicted, or, where it marks nothing so in any case, all it says.
    """
    answers = list(pred)
    marked = any(item.predicted for case in answers for item in case.likelihoods)
    pairs = ProcedurePairs(gold, answers, mode)
    problems: list[str] = []
    columns = [f"{name}.{part}" for name in CLASSES for part in ("right", "predicted", "gold")]
    statistics = Statistics.collect(columns, _rows(pairs, marked, problems))
    if problems and mode == "strict":
        raise InputError(
            first_problems(problems),
            fix="predict only events and steps of the gold, with the labels “more likely”, “less likely”, “no change” "
            f"and “cannot tell”. Or set `mode` to compat, which {COMPAT}",
        )
    signature = Signature.of("crepe", mode, avg="macro", data=pairs.data_hash)
    warnings = (*pairs.warnings, *([f"{first_problems(problems)}. Compat mode {COMPAT}"] if problems else []))
    return Score("crepe", statistics, _figures(), signature, warnings)


def _figures() -> Figures:
    rows: Figures = {"macro": {}}
    for name in CLASSES:
        precision, recall = Ratio(f"{name}.right", f"{name}.predicted"), Ratio(f"{name}.right", f"{name}.gold")
        rows[name] = {"precision": precision, "recall": recall, "f1": Harmonic(precision, recall)}
    rows["macro"] = {
        column: MeanOf([rows[name][column] for name in CLASSES]) for column in ("precision", "recall", "f1")
    }
    return rows


def _rows(pairs: ProcedurePairs[CrepeCase], marked: bool, problems: list[str]) -> Iterator[StepRow]:
    for gold, pred in pairs:
        meant, said = _labels(gold, predicted=False), _labels(pred, predicted=marked)
        events = gold.events
        problems += _problems(gold, meant, said)
        for step in range(1, len(gold.procedure.steps) + 1):
            counts = {name: [0, 0, 0] for name in CLASSES}
            for event in events:
                right, answer = _class(meant.get((step, event))), _class(said.get((step, event)))
                counts[answer][0] += right == answer
                counts[answer][1] += 1
                counts[right][2] += 1
            yield gold.id, step, [count for name in CLASSES for count in counts[name]]


def _labels(case: CrepeCase, *, predicted: bool) -> Labels:
    return {
        (item.step, item.event): item.change
        for item in case.likelihoods
        if item.event is not None and item.predicted == predicted
    }


def _class(change: str | None) -> str:
    if change in (None, NO_CHANGE, CANNOT_TELL):
        return NO_CHANGE
    return "less likely" if change == "less likely" else "more likely"


def _problems(gold: CrepeCase, meant: Labels, said: Labels) -> Iterator[str]:
    asked = set(gold.events)
    steps = range(len(gold.procedure.steps) + 1)
    for (step, event), change in (*meant.items(), *said.items()):
        if event not in asked:
            yield f"the gold of {gold.id} has no event {event!r}"
        elif step not in steps:
            yield f"the gold of {gold.id} has no step {step}"
        elif change not in (*CLASSES, CANNOT_TELL):
            yield f"unknown label {change!r} for the event {event!r} at step {step} of {gold.id}"
