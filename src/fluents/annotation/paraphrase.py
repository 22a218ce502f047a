"""Changes that say the same in other words: "pan hot" and "skillet heated"."""

from __future__ import annotations

from collections.abc import Sequence

from fluents.records import StateChange
from fluents.text.names import fold


def change_clusters(changes: Sequence[StateChange]) -> list[int]:
    """A number for each change, the same for changes that say the same thing; their steps do not matter.

    They are clustered as the cluster metric does it, with static word vectors. These do not see the order of words, so
    a change and its contrary (open to closed, closed to open) are held apart.
    """
    import numpy as np

    from fluents.scoring.greedy_clusters import greedy_clusters
    from fluents.text.embedders import load_embedder

    if not changes:
        return []
    embedder = load_embedder()
    apart = np.array([[_contrary(one, other) for other in changes] for one in changes], dtype=bool)
    return greedy_clusters(embedder([change.templated for change in changes]), embedder.threshold, apart)


def _contrary(one: StateChange, other: StateChange) -> bool:
    """Whether one ends where the other begins, or begins where it ends."""
    return fold(one.after) == fold(other.before) or fold(one.before) == fold(other.after)


def overlap_f1(one: set[tuple[int, int]], other: set[tuple[int, int]]) -> float:
    """F1 of two people's changes, each given by its step and its cluster; 1 where neither has any."""
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0
