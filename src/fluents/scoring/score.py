"""What every metric shares: statistics per step, figures computed from their sums, a score, and its signature.

A metric goes through its data once and keeps one row of numbers for every step (or whatever else it counts over) in
a `Statistics`. A figure — a precision, an F1, an accuracy — is a function of the rows' *sums*. So a `Score` is its
statistics and its figures, and the bootstrap recomputes any figure from resampled sums without seeing a sentence again.

    statistics = Statistics.collect(("hits", "predicted", "gold"), rows)
    p, r = Ratio("hits", "predicted"), Ratio("hits", "gold")
    score = Score("mine", statistics, {"all": {"precision": p, "recall": r, "f1": Harmonic(p, r)}}, signature)
    score["all"]["f1"]
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fluents.scoring import Mode
from fluents.version import __version__

if TYPE_CHECKING:
    from fluents.scoring.bootstrap import Intervals

Floats: TypeAlias = NDArray[np.float64]

Sums: TypeAlias = Mapping[str, Floats]
"""Column → its sum: a single number, or one for every resample."""

Figure: TypeAlias = Callable[[Sums], Floats]
"""A number of a score, computed from sums alone."""

Figures: TypeAlias = dict[str, dict[str, Figure]]
"""Row → column → figure."""

StepRow: TypeAlias = tuple[str, int, Sequence[float]]
"""Procedure id, step (0 where the row stands for the whole procedure), and a value for every column."""

RESAMPLES = 10_000
"""How often the bootstrap draws the procedures again."""

COUNTS = ("count", "undefined")
"""Columns that count, and are shown without decimals."""

UNITS = "units"
"""The column every `Statistics` has beside its own: 1 in each row, so that a mean is a ratio like any other."""


@dataclass(frozen=True)
class Ratio:
    """Σ numerator / Σ denominator. Nothing out of nothing is 1: no answer is no wrong answer."""

    numerator: str
    denominator: str = UNITS
    of_nothing: ClassVar[float] = 1.0

    def __call__(self, sums: Sums) -> Floats:
        top, bottom = np.asarray(sums[self.numerator]), np.asarray(sums[self.denominator])
        ratio: Floats = np.full(np.broadcast(top, bottom).shape, self.of_nothing)
        return np.divide(top, bottom, out=ratio, where=bottom != 0)


class ShareOf(Ratio):
    """Σ numerator / Σ denominator, not a number where there is nothing to share: nothing was judged, or is defined."""

    of_nothing = math.nan


@dataclass(frozen=True)
class Harmonic:
    """F1: the harmonic mean of two figures, 0 where both are 0."""

    precision: Figure
    recall: Figure

    def __call__(self, sums: Sums) -> Floats:
        p, r = np.asarray(self.precision(sums)), np.asarray(self.recall(sums))
        return np.divide(2 * p * r, p + r, out=np.zeros(np.broadcast(p, r).shape), where=p + r != 0)


def macro(prefix: str) -> dict[str, Figure]:
    """Precision, recall and F1 as means over the rows, from columns named "<prefix>.precision" and so on."""
    return {name: Ratio(f"{prefix}.{name}") for name in ("precision", "recall", "f1")}


def micro(precision: Ratio, recall: Ratio) -> dict[str, Figure]:
    """Precision, recall and F1 of the pooled counts."""
    return {"precision": precision, "recall": recall, "f1": Harmonic(precision, recall)}


def matcher_figures(names: Iterable[str], mode: Mode, pred_matched: str, gold_matched: str) -> Figures:
    """For each matcher the means over steps and, in strict, the pooled counts: "<name>.<pred_matched>" and so on."""
    figures = {name: macro(name) for name in names}
    if mode == "strict":
        for name in names:
            matched = Ratio(f"{name}.{pred_matched}", "predicted"), Ratio(f"{name}.{gold_matched}", "gold")
            figures[f"{name} micro"] = micro(*matched)
    return figures


@dataclass(frozen=True, eq=False)
class Statistics:
    """One row of numbers for every step. All a score remembers of its data."""

    columns: tuple[str, ...]
    procedures: tuple[str, ...]
    """The procedure of each row; likewise `steps`."""
    steps: tuple[int, ...]
    values: Floats
    """Rows by columns."""

    @classmethod
    def collect(cls, columns: Sequence[str], rows: Iterable[StepRow]) -> Statistics:
        """Go through the rows once, holding nothing but their numbers and one copy of each procedure id."""
        numbers, steps, procedures = array("d"), [], []
        known: dict[str, str] = {}
        for procedure, step, values in rows:
            if len(values) != len(columns):
                raise ValueError(f"{len(values)} values for {len(columns)} columns")
            numbers.extend(values)
            steps.append(step)
            procedures.append(known.setdefault(procedure, procedure))
        table = np.asarray(numbers).reshape(len(steps), len(columns))
        return cls(tuple(columns), tuple(procedures), tuple(steps), table)

    def __len__(self) -> int:
        return len(self.steps)

    def column(self, name: str) -> Floats:
        """The values of one column, a row each."""
        return self.values[:, self.columns.index(name)]

    def sums(self) -> Sums:
        """Every column's sum, and the number of rows as `UNITS`."""
        return self.named(np.append(self.values.sum(axis=0), len(self)))

    def named(self, totals: Floats) -> Sums:
        """Sums under their columns' names: `totals` has the columns, then `UNITS`, along its last axis."""
        return {name: totals[..., index] for index, name in enumerate((*self.columns, UNITS))}

    def by_procedure(self) -> tuple[tuple[str, ...], Floats]:
        """Procedure ids in the order of their first row, and the sums of their rows: the columns, then `UNITS`."""
        index: dict[str, int] = {}
        where = [index.setdefault(procedure, len(index)) for procedure in self.procedures]
        totals = np.zeros((len(index), len(self.columns) + 1))
        np.add.at(totals, where, np.column_stack([self.values, np.ones(len(self))]))
        return tuple(index), totals

    def select(self, keep: Callable[[str, int], bool]) -> Statistics:
        """The rows whose procedure and step are wanted: a breakdown needs no second scoring."""
        wanted = [i for i, key in enumerate(zip(self.procedures, self.steps, strict=True)) if keep(*key)]
        return Statistics(
            self.columns,
            tuple(self.procedures[i] for i in wanted),
            tuple(self.steps[i] for i in wanted),
            self.values[wanted],
        )


