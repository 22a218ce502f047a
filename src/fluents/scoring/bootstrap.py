"""How far a score can be trusted: intervals over procedures, and tests between two systems.

Procedures are resampled, not steps, because the steps of a procedure resemble each other. Nothing is scored again:
every figure of a score is a function of sums, and a resample is another sum of the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluents.errors import InputError
from fluents.scoring import check_type
from fluents.scoring.score import RESAMPLES, Floats, Score, number, text_table

FEWEST = 10
"""Procedures that a part of a score must have for intervals: fewer, drawn again and again, look surer than they are."""
ROUNDING = 1e-6
"""Differences of no more points say nothing: equal answers, summed in another order, differ in the last bits."""
_NUMBERS_AT_ONCE = 4_000_000  # resamples × procedures held in memory together


class Interval(NamedTuple):
    low: float
    high: float


class Intervals(dict[str, dict[str, Interval]]):
    """Row → column → Interval; prints as a table."""

    def __init__(self, score: Score, found: Mapping[str, dict[str, Interval]], level: float) -> None:
        super().__init__(found)
        self._score, self._level = score, level

    def __str__(self) -> str:
        """On lines of its own, also where it is printed beside its score."""
        columns = self._score.columns
        rows = (
            [row, *(_brackets(found[name], self._score.decimals(name)) if name in found else "" for name in columns)]
            for row, found in self.items()
        )
        return f"\n{100 * self._level:g} % confidence intervals\n{text_table(['', *columns], rows)}"


def _brackets(interval: Interval, decimals: int) -> str:
    return f"[{number(interval.low, decimals)}, {number(interval.high, decimals)}]"


@dataclass(frozen=True)
class Difference:
    """The first system's figure minus the second's, and how likely as large a one is by chance alone."""

    value: float
    interval: Interval
    p_bootstrap: float
    p_randomisation: float


class Comparison(dict[str, dict[str, Difference]]):
    """Two systems on the same gold: row → column → Difference; prints as a table."""

    def __init__(self, first: Score, second: Score, found: Mapping[str, dict[str, Difference]]) -> None:
        super().__init__(found)
        self.first, self.second = first, second

    HEADING = ("", "A", "B", "A − B", "interval", "p (bootstrap)", "p (randomisation)")

    def lines(self) -> Iterator[list[str]]:
        """A line for every figure, under HEADING."""
        for row, columns in self.items():
            for column, difference in columns.items():
                places = self.first.decimals(column)
                values = (self.first[row][column], self.second[row][column], difference.value)
                chances = (difference.p_bootstrap, difference.p_randomisation)
                yield [
                    f"{row} {column}",
                    *(number(value, places) for value in values),
                    _brackets(difference.interval, places),
                    *(f"{chance:.4f}" for chance in chances),
                ]

    def __str__(self) -> str:
        return f"{text_table(self.HEADING, self.lines())}\n{self.first.signature}"


def intervals(score: Score, *, resamples: int = RESAMPLES, level: float = 0.95, seed: int = 0) -> Intervals:
    """The percentile interval of every figure of a score: row → column → (low, high)."""
    _check(score, resamples, level)
    _, totals = score.statistics.by_procedure()
    sums = np.concatenate([weights @ totals for weights in _resampled(len(totals), resamples, seed)])
    computed = score.compute(score.statistics.named(sums))
    found = {
        row: {column: _percentiles(values, level) for column, values in columns.items()}
        for row, columns in computed.items()
    }
    return Intervals(score, found, level)


def part_intervals(parts: Mapping[str, Score]) -> dict[str, Intervals]:
    """The intervals of every part of a breakdown that has procedures enough."""
    return {name: intervals(part) for name, part in parts.items() if part.n_procedures >= FEWEST}


def compare(
    first: Score, second: Score, *, resamples: int = RESAMPLES, level: float = 0.95, seed: int = 0
) -> Comparison:
    """Test two systems on the same gold: row → column → difference.

    The paired bootstrap draws the same procedures for both and asks how often the difference strays from its mean as
    far as the observed one is from 0; approximate randomisation swaps the systems' answers procedure by procedure.
    Both tests are two-sided, and neither can give a p below 1 / (resamples + 1).
    """
    for name, score in (("first", first), ("second", second)):
        check_type(name, score, Score)
    _check(first, resamples, level)
    ours, theirs = _paired_totals(first, second)
    drawn = np.concatenate([weights @ np.hstack([ours, theirs]) for weights in _resampled(len(ours), resamples, seed)])
    middle = ours.shape[1]
    resampled = _differences(first, drawn[:, :middle], drawn[:, middle:])
    kept = np.concatenate([mask @ (ours - theirs) for mask in _swaps(len(ours), resamples, seed)])
    swapped = _differences(first, theirs.sum(axis=0) + kept, ours.sum(axis=0) - kept)
    observed = _differences(first, ours.sum(axis=0), theirs.sum(axis=0))
    found = {
        row: {
            column: Difference(
                value=float(value),
                interval=_percentiles(resampled[row][column], level),
                p_bootstrap=_p_value(resampled[row][column] - resampled[row][column].mean(), value),
                p_randomisation=_p_value(swapped[row][column], value),
            )
            for column, value in columns.items()
        }
        for row, columns in observed.items()
    }
    return Comparison(first, second, found)


def _check(score: Score, resamples: int, level: float) -> None:
    if score.n_procedures < 2:
        raise InputError(
            f"confidence intervals need at least two procedures, but this score is for only {score.n_procedures}",
            fix="score more procedures",
        )
    if resamples < 1:
        raise InputError(f"`resamples` must be at least 1, not {resamples}", fix="use, for example, 10000")
    if not 0 < level < 1:
        raise InputError(f"`level` must be between 0 and 1, not {level}", fix="use, for example, 0.95")


def _paired_totals(first: Score, second: Score) -> tuple[Floats, Floats]:
    """The two systems' sums by procedure, in the same order."""
    differing = first.signature.differences(second.signature)
    if differing:
        told = ", ".join(
            f"{key} is {ours} in the first and {theirs} in the second" for key, (ours, theirs) in differing.items()
        )
        raise InputError(
            f"these scores cannot be compared, because they were computed differently: {told}",
            fix="compute both scores with the same metric, mode, options and gold",
        )
    names, ours = first.statistics.by_procedure()
    other_names, theirs = second.statistics.by_procedure()
    place = {name: index for index, name in enumerate(other_names)}
    if place.keys() != set(names):
        raise InputError(
            "these scores cannot be compared, because they are for different procedures",
            fix="score both systems on the same procedures",
        )
    return ours, theirs[[place[name] for name in names]]


