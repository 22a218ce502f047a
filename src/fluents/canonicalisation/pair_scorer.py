"""How likely two names mean one thing: a weighted sum of the evidence, and groups of names made from it.

The weights are those of a logistic regression, in parameters.json; `benchmarks/clustering.py --write` makes that file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from fluents.canonicalisation.pair_features import Matrix, PairFeatures
from fluents.scoring import Level
from fluents.scoring.greedy_clusters import clusters_by_label

PARAMETERS = Path(__file__).parent / "parameters.json"

Judged: TypeAlias = Mapping[tuple[int, int], bool]
"""Pairs of names, by their places, and whether they were judged to mean one thing."""


@dataclass(frozen=True)
class PairScorer:
    """Logistic regression over the features of pairs, and the threshold for joining them."""

    weights: Mapping[str, float]
    bias: float
    threshold: float

    def likely(self, evidence: PairFeatures) -> Matrix:
        """The probability that two names mean one thing, for every two."""
        total = np.full((len(evidence.names), len(evidence.names)), self.bias, dtype=np.float32)
        for kind, weight in self.weights.items():
            total += np.float32(weight) * evidence.of(kind)
        return np.asarray(1 / (1 + np.exp(-total)), dtype=np.float32)

    def groups(self, likely: Matrix) -> list[list[int]]:
        """Places of names, in groups: average linkage down to the threshold."""
        if len(likely) < 2:
            return [[place] for place in range(len(likely))]
        distance = 1 - (likely + likely.T) / 2  # the two halves are equal up to rounding
        np.fill_diagonal(distance, 0)
        tree = linkage(squareform(distance.astype(np.float64), checks=False), method="average")
        return clusters_by_label(fcluster(tree, 1 - self.threshold, criterion="distance").tolist())

    def doubtful(self, likely: Matrix, most: int) -> list[tuple[int, int]]:
        """The pairs nearest to the threshold, nearest first."""
        rows, columns = np.triu_indices(len(likely), k=1)
        nearest = np.argsort(np.abs(likely[rows, columns] - self.threshold), kind="stable")[:most]
        return [(int(rows[place]), int(columns[place])) for place in nearest]


def corrected(likely: Matrix, judged: Judged) -> Matrix:
    """The probabilities, with judgements in place of those that were judged."""
    result = likely.copy()
    for (one, two), same in judged.items():
        result[one, two] = result[two, one] = float(same)
    return result


@lru_cache(maxsize=2)
def shipped_scorer(level: Level) -> PairScorer:
    """The scorer that comes with the package."""
    return PairScorer(**json.loads(PARAMETERS.read_text(encoding="utf-8"))[level])
