"""A weighted sum of features: fitted by ridge regression, stored as a table people can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fluents.scoring.score import Floats

LEAST, MOST = 0.0, 5.0
"""The scale of salience: 0 is irrelevant."""

HEADING = ("feature", "mean", "spread", "weight")
_BASE = "(base)"


@dataclass(frozen=True)
class Ridge:
    """base + Σ weight · (feature − mean) / spread, held within the scale."""

    base: float
    features: tuple[str, ...]
    means: tuple[float, ...]
    spreads: tuple[float, ...]
    weights: tuple[float, ...]

    def __call__(self, columns: Mapping[str, Floats]) -> Floats:
        """A rating for every entry of the columns, which are of one shape."""
        total = np.full(columns[self.features[0]].shape, self.base)
        for name, mean, spread, weight in zip(self.features, self.means, self.spreads, self.weights, strict=True):
            total += weight * (columns[name] - mean) / spread
        return total.clip(LEAST, MOST)

    def table(self) -> str:
        """Tab-separated, the features that count most first."""
        rows = list(zip(self.features, self.means, self.spreads, self.weights, strict=True))
        lines = [HEADING, (_BASE, "", "", f"{self.base:.4g}")]
        for name, mean, spread, weight in sorted(rows, key=lambda row: -abs(row[3])):
            lines.append((name, f"{mean:.4g}", f"{spread:.4g}", f"{weight:.4g}"))
        return "".join("\t".join(line) + "\n" for line in lines)

    @classmethod
    def from_table(cls, text: str) -> Ridge:
        """What `table` wrote."""
        _, base, *rows = (line.split("\t") for line in text.splitlines())
        names, *columns = zip(*rows, strict=True)
        means, spreads, weights = (tuple(float(number) for number in column) for column in columns)
        return cls(float(base[3]), names, means, spreads, weights)


def fit_ridge(columns: Mapping[str, Floats], labels: Floats, penalty: float) -> Ridge:
    """Ridge regression on standardised features, then stretched so that its ratings spread as the labels do.

    Without the stretching a strong penalty would rate everything near the middle: the order would be the same, but no
    threshold would mean what it means for the raters. A label that is not a number is left out.
    """
    known = np.isfinite(labels)
    rows = np.column_stack([column[known] for column in columns.values()])
    wanted = labels[known]
    means, spreads = rows.mean(axis=0), rows.std(axis=0)
    spreads = np.where(spreads > 1e-9, spreads, 1.0)  # a feature that never varies says nothing, and divides nothing
    standard = (rows - means) / spreads
    base = wanted.mean()
    square = standard.T @ standard + penalty * np.eye(standard.shape[1])
    weights = np.linalg.solve(square, standard.T @ (wanted - base))
    spread = (standard @ weights).std()
    if spread > 1e-9:
        weights *= wanted.std() / spread
    return Ridge(float(base), tuple(columns), *(tuple(one.tolist()) for one in (means, spreads, weights)))
