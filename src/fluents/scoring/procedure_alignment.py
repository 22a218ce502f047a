"""Gold and predicted procedures, brought together by id: for metrics that look at more of a procedure than one step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Generic, TypeVar

from fluents.errors import InputError
from fluents.records import Trace
from fluents.scoring import Mode, check_choice
from fluents.scoring.step_alignment import NOTHING_SCORED, first_three
from fluents.task_records import CrepeCase
from fluents.text.plurals import counted

Whole = TypeVar("Whole", Trace, CrepeCase)


class ProcedurePairs(Generic[Whole]):
    """Pairs (gold, predicted) of every gold procedure; read it once, then ask for its `warnings` and `data_hash`.

    strict: ids and steps agree one to one, or an InputError says where they do not. compat: a gold procedure without a
    prediction gets an empty one, a prediction without a gold procedure is left out, and a warning tells of it.
    Only procedures whose counterpart has not come yet are held.
    """

    def __init__(self, gold: Iterable[Whole], pred: Iterable[Whole], mode: Mode) -> None:
        check_choice("mode", mode, Mode)
        self._strict = mode == "strict"
        self._gold: Iterable[Whole] = gold
        self._pred: Iterable[Whole] = pred
        self._hash_sum = 0
        self._disagreements: list[str] = []
        self.warnings: list[str] = []

    def __iter__(self) -> Iterator[tuple[Whole, Whole]]:
        golds: dict[str, Whole] = {}
        preds: dict[str, Whole] = {}
        seen_gold: set[str] = set()
        seen_pred: set[str] = set()
        for gold, pred in zip_longest(self._gold, self._pred):
            if gold is not None:
                self._hash_sum += _digest(gold)
                _add(gold, golds, seen_gold, "gold procedure")
            if pred is not None:
                _add(pred, preds, seen_pred, "prediction")
            for item in (gold, pred):
                if item is not None and item.id in golds and item.id in preds:
                    yield self._agreeing(golds.pop(item.id), preds.pop(item.id))
        self._check(len(seen_gold), list(golds), list(preds))
        for gold in golds.values():
            yield gold, type(gold)(procedure=gold.procedure)

    @property
    def data_hash(self) -> str:
        """Eight digits that change with anything the gold says, but not with the order of its procedures."""
        return hashlib.sha256(str(self._hash_sum).encode()).hexdigest()[:8]

    def _agreeing(self, gold: Whole, pred: Whole) -> tuple[Whole, Whole]:
        differing = sorted(_steps(gold) ^ _steps(pred))
        if differing:
            told = first_three([str(step) for step in differing])
            self._disagreements.append(f"gold and prediction of procedure {gold.id} differ on the steps {told}")
        return gold, pred

    def _check(self, count: int, missing: Sequence[str], foreign: Sequence[str]) -> None:
        if not count:
            raise InputError("there is no gold procedure to score against", fix="is the gold file empty?")
        if missing:
            self._disagreements.append(
                f"{len(missing)} of {count} gold procedures have no prediction: {first_three(missing)}"
            )
        if foreign:
            self._disagreements.append(
                f"{counted(len(foreign), 'prediction')} for no gold procedure: {first_three(foreign)}"
            )
        if self._disagreements and self._strict:
            unrelated = len(missing) == count
            question = "are the predictions for another split or dataset?" if unrelated else "is the file whole?"
            raise InputError(
                first_three(self._disagreements), fix=f"{question} compat mode counts what is missing as empty"
            )
        self.warnings += self._disagreements
        if len(missing) == count:
            self.warnings.append(NOTHING_SCORED)


def _add(item: Whole, waiting: dict[str, Whole], seen: set[str], what: str) -> None:
    if item.id in seen:
        raise InputError(f"more than one {what} with the id {item.id}")
    seen.add(item.id)
    waiting[item.id] = item


def _steps(item: Trace | CrepeCase) -> set[int]:
    return set(item.covered_steps) if isinstance(item, Trace) else set(range(1, len(item.procedure.steps) + 1))


def _digest(gold: Trace | CrepeCase) -> int:
    """Of everything but where it comes from."""
    content = gold.__pydantic_serializer__.to_json(gold, exclude={"provenance"}, exclude_defaults=True)
    return int.from_bytes(hashlib.sha256(content).digest(), "big")
