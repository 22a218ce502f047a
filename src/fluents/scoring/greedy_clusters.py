"""Clusters of answers that say the same: making them, and how well two clusterings agree."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluents.errors import InputError
from fluents.records import StateChange
from fluents.scoring.alignment import StepAnswers
from fluents.text.embedders import Embedder


def given_clusters(step: StepAnswers) -> list[int] | None:
    """The cluster of every answer where the data set tells them all (OpenPI-C's test set), else None."""
    given = [
        answer.cluster for answer in step.answers if isinstance(answer, StateChange) and answer.cluster is not None
    ]
    return given if given and len(given) == len(step.answers) else None


def greedy_clusters(
    vectors: NDArray[np.float32], threshold: float, apart: NDArray[np.bool_] | None = None
) -> list[int]:
    """OpenPI-C's algorithm: a row joins the first cluster with all of whose members its cosine is above the threshold.

    Rows are of length 1, so the cosine is their product. What comes out depends on their order. Rows that `apart`
    marks never come together, however alike they are.
    """
    labels: list[int] = []
    members: list[list[int]] = []
    for row, vector in enumerate(vectors):
        alike = vectors[:row] @ vector > threshold
        if apart is not None:
            alike &= ~apart[row, :row]
        label = next((i for i, rows in enumerate(members) if alike[rows].all()), len(members))
        if label == len(members):
            members.append([])
        members[label].append(row)
        labels.append(label)
    return labels


def b_cubed(these: Sequence[Collection[Hashable]], those: Sequence[Collection[Hashable]]) -> tuple[float, int]:
    """Of each item's neighbours here, the share that those clusters join to it too, summed; and the number of items."""
    mine, theirs = _clusters_of_items(these), _clusters_of_items(those)
    total = 0.0
    for item, clusters in mine.items():
        neighbours = {neighbour for cluster in clusters for neighbour in these[cluster]}
        shared = 0.0
        for neighbour in neighbours:
            together = len(clusters & mine[neighbour])
            together_there = len(theirs.get(item, set()) & theirs.get(neighbour, set()))
            shared += min(together, together_there) / together
        total += shared / len(neighbours)
    return total, len(mine)


def _clusters_of_items(clusters: Sequence[Collection[Hashable]]) -> dict[Hashable, set[int]]:
    found: dict[Hashable, set[int]] = {}
    for index, cluster in enumerate(clusters):
        for item in cluster:
            found.setdefault(item, set()).add(index)
    return found


def clusters_by_label(labels: Iterable[Hashable]) -> list[list[int]]:
    """The places of equal labels."""
    found: dict[Hashable, list[int]] = {}
    for place, label in enumerate(labels):
        found.setdefault(label, []).append(place)
    return list(found.values())


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
        raise InputError(
            "the threshold cannot be calibrated, because no step of the gold has clusters",
            fix="give openpi-c:test as `gold`",
        )
    embedded = np.split(embedder(texts), starts[1:])

    def agreement(threshold: float) -> float:
        made = [(number, label) for number, rows in enumerate(embedded) for label in greedy_clusters(rows, threshold)]
        sides = clusters_by_label(made), clusters_by_label(gold)
        (precision, items), (recall, _) = b_cubed(*sides), b_cubed(*reversed(sides))
        return 2 * precision * recall / (precision + recall) / items

    return max((Calibration(threshold, agreement(threshold)) for threshold in thresholds), key=lambda found: found.f1)
