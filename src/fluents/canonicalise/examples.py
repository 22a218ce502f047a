"""Clusterings to show with a question, from a dataset or a file of traces that have clusters."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fluents.canonicalise.scorer import Level
from fluents.prompts.drawing import of_others
from fluents.prompts.llm import MAX_NAME_BYTES, quoted, whole_scene
from fluents.records import AttributeCluster, EntityCluster, Procedure, Trace

MOST_SHOWN = 60
"""Names in an example: a longer one would crowd out the question."""


@dataclass(frozen=True)
class Shown:
    """Names with their right grouping."""

    scene: str
    names: tuple[str, ...]
    answer: str
    entity: str = ""


class ShownClusters:
    """Procedures to draw examples from, in an order that the seed decides; of each one entity's attributes."""

    def __init__(self, traces: Iterable[Trace], count: int = 3, seed: int = 1, source: str = "") -> None:
        self.name = f"{count} examples of {source}"
        self._count, self._source = count, source
        self._drawn: dict[Level, list[tuple[Procedure, Shown]]] = {"entities": [], "attributes": []}
        draw = random.Random(seed)
        for trace in draw.sample(whole := list(traces), len(whole)):
            if _can_be_shown(trace.clusters):
                self._drawn["entities"].append((trace.procedure, _shown(trace, trace.clusters)))
            owners = [cluster for cluster in trace.clusters if _can_be_shown(cluster.attributes)]
            if owners:
                owner = draw.choice(owners)
                self._drawn["attributes"].append((trace.procedure, _shown(trace, owner.attributes, owner.name)))

    def examples(self, procedure: Procedure, level: Level) -> list[Shown]:
        """So many as were asked for, from other procedures than this."""
        return of_others(self._drawn[level], procedure, self._count, self._source)


def _can_be_shown(clusters: Sequence[EntityCluster] | Sequence[AttributeCluster]) -> bool:
    """Whether there are names to tell apart, and not too many."""
    return 1 < sum(len(cluster.mentions) for cluster in clusters) <= MOST_SHOWN


def _shown(trace: Trace, clusters: Sequence[EntityCluster] | Sequence[AttributeCluster], entity: str = "") -> Shown:
    """Names by the alphabet: in the clusters' order the answer would be no more than where to put brackets."""
    groups = [[_quoted(name) for name in cluster.mentions] for cluster in clusters if cluster.mentions]
    return Shown(
        whole_scene(trace.procedure),
        tuple(sorted(name for group in groups for name in group)),
        '{"groups": [' + ", ".join(f"[{', '.join(group)}]" for group in groups) + "]}",
        _quoted(entity),
    )


def _quoted(name: str) -> str:
    return quoted(name, MAX_NAME_BYTES)
