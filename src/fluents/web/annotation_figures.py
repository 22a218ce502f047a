"""What the decisions of a project amount to: agreement, outcomes, pay. Computed from all of them, so not too often."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from fluents.annotation.agreement import StageAgreement, stage_agreement
from fluents.annotation.items import ItemAnswers, standing
from fluents.annotation.judging import system_scores
from fluents.annotation.labels import majority_answer
from fluents.annotation.outcomes import StageOutcome
from fluents.annotation.pay import PersonPay, pay_of
from fluents.annotation.stages import expert_sample
from fluents.web.annotation_records import Project, decisions_of, items_of, of_stage
from fluents.web.annotation_stages import ProjectStages, stage_outcome
from fluents.web.annotation_tables import DecisionRow, ItemRow
from fluents.web.store import Store

Value = TypeVar("Value")

QUICK = 0.5
"""Seconds: what takes less is computed whenever there is a new decision."""
REST = 10
"""What takes longer rests for so many times as long before it is computed again."""


@dataclass(frozen=True)
class StageFigures:
    """How far people agree on a stage, and what is to be settled."""

    agreement: StageAgreement
    open: dict[str, dict[str, Any] | None]
    """Items on which people do not all agree and nobody ruled → what most say, if most say the same."""
    unchecked: tuple[str, ...]
    """Items of the experts' sample that nobody checked."""


@dataclass(frozen=True)
class _Kept:
    latest: int
    made: float
    took: float
    value: Any


class Figures:
    """The figures of all projects in a store."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._kept: dict[tuple[str, ...], _Kept] = {}
        self._locks: dict[tuple[str, ...], threading.Lock] = {}
        self._lock = threading.Lock()

    def stage(self, project: Project, number: int) -> StageFigures:
        """Of a stage that was opened."""
        return self._fresh((project.id, str(number)), project, lambda session: _stage_figures(session, project, number))

    def outcome(self, project: Project, number: int) -> dict[str, Any]:
        """What a stage leaves so far, and the scores of the systems that were judged in it."""
        return self._fresh((project.id, f"outcome {number}"), project, lambda found: _outcome(found, project, number))

    def pay(self, project: Project) -> list[PersonPay]:
        """What each person earned in all stages."""
        return self._fresh((project.id, "pay"), project, lambda session: _pay(self._store, session, project))

    def _fresh(self, key: tuple[str, ...], project: Project, compute: Callable[[Session], Value]) -> Value:
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock, self._store.reading() as session:  # two who ask at once wait for one answer
            latest = _latest(session, project.id)
            kept = self._kept.get(key)
            if kept is not None and (kept.latest == latest or self._rests(kept)):
                value: Value = kept.value
                return value
            began = self._clock()
            value = compute(session)
            self._kept[key] = _Kept(latest, self._clock(), self._clock() - began, value)
            return value

    def _rests(self, kept: _Kept) -> bool:
        return kept.took > QUICK and self._clock() - kept.made < REST * kept.took


def _latest(session: Session, project_id: str) -> int:
    chosen = select(DecisionRow.number).where(DecisionRow.project_id == project_id)
    return session.scalar(chosen.order_by(DecisionRow.number.desc()).limit(1)) or 0


def _stage_figures(session: Session, project: Project, number: int) -> StageFigures:
    answered = exists().where(DecisionRow.project_id == ItemRow.project_id, DecisionRow.item_id == ItemRow.id)
    items = list(items_of(session, project.id, number, answered))  # the others say nothing about agreement
    decisions = list(decisions_of(session, project.id, of_stage(number)))
    agreement = stage_agreement(items, decisions)
    answers = {one.item.id: one for one in standing(items, decisions)}
    sample: tuple[str, ...] = ()
    if project.design.stage(number).expert_check:
        of_project = (ItemRow.project_id == project.id) & (ItemRow.stage == number)
        sample = expert_sample(project.design, number, session.scalars(select(ItemRow.id).where(of_project)))
    unruled = [answers[item] for item in sorted(agreement.by_item, key=agreement.by_item.__getitem__)]
    return StageFigures(
        agreement,
        {
            one.item.id: _most(one)
            for one in unruled
            if one.ruling is None and one.is_decided and agreement.by_item[one.item.id] < 1
        },
        tuple(item for item in sample if item not in answers or answers[item].check is None),
    )


def _outcome(session: Session, project: Project, number: int) -> dict[str, Any]:
    found = stage_outcome(session, project, number)
    return {**found.to_dict(), "systems": _scores(found)}


def _most(one: ItemAnswers) -> dict[str, Any] | None:
    found = majority_answer(one)
    return None if found is None else dict(found)


def _scores(outcome: StageOutcome) -> dict[str, Any]:
    if outcome.kind not in ("judge", "hallucinations"):
        return {}
    return {
        name: {
            row: {column: value if math.isfinite(value) else None for column, value in columns.items()}
            for row, columns in score.rows.items()
        }
        for name, score in system_scores(outcome.answers).items()
    }


def _pay(store: Store, session: Session, project: Project) -> list[PersonPay]:
    opened = [one.number for one in ProjectStages(store).progress(project.id)]
    items = (item for number in opened for item in items_of(session, project.id, number))
    return pay_of(project.design, items, decisions_of(session, project.id))
