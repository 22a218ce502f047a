"""One clustering out of several: what was said most often, as far as it fits together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

Run: TypeAlias = Iterable[Collection[str]]
"""One answer: clusters of names."""


def elected(runs: Iterable[Run], names: Sequence[str]) -> list[list[str]]:
    """The clusters that occur in most runs, none with a name that another has already taken.

    A cluster is a set: its order does not matter, and names that were not asked about are left out of it. A run votes
    once for each of its clusters, and with a name that it puts into several for the first alone. Of clusters with
    equally many votes the larger comes first, then the alphabet decides. Names that no chosen cluster has stand alone.
    """
    known = set(names)
    votes: Counter[frozenset[str]] = Counter()
    for run in runs:
        votes.update(_disjoint(run, known))
    taken: set[str] = set()
    chosen: list[list[str]] = []
    for cluster in sorted(votes, key=lambda one: (-votes[one], -len(one), sorted(one))):
        if not cluster & taken:
            taken |= cluster
            chosen.append(sorted(cluster))
    return sorted([*chosen, *([name] for name in known - taken)])


def _disjoint(run: Run, known: set[str]) -> list[frozenset[str]]:
    seen: set[str] = set()
    found = []
    for cluster in run:
        fresh = frozenset(cluster) & known - seen
        seen |= fresh
        if fresh:
            found.append(fresh)
    return found