@dataclass(frozen=True)
class Signature:
    """Everything a number depends on besides the predictions. Two scores compare only if theirs are equal."""

    entries: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, metric: str, mode: str, **more: str | int | float) -> Signature:
        """In the order given, the package's version last."""
        entries = {"metric": metric, "mode": mode} | {key: f"{value}" for key, value in more.items()}
        return cls((*entries.items(), ("version", __version__)))

    def __str__(self) -> str:
        return "|".join(f"{key}:{value}" for key, value in self.entries)

    def with_entry(self, key: str, value: str) -> Signature:
        """With one thing more that the number depends on, before the version."""
        *entries, version = self.entries
        return Signature((*entries, (key, value), version))

    def differences(self, other: Signature) -> dict[str, tuple[str | None, str | None]]:
        """The keys on which two signatures disagree, with both values."""
        ours, theirs = dict(self.entries), dict(other.entries)
        return {key: (ours.get(key), theirs.get(key)) for key in ours | theirs if ours.get(key) != theirs.get(key)}


@dataclass(frozen=True, eq=False, repr=False)
class Score:
    """The result of a metric: rows of figures, how they are computed, and what they were computed on."""

    metric: str
    statistics: Statistics
    figures: Mapping[str, Mapping[str, Figure]]
    """Row (a matcher, "exact micro", …) → column ("precision", "recall", "f1", "accuracy", …) → figure."""
    signature: Signature
    warnings: tuple[str, ...] = ()
    scale: float = 100.0
    """Figures are printed times this: 100 for percent, 1 for a correlation."""

    def compute(self, sums: Sums) -> dict[str, dict[str, Floats]]:
        """All figures, scaled, from sums."""
        return {
            row: {column: self.scale * figure(sums) for column, figure in columns.items()}
            for row, columns in self.figures.items()
        }

    @cached_property
    def rows(self) -> dict[str, dict[str, float]]:
        """Row → column → number."""
        computed = self.compute(self.statistics.sums())
        return {row: {column: float(value) for column, value in columns.items()} for row, columns in computed.items()}

    def __getitem__(self, row: str) -> dict[str, float]:
        return self.rows[row]

    @property
    def columns(self) -> list[str]:
        """The columns of all rows, each once."""
        return list(dict.fromkeys(column for columns in self.figures.values() for column in columns))

    def decimals(self, column: str) -> int:
        """How many to show: two for percentages, three for correlations and shares, none for counts."""
        return 0 if column in COUNTS else 2 if self.scale == 100 else 3

    def intervals(self, *, resamples: int = RESAMPLES, level: float = 0.95, seed: int = 0) -> Intervals:
        """The confidence interval of every figure, from resampled procedures: `score.intervals()["bleu"]["f1"].low`."""
        from fluents.scoring.bootstrap import intervals

        return intervals(self, resamples=resamples, level=level, seed=seed)

    def __str__(self) -> str:
        """A table of the figures, the warnings, and the signature."""
        columns = self.columns
        lines = (
            [row, *(number(values[name], self.decimals(name)) if name in values else "" for name in columns)]
            for row, values in self.rows.items()
        )
        warnings = (f"warning: {warning}" for warning in self.warnings)
        return "\n".join((text_table(["", *columns], lines), *warnings, str(self.signature)))

    __repr__ = __str__

    @property
    def n_steps(self) -> int:
        """Rows that stand for a whole procedure are none."""
        return sum(step > 0 for step in self.statistics.steps)

    @property
    def n_procedures(self) -> int:
        return len(set(self.statistics.procedures))

    def on(self, keep: Callable[[str, int], bool]) -> Score:
        """The same score over some of its steps."""
        statistics = self.statistics.select(keep)
        return Score(self.metric, statistics, self.figures, self.signature, self.warnings, self.scale)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "metric": self.metric,
            "scores": self.rows,
            "steps": self.n_steps,
            "procedures": self.n_procedures,
            "signature": str(self.signature),
            "warnings": list(self.warnings),
        }


def number(value: float, decimals: int = 2) -> str:
    """A number with so many decimals, without the sign of a zero; – where there is none."""
    return f"{value:z.{decimals}f}" if math.isfinite(value) else "–"


def text_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in plain text: the first column to the left, all others to the right."""
    cells = [heading, *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]).rstrip() for first, *others in cells
    )


@dataclass(frozen=True)
class Total:
    """A column's sum as it is: a count."""

    column: str

    def __call__(self, sums: Sums) -> Floats:
        return np.asarray(sums[self.column])


@dataclass(frozen=True)
class MeanOf:
    """The mean of several figures: over runs, or over classes."""

    figures: Sequence[Figure]

    def __call__(self, sums: Sums) -> Floats:
        mean: Floats = np.stack([figure(sums) for figure in self.figures]).mean(axis=0)
        return mean
