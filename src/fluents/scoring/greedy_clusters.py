"""Clusters of answers that say the same: making them, and how well two clusterings agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluents.errors import InputError
from fluents.records import StateChange
from fluents.scoring.step_alignment import StepAnswers
from fluents.text.embedders import Embedder


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


class Calibration(NamedTuple):
    threshold: float
    f1: float
    """B-cubed, against the given clusters."""


_HUNDREDTHS = tuple(number / 100 for number in range(40, 96))


def calibrate(
    embedder: Embedder, steps: Iterable[StepAnswers], thresholds: Sequence[float] = _HUNDREDTHS
) -> Calibration:
    """The threshold at which an embedder's clusters agree best with given ones, over all answers of all steps."""
    gold: list[tuple[int, int]] = []  # labels of different steps are told apart by a number
    texts: list[str] = []
    starts: list[int] = []
    for step in steps:
        given = given_clusters(step)
        if given is not None:
            gold += [(len(starts), label) for label in given]
            starts.append(len(texts))
            texts += step.sentences
    if not gold:
        raise InputError("calibration needs steps with given clusters", fix="use the test set of OpenPI-C")
    embedded = np.split(embedder(texts), starts[1:])

    def agreement(threshold: float) -> float:
        made = [(number, label) for number, rows in enumerate(embedded) for label in greedy_clusters(rows, threshold)]
        return b_cubed(gold, made).f1

    return max((Calibration(threshold, agreement(threshold)) for threshold in thresholds), key=lambda found: found.f1)
