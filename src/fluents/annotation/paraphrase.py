"""Changes that say the same in other words: "pan hot" and "skillet heated"."""

from __future__ import annotations

from collections.abc import Sequence

from fluents.records import StateChange
from fluents.text.names import fold


def change_clusters(changes: Sequence[StateChange]) -> list[int]:
    """A number for each change, the same for changes that say the same thing; their steps do not matter.

    They are clustered as the cluster metric does it, with static word vectors. These do not see the order of words, so
    a change and its contrary (open to closed, closed to open) are held apart: where one ends, the other begins.
    """
    import numpy as np

    from fluents.scoring.greedy_clusters import greedy_clusters
    from fluents.text.embedders import load_embedder

    if not changes:
        return []
    embedder = load_embedder()
    vectors = embedder([change.templated for change in changes])
    before, after = (np.array([fold(getattr(change, name)) for change in changes]) for name in ("before", "after"))
    contrary = (after[:, None] == before[None, :]) | (before[:, None] == after[None, :])
    return greedy_clusters(vectors, embedder.threshold, contrary)


def overlap_f1(one: set[tuple[int, int]], other: set[tuple[int, int]]) -> float:
    """F1 of two people's changes, each given by its step and its cluster; 1 where neither has any."""
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0
