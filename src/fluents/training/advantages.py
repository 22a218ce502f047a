"""How good a sampled answer is, and each token of it: what refinement makes more and less likely.

An answer is worth its soft F1 against the annotation, compared with the other answers to the same step. A line of it is
worth what it adds to that F1. Both are needed: the first alone cannot tell the good lines of an answer from the bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, pstdev
from typing import NamedTuple

from fluents.metrics.readers import soft_f1
from fluents.prompts.transcript import read_answer
from fluents.records import StateChange

STEP_WEIGHT = 0.5
"""Of an answer's own advantage, beside that of its lines."""
SPREAD = 0.05
"""Added to the standard deviation of F1: answers that hardly differ teach little."""
DROPPED = -1.0
"""What a line that the reader drops is worth, where a line that adds as much as usual is worth 1."""
MOST = 2.5
"""No token counts for more."""


class JudgedAnswer(NamedTuple):
    """An answer as it was read, with its soft F1 and what each line adds to it, by the number of the line."""

    changes: tuple[StateChange, ...]
    f1: float
    gains: dict[int, float]


def judged(text: str, gold: Sequence[StateChange], step: int, *, ended: bool = True) -> JudgedAnswer:
    """Read an answer and score it; `ended` as for `read_answer`."""
    lines, _ = read_answer(text, step, ended=ended)
    changes = tuple(line.change for line in lines)
    f1, gains = soft_f1(gold, changes)
    return JudgedAnswer(changes, f1, {line.number: gain for line, gain in zip(lines, gains, strict=True)})


def usual_gain(answers: Iterable[JudgedAnswer]) -> float:
    """The root mean square of what lines add."""
    squares = [gain * gain for answer in answers for gain in answer.gains.values()]
    return max(math.sqrt(fmean(squares)), 1e-4) if squares else 1.0


def answer_advantages(samples: Sequence[JudgedAnswer]) -> list[float]:
    """How much better each of several answers to one step is than their mean."""
    values = [sample.f1 for sample in samples]
    mean, spread = fmean(values), pstdev(values) + SPREAD
    return [STEP_WEIGHT * (value - mean) / spread for value in values]


def token_advantages(answer: JudgedAnswer, advantage: float, lines: Iterable[int | None], usual: float) -> list[float]:
    """The advantages of the tokens of an answer, of which `lines` gives the line; None is the end token."""
    found = []
    for line in lines:
        if line is None:
            value = advantage
        else:
            value = advantage + (answer.gains[line] / usual if line in answer.gains else DROPPED)
        found.append(max(-MOST, min(MOST, value)))
    return found
