"""OpenPI2.0's states: entity and attribute are given, the states before and after are asked.

An answer is right if both states are among the gold's wordings: the first alone, or any of them, as rows.
compat compares letter by letter; strict compares normalised text and refuses predictions that are not one for each gold
change. Where a step has the same entity and attribute twice, compat takes answers in their order, strict pairs them
in the way that suits them best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from fluents.errors import InputError
from fluents.records import StateChange, Trace
from fluents.scoring import Mode
from fluents.scoring.alignment import ProcedurePairs, first_problems
from fluents.scoring.gold_vocabulary import normalised
from fluents.scoring.score import Ratio, Score, Signature, Statistics, StepRow

FIRST, ANY = "first wording", "any wording"

Asked: TypeAlias = tuple[int, str, str]
"""Step, entity, attribute."""


def states(gold: Iterable[Trace], pred: Iterable[Trace], *, mode: Mode = "compat") -> Score:
    """The share of changes whose states before and after are both right."""
    pairs = ProcedurePairs(gold, pred, mode)
    unequal: list[str] = []
    statistics = Statistics.collect((FIRST, ANY, "asked"), _rows(pairs, mode, unequal))
    if unequal and mode == "strict":
        raise InputError(
            f"predictions and gold changes do not match one to one: {first_problems(unequal)}",
            fix="predict each attribute of each gold entity exactly once, or set `mode` to compat, which counts "
            "missing predictions as wrong",
        )
    warnings = [f"predictions and gold changes do not match one to one: {first_problems(unequal)}"] if unequal else []
    figures = {name: {"accuracy": Ratio(name, "asked")} for name in (FIRST, ANY)}
    signature = Signature.of("states", mode, avg="micro", data=pairs.data_hash)
    return Score("states", statistics, figures, signature, (*pairs.warnings, *warnings))


def _rows(pairs: ProcedurePairs[Trace], mode: Mode, unequal: list[str]) -> Iterator[StepRow]:
    key, right = (str, _right_in_order) if mode == "compat" else (normalised, _right_at_best)
    for gold, pred in pairs:
        asked, answered = by_question(gold, key), by_question(pred, key)
        unequal += _not_one_to_one(gold.id, asked, answered)
        counts = {step: [0, 0, 0] for step in gold.covered_steps}
        for question, changes in asked.items():
            answers = answered.get(question, [])
            count = counts.setdefault(question[0], [0, 0, 0])
            count[0] += right(changes, answers, lambda g, p: _matches(g, p, key, first_only=True))
            count[1] += right(changes, answers, lambda g, p: _matches(g, p, key, first_only=False))
            count[2] += len(changes)
        for step, count in counts.items():
            yield gold.id, step, count


def by_question(trace: Trace, key: Callable[[str], str]) -> dict[Asked, list[StateChange]]:
    """The changes of a trace by step, entity and attribute, names as `key` writes them."""
    found: dict[Asked, list[StateChange]] = {}
    for change in trace.changes:
        found.setdefault((change.step, key(change.entity), key(change.attribute)), []).append(change)
    return found


def _not_one_to_one(
    procedure_id: str, asked: dict[Asked, list[StateChange]], answered: dict[Asked, list[StateChange]]
) -> Iterator[str]:
    for question in {**asked, **answered}:
        if len(asked.get(question, ())) != len(answered.get(question, ())):
            step, entity, attribute = question
            yield f"{attribute} of {entity} in step {step} of {procedure_id}"


Match: TypeAlias = Callable[[StateChange, StateChange], bool]


def _right_in_order(gold: Sequence[StateChange], pred: Sequence[StateChange], match: Match) -> int:
    return sum(match(g, p) for g, p in zip(gold, pred, strict=False))


def _right_at_best(gold: Sequence[StateChange], pred: Sequence[StateChange], match: Match) -> int:
    """The most matches a one-to-one pairing can have; nearly always it is one against one."""
    if len(gold) == len(pred) == 1:
        return int(match(gold[0], pred[0]))
    from scipy.optimize import linear_sum_assignment  # slow to import

    matches = np.array([[match(g, p) for p in pred] for g in gold], dtype=float).reshape(len(gold), len(pred))
    return int(matches[linear_sum_assignment(matches, maximize=True)].sum())


def _matches(gold: StateChange, pred: StateChange, key: Callable[[str], str], *, first_only: bool) -> bool:
    wordings = ((gold.before, gold.alternatives.before, pred.before), (gold.after, gold.alternatives.after, pred.after))
    return all(key(said) in {key(first), *(() if first_only else map(key, others))} for first, others, said in wordings)
