"""How far raters agree on salience, or annotators on any labels.

The measures are OpenPI-C's, the share of items on which all say the same, and Krippendorff's alpha, which sets the
disagreement seen against the disagreement of chance and copes with missing answers. Alpha is computed from the
coincidence matrix (Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011): the matrix is a sum over items,
so the bootstrap can resample it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Literal, TypeAlias

import numpy as np

from fluents.errors import InputError
from fluents.records import Trace
from fluents.scoring import Scope, check_choice
from fluents.scoring.score import Figures, Floats, Score, ShareOf, Signature, Statistics, StepRow, Sums

MeasurementLevel: TypeAlias = Literal["nominal", "ordinal", "interval"]
Rating: TypeAlias = str | float | None
Item: TypeAlias = tuple[str, Sequence[Rating]]
"""The procedure it belongs to (or any id of its own), and each annotator's answer; None where one gave none."""

MAX_VALUES = 50
"""The matrix has a cell for every two values: more of them are measurements rather than labels."""


def agreement(
    gold: Iterable[Trace],
    pred: Iterable[Trace],
    *,
    level: MeasurementLevel = "ordinal",
    scope: Scope = "global",
    raters: Sequence[str] = (),
) -> Score:
    """How far the raters of salience in `gold` and `pred` agree, all of them or those named; either side may be empty.

    `level` says what alpha takes ratings for: names ("nominal"), ranks ("ordinal") or quantities ("interval").
    Ratings are rounded to whole numbers.
    """
    check_choice("scope", scope, Scope)
    ratings: dict[str, Ratings] = {}
    for trace in (*gold, *pred):
        of_procedure = ratings.setdefault(trace.id, {})
        for key, value in _ratings(trace, scope).items():
            if of_procedure.setdefault(key, value) != value:
                raise InputError(
                    f"gold and predictions both contain ratings by {key[2]}, but the ratings differ",
                    where=trace.id,
                    fix="rename the rater in one of the files",
                )
    found = dict.fromkeys(rater for of_procedure in ratings.values() for _, _, rater in of_procedure)
    if unknown := [rater for rater in raters if rater not in found]:
        raise InputError(
            f"the traces contain no salience ratings by {unknown[0]!r}",
            fix=f"choose one of: {', '.join(found)}"
            if found
            else "give traces with ratings by several raters, such as openpi2:dev",
        )
    chosen = list(raters or found)
    items = (item for name, of_procedure in ratings.items() for item in _items(name, of_procedure, chosen))
    signature = Signature.of("agreement", "strict", level=level, scope=scope, raters="+".join(chosen))
    return replace(item_agreement(items, level=level), signature=signature)


Ratings: TypeAlias = dict[tuple[str, int | None, str], float | None]
"""Entity, step and rater → rating."""


def _ratings(trace: Trace, scope: Scope) -> Ratings:
    return {
        (rating.entity, rating.step, rating.rater): None if rating.value is None else round(rating.value)
        for rating in trace.salience
        if (rating.step is not None) == (scope == "local")
    }


def _items(procedure: str, ratings: Ratings, raters: Sequence[str]) -> Iterator[Item]:
    """What the raters said of each entity, in the procedure or in each step."""
    for entity, step in dict.fromkeys((entity, step) for entity, step, rater in ratings if rater in raters):
        yield procedure, [ratings.get((entity, step, rater)) for rater in raters]


def item_agreement(items: Iterable[Item], *, level: MeasurementLevel = "nominal") -> Score:
    """The share of items with full agreement, and alpha, for answers of any kind.

    >>> item_agreement([("a", ["yes", "yes"]), ("b", ["yes", "no"])])["agreement"]["share"]
    0.5
    """
    check_choice("level", level, MeasurementLevel)
    given = [(procedure, [answer for answer in answers if answer is not None]) for procedure, answers in items]
    comparable = [(procedure, answers) for procedure, answers in given if len(answers) > 1]
    if not comparable:
        raise InputError(
            "no item was rated by at least two raters", fix="give ratings of the same items by several raters"
        )
    values = _values(comparable, level)
    cells = [f"{c},{k}" for c, k in combinations_with_replacement(range(len(values)), 2)]
    left_out = len(given) - len(comparable)
    figures: Figures = {
        "agreement": {"share": ShareOf("agreed", "items")},
        "alpha": {level: Alpha(tuple(values), level)},
    }
    return Score(
        "agreement",
        Statistics.collect(("agreed", "items", *cells), _rows(comparable, values)),
        figures,
        Signature.of("agreement", "strict", level=level),
        (f"{left_out} of {len(given)} items have fewer than two answers and are left out",) if left_out else (),
        scale=1.0,
    )


def _values(items: Iterable[Item], level: MeasurementLevel) -> list[Rating]:
    """Every value that occurs, numbers in their order."""
    values = {answer for _, answers in items for answer in answers}
    if len(values) > MAX_VALUES:
        raise InputError(
            f"the ratings have {len(values)} different values, but at most {MAX_VALUES} are supported",
            fix="use a coarser scale, or merge labels",
        )
    numbers = [value for value in values if isinstance(value, (int, float)) and np.isfinite(value)]
    if level != "nominal" and len(numbers) < len(values):
        raise InputError(f"`level` {level} needs numbers, but the ratings are labels", fix="set `level` to nominal")
    return sorted(values, key=lambda value: (isinstance(value, str), value))


def _rows(items: Iterable[Item], values: Sequence[Rating]) -> Iterator[StepRow]:
    """Each item's part of the coincidence matrix: every ordered pair of its answers, each answer weighing 1."""
    place = {value: index for index, value in enumerate(values)}
    for procedure, answers in items:
        counts = Counter(place[answer] for answer in answers)
        cells = dict.fromkeys(combinations_with_replacement(range(len(values)), 2), 0.0)
        for c, k in combinations_with_replacement(sorted(counts), 2):
            cells[c, k] = counts[c] * (counts[k] - (c == k)) / (len(answers) - 1)
        yield procedure, 0, (len(counts) == 1, 1, *cells.values())


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha from summed coincidences; not a number where all answers are the same."""

    values: tuple[Rating, ...]
    level: MeasurementLevel

    def __call__(self, sums: Sums) -> Floats:
        coincidences = self._matrix(sums)
        totals = coincidences.sum(axis=-1)
        distances = self._distances(totals)
        observed = (coincidences * distances).sum(axis=(-2, -1))
        expected = (totals[..., :, None] * totals[..., None, :] * distances).sum(axis=(-2, -1))
        ratio: Floats = np.divide(observed, expected, out=np.full(observed.shape, np.nan), where=expected > 0)
        alpha: Floats = 1 - (totals.sum(axis=-1) - 1) * ratio
        return alpha

    def _matrix(self, sums: Sums) -> Floats:
        size = len(self.values)
        shape = np.shape(sums["items"])
        matrix = np.zeros((*shape, size, size))
        for c, k in combinations_with_replacement(range(size), 2):
            matrix[..., c, k] = matrix[..., k, c] = sums[f"{c},{k}"]
        return matrix

    def _distances(self, totals: Floats) -> Floats:
        """Squared differences of the values; of ranks, by how many answers lie between them."""
        if self.level == "nominal":
            return 1 - np.eye(len(self.values))
        ranks = totals.cumsum(axis=-1) - totals / 2
        points = np.array(self.values, dtype=float) if self.level == "interval" else ranks
        distances: Floats = (points[..., :, None] - points[..., None, :]) ** 2
        return distances