def _differences(score: Score, ours: Floats, theirs: Floats) -> dict[str, dict[str, Floats]]:
    first = score.compute(score.statistics.named(ours))
    second = score.compute(score.statistics.named(theirs))
    return {row: {column: first[row][column] - second[row][column] for column in first[row]} for row in first}


def _resampled(procedures: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """How often each procedure is drawn, resample by resample, in blocks that fit into memory."""
    random = np.random.default_rng(seed)
    for size in _blocks(procedures, resamples):
        drawn = random.integers(procedures, size=(size, procedures))
        drawn += procedures * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * procedures)
        yield counts.reshape(size, procedures).astype(np.float64)


def _swaps(procedures: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """1 where a procedure's answers stay, 0 where the systems exchange them."""
    random = np.random.default_rng(seed)
    for size in _blocks(procedures, resamples):
        yield random.integers(2, size=(size, procedures)).astype(np.float64)


def _blocks(procedures: int, resamples: int) -> Iterator[int]:
    size = max(1, _NUMBERS_AT_ONCE // procedures)
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def _percentiles(values: Floats, level: float) -> Interval:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _p_value(by_chance: Floats, observed: Floats) -> float:
    as_large = np.abs(by_chance) >= np.abs(observed) - ROUNDING
    return float((as_large.sum() + 1) / (len(by_chance) + 1))
