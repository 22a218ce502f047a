"""Clusters of answers that say the same: making them, and how well two clusterings agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluents.metrics.steps import StepAnswers
from fluents.records import StateChange


def given_clusters(step: StepAnswers) -> list[int] | None:
    """The cluster of every answer where the data set tells them all (OpenPI-C's test set), else None."""
    given = [
        answer.cluster for answer in step.answers if isinstance(answer, StateChange) and answer.cluster is not None
    ]
    return given if given and len(given) == len(step.answers) else None


def greedy_clusters(vectors: NDArray[np.float32], threshold: float) -> list[int]:
    """OpenPI-C's algorithm: a row joins the first cluster with all of whose members its cosine is above the threshold.

    Rows are of length 1, so the cosine is their product. What comes out depends on their order.
    """
    labels: list[int] = []
    members: list[list[int]] = []
    for row, vector in enumerate(vectors):
        alike = vectors[:row] @ vector > threshold
        label = next((i for i, rows in enumerate(members) if alike[rows].all()), len(members))
        if label == len(members):
            members.append([])
        members[label].append(row)
        labels.append(label)
    return labels


class Agreement(NamedTuple):
    precision: float
    recall: float
    f1: float


def b_cubed(gold: Sequence[Hashable], pred: Sequence[Hashable]) -> Agreement:
    """B-cubed, over items: the share of an item's predicted cluster that belongs there, and of its gold one found."""
    if len(gold) != len(pred) or not gold:
        raise ValueError(f"labels for {len(gold)} and {len(pred)} items: the same, at least one, are needed")
    shared = Counter(zip(gold, pred, strict=True))
    gold_sizes, pred_sizes = Counter(gold), Counter(pred)
    precision = sum(count**2 / pred_sizes[label] for (_, label), count in shared.items()) / len(gold)
    recall = sum(count**2 / gold_sizes[label] for (label, _), count in shared.items()) / len(gold)
    return Agreement(precision, recall, 2 * precision * recall / (precision + recall))
