"""What a reader wants: right changes, each said once, that fit together. For gold with complete annotation.

In each step, predicted and gold changes are matched one to one by the ROUGE-L of their templates (as in `original`), so
that saying a thing again costs precision. Beside this soft score stand the sets of entities and of (entity, attribute)
pairs, how often a state begins where an earlier step left it, and how far confidences can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from fluents.records import StateChange
from fluents.scoring import Mode
from fluents.scoring.alignment import Alignment, Answers
from fluents.scoring.score import (
    Figure,
    Floats,
    Ratio,
    Score,
    ShareOf,
    Signature,
    Statistics,
    Sums,
    macro,
    micro,
)
from fluents.text.matchers import ARTICLES, Answer, rouge, words

RIGHT = 0.6
"""From this ROUGE-L on, a matched prediction counts as right where confidences are checked. Fixed on fluents:dev."""

BINS = 10
"""Of equal size, in the order of confidence."""

Words = tuple[str, ...]


def readers(gold: Answers, pred: Answers, *, mode: Mode = "strict") -> Score:
    """Soft one-to-one F1, F1 of entities and of pairs, consistency, and the calibration of confidences.

    compat takes gold steps without a prediction as empty, and warns of them; strict refuses them.
    """
    alignment = Alignment(gold, pred, mode)
    steps = list(_steps(alignment))
    edges = _bin_edges([confidence for step in steps for confidence, _ in step.judged])
    statistics = Statistics.collect(
        (*_COLUMNS, *(f"{part}-{b}" for b in range(BINS) for part in ("n", "confidence", "right"))),
        ((step.procedure_id, step.step, (*step.values, *_binned(step.judged, edges))) for step in steps),
    )
    signature = Signature.of("readers", mode, matcher="rouge", right=RIGHT, data=alignment.data_hash)
    return Score(
        "readers", statistics, _figures(any(step.judged for step in steps)), signature, tuple(alignment.warnings)
    )


_COLUMNS = (
    *(f"soft.{name}" for name in ("precision", "recall", "f1")),
    *(f"{what}.{part}" for what in ("entities", "pairs") for part in ("hits", "predicted", "gold")),
    "carried",
    "kept",
)


def _figures(calibrated: bool) -> dict[str, dict[str, Figure]]:
    figures: dict[str, dict[str, Figure]] = {"soft": macro("soft")}
    for what in ("entities", "pairs"):
        figures[what] = micro(Ratio(f"{what}.hits", f"{what}.predicted"), Ratio(f"{what}.hits", f"{what}.gold"))
    figures["consistency"] = {"agreement": ShareOf("kept", "carried")}
    if calibrated:
        figures["calibration"] = {"error": CalibrationError()}
    return figures


@dataclass(frozen=True)
class CalibrationError:
    """Expected calibration error: how far confidence and share of right changes lie apart, the mean over bins."""

    def __call__(self, sums: Sums) -> Floats:
        apart = sum(np.abs(np.asarray(sums[f"confidence-{b}"]) - np.asarray(sums[f"right-{b}"])) for b in range(BINS))
        count: Floats = np.asarray(sum(np.asarray(sums[f"n-{b}"]) for b in range(BINS)), dtype=float)
        error: Floats = np.divide(apart, count, out=np.full(count.shape, np.nan), where=count != 0)
        return error


class _Step(NamedTuple):
    procedure_id: str
    step: int
    values: tuple[float, ...]
    judged: list[tuple[float, bool]]
    """Confidence of each prediction that has one, and whether it is right."""


def _steps(alignment: Alignment) -> Iterator[_Step]:
    left: dict[str, dict[tuple[Words, Words], Words]] = {}
    for gold_step, pred_step in sorted(alignment, key=lambda pair: (pair[0].procedure_id, pair[0].step)):
        gold, pred = gold_step.changes, pred_step.changes
        matched = match_values(gold, pred)
        values = [*_soft(len(gold), len(pred), sum(matched))]
        for key in (_entity, _pair):
            ours, theirs = {key(change) for change in pred}, {key(change) for change in gold}
            values += [len(ours & theirs), len(ours), len(theirs)]
        known = left.setdefault(gold_step.procedure_id, {})
        carried = [change for change in pred if _pair(change) in known]
        values += [len(carried), sum(known[_pair(change)] == _stems(change.before) for change in carried)]
        known.update({_pair(change): _stems(change.after) for change in pred})
        judged = [
            (change.confidence, value >= RIGHT)
            for change, value in zip(pred, matched, strict=True)
            if change.confidence is not None
        ]
        yield _Step(gold_step.procedure_id, gold_step.step, tuple(values), judged)


class MatchedPair(NamedTuple):
    """A gold change and a prediction that the best assignment puts together, by their places."""

    gold: int
    pred: int
    likeness: float
    """ROUGE-L; from RIGHT on, the prediction counts as right."""


def matched_pairs(gold: Sequence[StateChange], pred: Sequence[StateChange]) -> list[MatchedPair]:
    """The pairs of a step that have anything in common, in the order of the gold changes."""
    return _pairs(likeness(gold, pred))


def match_values(gold: Sequence[StateChange], pred: Sequence[StateChange]) -> list[float]:
    """For each prediction the ROUGE-L with the gold change it is matched to, 0 where it is matched to none."""
    return _matched(likeness(gold, pred))


def soft_f1(gold: Sequence[StateChange], pred: Sequence[StateChange]) -> tuple[float, list[float]]:
    """The soft F1 of a step, and what each prediction adds to it: F1 minus F1 without the prediction."""
    table = likeness(gold, pred)

    def f1(part: Floats) -> float:
        return _soft(len(gold), part.shape[1], sum(_matched(part)))[2]

    whole = f1(table)
    return whole, [whole - f1(np.delete(table, column, axis=1)) for column in range(len(pred))]


def likeness(gold: Sequence[StateChange], pred: Sequence[StateChange]) -> Floats:
    """The ROUGE-L of every gold change (a row) with every prediction (a column)."""
    meant, said = ([Answer.of_sentence(change.templated) for change in side] for side in (gold, pred))
    found = [rouge(one, other) for one in meant for other in said]
    return np.array(found, dtype=float).reshape(len(gold), len(pred))


def _matched(table: Floats) -> list[float]:
    """For each column its value in the best assignment, 0 where it has none."""
    values = [0.0] * table.shape[1]
    for pair in _pairs(table):
        values[pair.pred] = pair.likeness
    return values


def _pairs(table: Floats) -> list[MatchedPair]:
    assigned = zip(*linear_sum_assignment(-table), strict=True)
    return [
        MatchedPair(int(row), int(column), float(table[row, column])) for row, column in assigned if table[row, column]
    ]


def _soft(gold: int, pred: int, matched: float) -> tuple[float, float, float]:
    if not gold or not pred:
        alike = float(gold == pred)
        return alike, alike, alike
    precision, recall = matched / pred, matched / gold
    return precision, recall, 2 * precision * recall / (precision + recall) if matched else 0.0


def _stems(text: str) -> Words:
    return words(text, ARTICLES)


def _entity(change: StateChange) -> Words:
    return _stems(change.entity)


def _pair(change: StateChange) -> tuple[Words, Words]:
    return _stems(change.entity), _stems(change.attribute)


def _bin_edges(confidences: Sequence[float]) -> Floats:
    """The confidences between one bin and the next."""
    return np.quantile(confidences, np.linspace(0, 1, BINS + 1)[1:-1]) if confidences else np.zeros(0)


def _binned(judged: Sequence[tuple[float, bool]], edges: Floats) -> list[float]:
    values = [0.0] * (3 * BINS)
    for confidence, is_right in judged:
        place = 3 * int(np.searchsorted(edges, confidence, side="right"))
        values[place] += 1
        values[place + 1] += confidence
        values[place + 2] += is_right
    return values
