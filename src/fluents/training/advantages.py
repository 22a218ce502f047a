"""How good a sampled answer is, and each token of it: what refinement makes more and less likely.

An answer is worth its reward, compared with the other answers to the same step: its soft F1 against the annotation, or,
where claims were judged, what their judges say of it. A line is worth what it adds to the reward. Both are needed: the
first alone cannot tell the good lines of an answer from the bad.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, pstdev
from typing import NamedTuple, TypeAlias

from fluents.data.corpus import JudgedClaim, Verdict
from fluents.metrics.readers import likeness
from fluents.prompts.transcript import read_answer
from fluents.records import StateChange

STEP_WEIGHT = 0.5
"""Of an answer's own advantage, beside that of its lines."""
SPREAD = 0.05
"""Added to the standard deviation of rewards: answers that hardly differ teach little."""
DROPPED = -1.0
"""What a line that the reader drops is worth, where a line that adds as much as usual is worth 1."""
MOST = 2.5
"""No token counts for more."""


WORTH: dict[Verdict, float] = {"T": 1.0, "P": 0.25, "F": 0.0}
"""Of a line that says what was judged so, word for word."""
RECALL_WEIGHT = 0.6
"""What a true meaning that is missed costs, where a line without worth costs 1."""

Reward: TypeAlias = Callable[[Sequence[StateChange]], tuple[float, list[float]]]
"""From the changes of an answer to its reward, and for each change what the reward loses without it."""


class RewardedAnswer(NamedTuple):
    """An answer as it was read, with its reward and what each line adds to it, by the number of the line."""

    changes: tuple[StateChange, ...]
    reward: float
    gains: dict[int, float]


def rewarded(text: str, step: int, reward: Reward, *, ended: bool = True) -> RewardedAnswer:
    """Read an answer and reward it; `ended` as for `read_answer`."""
    lines, _ = read_answer(text, step, ended=ended)
    changes = tuple(line.change for line in lines)
    value, gains = reward(changes)
    return RewardedAnswer(changes, value, {line.number: gain for line, gain in zip(lines, gains, strict=True)})


def judged_reward(claims: Sequence[JudgedClaim], changes: Sequence[StateChange]) -> tuple[float, list[float]]:
    """The reward of changes by the judged claims of their step, and for each change what the reward loses without it.

    A change takes the verdict of the most similar claim, and is worth the more, the more similar they are. A meaning
    counts once, in its best wording.
    """
    true = len({claim.meaning for claim in claims if claim.verdict == "T"})

    def reward(part: Sequence[_JudgedLine]) -> float:
        if not part:
            return float(not true)
        best: dict[int, float] = {}
        for meaning, worth in part:
            if meaning is not None:
                best[meaning] = max(best.get(meaning, 0.0), worth)
        return (1 + RECALL_WEIGHT) * sum(best.values()) / (len(part) + RECALL_WEIGHT * true)

    lines = _judged_lines(claims, changes)
    whole = reward(lines)
    return whole, [whole - reward(lines[:place] + lines[place + 1 :]) for place in range(len(lines))]


class _JudgedLine(NamedTuple):
    meaning: int | None
    worth: float


def _judged_lines(claims: Sequence[JudgedClaim], changes: Sequence[StateChange]) -> list[_JudgedLine]:
    if not claims:
        return [_JudgedLine(None, 0.0)] * len(changes)
    known: dict[tuple[str, ...], JudgedClaim] = {}
    for claim in claims:
        known.setdefault(_folded(claim.change), claim)
    table = likeness([claim.change for claim in claims], changes)
    found = []
    for column, change in enumerate(changes):
        if same := known.get(_folded(change)):
            found.append(_JudgedLine(same.meaning, WORTH[same.verdict]))
        else:
            row = int(table[:, column].argmax())
            found.append(_JudgedLine(claims[row].meaning, WORTH[claims[row].verdict] * float(table[row, column])))
    return found


def _folded(change: StateChange) -> tuple[str, ...]:
    return tuple(field.lower() for field in (change.entity, change.attribute, change.before, change.after))


def usual_gain(answers: Iterable[RewardedAnswer]) -> float:
    """The root mean square of what lines add."""
    squares = [gain * gain for answer in answers for gain in answer.gains.values()]
    return max(math.sqrt(fmean(squares)), 1e-4) if squares else 1.0


def answer_advantages(samples: Sequence[RewardedAnswer]) -> list[float]:
    """How much better each of several answers to one step is than their mean."""
    values = [sample.reward for sample in samples]
    mean, spread = fmean(values), pstdev(values) + SPREAD
    return [STEP_WEIGHT * (value - mean) / spread for value in values]


def token_advantages(
    answer: RewardedAnswer, advantage: float, lines: Iterable[int | None], usual: float
) -> list[float]:
    """The advantages of the tokens of an answer, of which `lines` gives the line; None is the end token."""
    found = []
    for line in lines:
        if line is None:
            value = advantage
        else:
            value = advantage + (answer.gains[line] / usual if line in answer.gains else DROPPED)
        found.append(max(-MOST, min(MOST, value)))
    return found
