"""How well one rater's salience agrees with another's: Pearson's correlation, in three ways that must be told apart.

- "smoothed" is the published number: the mean of each procedure's correlation after one 0 is appended to both raters'
  numbers. That 0 pulls two raters together who share nothing but never saying 0: it makes most of the global number.
- "raw" is the mean without it, over the procedures where it is defined; "undefined" counts the others, in which one
  rater gives everything the same number.
- "micro" is one correlation over all numbers of all procedures.

compat reads numbers as the released script: an answer that could not be read is 1; out of range is 0, but only in the
smoothed global numbers ("micro clamped" shows it for the pooled ones). strict leaves out every pair of numbers of which
one could not be read or is out of range, and does not smooth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from fluents.errors import InputError
from fluents.records import Salience, Trace
from fluents.scoring import Mode
from fluents.scoring.alignment import ProcedurePairs
from fluents.scoring.score import Figure, Floats, Score, ShareOf, Signature, Statistics, Sums, Total
from fluents.text.names import counted

REFERENCE = "A1"
"""The annotator everybody is held against in OpenPI2.0."""

Numbers: TypeAlias = list[tuple[float, float]]
"""What the reference and the rater said of one thing after another."""

_ABSURD = 1e6
"""A number as large as this, or none at all, is no rating but an answer that was not read."""

MEAN_COLUMNS = ("r", "defined", "undefined")
MOMENTS = ("n", "x", "y", "xx", "yy", "xy")


def salience(
    gold: Iterable[Trace],
    pred: Iterable[Trace],
    *,
    mode: Mode = "compat",
    reference: str = REFERENCE,
    rater: str | None = None,
) -> Score:
    """Correlate a rater's salience in `pred` with the reference rater's in `gold`, on the procedures the latter rated.

    `rater` may be left out where the predictions have one only. The two sources may be the same traces.
    """
    pairs = ProcedurePairs(gold, pred, mode)
    views = _PUBLISHED if mode == "compat" else _STRICT
    rated: list[_Rated] = []
    name = rater
    for meant, said in pairs:
        name = name or _only_rater(said, reference)
        if ours := _ratings(meant, reference):
            rated.append(_Rated(meant.id, ours, _ratings(said, name) if name else {}))
    if not rated or not any(one.pred for one in rated):
        raise InputError(
            f"no procedure is rated by both {reference!r} and {repr(name) if name else 'a second rater'}",
            fix="rate the predictions with `fluents salience`, or check `reference` and `rater`",
        )
    warnings = tuple(pairs.warnings)
    if alone := sum(len(one.gold.keys() ^ one.pred.keys()) for one in rated):
        warnings += (f"{counted(alone, 'entity')} rated by only one of the two raters",)
    if warnings and mode == "strict":
        raise InputError(
            "; ".join(warnings), fix="set `mode` to compat, which scores only entities that both raters rated"
        )
    columns = [f"{view.name}.{column}" for view in views for column in view.columns]
    rows = ((one.id, 0, [value for view in views for value in view.row(one)]) for one in rated)
    statistics = Statistics.collect(columns, rows)
    signature = Signature.of("salience", mode, reference=reference, data=pairs.data_hash)
    figures = {view.name: view.figures() for view in views}
    return Score("salience", statistics, figures, signature, warnings, scale=1.0)


def _only_rater(pred: Trace, reference: str) -> str | None:
    raters = list(dict.fromkeys(rating.rater for rating in pred.salience))
    if len(raters) > 1:
        others = [rater for rater in raters if rater != reference]
        raise InputError(
            "the predictions contain ratings by several raters", fix=f"set `rater` to one of: {', '.join(others)}"
        )
    return raters[0] if raters else None


Key: TypeAlias = tuple[str, int | None]
"""An entity and a step, or no step for the whole procedure."""


def _ratings(trace: Trace, rater: str) -> dict[Key, Salience]:
    return {(rating.entity, rating.step): rating for rating in trace.salience if rating.rater == rater}


class _Rated(NamedTuple):
    """A procedure and what both raters said of it."""

    id: str
    gold: dict[Key, Salience]
    pred: dict[Key, Salience]


@dataclass(frozen=True)
class _View:
    """One way to correlate the numbers: which, how they are read, and whether they are pooled."""

    name: str
    is_global: bool
    pooled: bool = False
    smoothed: bool = False
    clamped: bool = False
    strict: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return MOMENTS if self.pooled else MEAN_COLUMNS

    def figures(self) -> dict[str, Figure]:
        if self.pooled:
            return {"r": PooledPearson(self.name)}
        return {"r": ShareOf(f"{self.name}.r", f"{self.name}.defined"), "undefined": Total(f"{self.name}.undefined")}

    def row(self, rated: _Rated) -> Sequence[float]:
        numbers = self._numbers(rated) + ([(0.0, 0.0)] if self.smoothed else [])
        x, y = np.array(numbers, dtype=float).reshape(-1, 2).T
        if self.pooled:
            return len(x), x.sum(), y.sum(), x @ x, y @ y, x @ y
        r = pearson(x, y)
        return (0.0, 0, 1) if r is None else (r, 1, 0)

    def _numbers(self, rated: _Rated) -> Numbers:
        found: Numbers = []
        for key, ours in rated.gold.items():
            if (key[1] is None) == self.is_global and key in rated.pred:
                values = self._read(ours.value), self._read(rated.pred[key].value)
                if values[0] is not None and values[1] is not None:
                    found.append((values[0], values[1]))
        return found

    def _read(self, value: float | None) -> float | None:
        if self.strict:
            return None if value is None or not 0 <= value <= 5 else value
        value = 1 if value is None or not abs(value) < _ABSURD else value
        return 0 if self.clamped and not 0 <= value <= 5 else value


_PUBLISHED = (
    _View("global smoothed", is_global=True, smoothed=True, clamped=True),
    _View("local smoothed", is_global=False, smoothed=True),
    _View("global raw", is_global=True),
    _View("local raw", is_global=False),
    _View("global micro", is_global=True, pooled=True),
    _View("global micro clamped", is_global=True, pooled=True, clamped=True),
    _View("local micro", is_global=False, pooled=True),
)
_STRICT = (
    _View("global", is_global=True, strict=True),
    _View("local", is_global=False, strict=True),
    _View("global micro", is_global=True, pooled=True, strict=True),
    _View("local micro", is_global=False, pooled=True, strict=True),
)


def pearson(x: Floats, y: Floats) -> float | None:
    """Pearson's correlation; None where there are no two numbers, or one side's are all the same."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))


