"""Fixed folds of the small human-labelled sets of OpenPI2.0, for cross-validation.

Tune on the other folds, score on the one held out, and report over all. Drawn once with random.Random(2024).shuffle and
written out, so that they never change. Do not edit them.
"""

from __future__ import annotations

from collections.abc import Iterator

CLUSTER_FOLDS: tuple[tuple[str, ...], ...] = (("22", "24"), ("1", "4"), ("18", "55"), ("7", "47"), ("14", "28"))
"""The 10 procedures with hand-made entity and attribute clusters."""

SALIENCE_FOLDS: tuple[tuple[str, ...], ...] = (
    ("1", "9", "14", "20"),
    ("3", "5", "7", "18"),
    ("10", "15", "17", "19"),
    ("2", "6", "8", "12"),
    ("4", "11", "13", "16"),
)
"""The 20 procedures whose salience people rated."""


def held_out(folds: tuple[tuple[str, ...], ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(procedures to tune on, procedures to score) for each fold."""
    for fold in folds:
        yield tuple(sorted((p for other in folds if other is not fold for p in other), key=int)), fold
