"""Figures beyond ratios and F1, each computed from sums like all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fluents.metrics.base import Figure, Floats, Sums


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


@dataclass(frozen=True)
class ShareOf:
    """Σ numerator / Σ denominator, not a number where there is nothing to share: nothing was judged, or is defined."""

    numerator: str
    denominator: str

    def __call__(self, sums: Sums) -> Floats:
        top, bottom = np.asarray(sums[self.numerator]), np.asarray(sums[self.denominator])
        share: Floats = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0)
        return share