@dataclass(frozen=True)
class PooledPearson:
    """Pearson's correlation from summed moments; not a number where one side's numbers are all the same."""

    prefix: str

    def __call__(self, sums: Sums) -> Floats:
        n, x, y, xx, yy, xy = (np.asarray(sums[f"{self.prefix}.{moment}"]) for moment in MOMENTS)
        spread = np.sqrt(np.clip((n * xx - x * x) * (n * yy - y * y), 0, None))
        r: Floats = np.divide(n * xy - x * y, spread, out=np.full(n.shape, np.nan), where=spread > 1e-9)
        return r.clip(-1, 1)


VOTES = "votes"
"""The baseline: how often annotators' words speak of an entity (OpenPI2.0)."""
HIGHEST = 5


def others(gold: Sequence[Trace], *, mode: Mode = "compat", reference: str = REFERENCE) -> dict[str, Score]:
    """Rater → score, for everyone in the gold but the reference who rated what the reference did; votes come last."""
    rated = [trace for trace in gold if any(one.rater == reference for one in trace.salience)]
    with_votes = [trace.replace(salience=(*trace.salience, *votes(trace))) for trace in rated]
    raters = dict.fromkeys(one.rater for trace in with_votes for one in trace.salience if one.rater != reference)
    found: dict[str, Score] = {}
    for rater in raters:
        try:
            found[rater] = salience(with_votes, with_votes, mode=mode, reference=reference, rater=rater)
        except InputError:  # this one rated other things: there is nothing to hold against the reference
            continue
    return found


def votes(trace: Trace) -> Iterator[Salience]:
    """The votes as ratings, the most of the procedure being the highest. Fewer than none (there are −1) are none."""
    most = max((entity.votes or 0 for entity in trace.entities), default=0)
    most_in_step = max((count for entity in trace.entities for count in entity.step_votes), default=0)
    for entity in trace.entities:
        if entity.votes is not None:
            yield _rating(entity.name, None, entity.votes, most)
        for step, count in enumerate(entity.step_votes, start=1):
            yield _rating(entity.name, step, count, most_in_step)


def _rating(entity: str, step: int | None, count: int, most: int) -> Salience:
    value = HIGHEST * max(0, count) / max(1, most)
    return Salience(entity=entity, rater=VOTES, step=step, value=value)


def by_procedure(score: Score) -> dict[str, float | None]:
    """Procedure → its global correlation; None where it is not defined. Smoothed in compat, as it was published."""
    view = next(row for row in score.figures if row.startswith("global"))
    columns = (score.statistics.column(f"{view}.{name}") for name in ("r", "defined"))
    return {
        procedure: float(r) if defined else None
        for procedure, r, defined in zip(score.statistics.procedures, *columns, strict=True)
    }
