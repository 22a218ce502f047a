"""What the scorer learns from and is tested on: names in their procedures, and how they were clustered.

A language model's clusters (OpenPI2.0's own, of 45 procedures) teach; people's clusters, of the ten others, test.
Both are clusters of the words annotators wrote, so what the trace says under a name is taken from OpenPI v1.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from fluents.canonicalise.evidence import Evidence
from fluents.canonicalise.named import Fact, fact_of, folded
from fluents.canonicalise.scorer import Level
from fluents.data import cluster_labels
from fluents.data.datasets import load_traces
from fluents.metrics.embedders import Embedder
from fluents.records import Trace

BAR = " | "


@dataclass(frozen=True)
class Lesson:
    """Names of one procedure, or of one entity's attributes, and the clusters somebody made of them."""

    procedure: str
    entity: str
    """Empty where the names are the procedure's entities."""
    evidence: Evidence
    clusters: Sequence[Collection[str]]

    @property
    def key(self) -> tuple[str, str]:
        return self.procedure, self.entity

    def groups(self, places: Sequence[Sequence[int]]) -> list[list[str]]:
        """The names at these places."""
        return [[name for place in group for name in self.evidence.names[place].names] for group in places]


def lessons(level: Level, embedder: Embedder) -> tuple[list[Lesson], list[Lesson]]:
    """(by a language model, by people), of different procedures."""
    labels = cluster_labels.entity_labels() if level == "entities" else cluster_labels.attribute_labels()
    by_people = {procedure for procedure, _ in labels}
    canonical = list(load_traces("openpi2:dev"))
    written = _as_written(canonical)
    made = [
        _lesson(written[trace.id], trace.id, entity, clusters, embedder)
        for trace in canonical
        if trace.id not in by_people
        for entity, clusters in _model_clusters(trace, level)
        if clusters
    ]
    meant = [
        _lesson(written[procedure], procedure, entity, clusters, embedder)
        for (procedure, entity), clusters in labels.items()
    ]
    return made, meant


def _model_clusters(trace: Trace, level: Level) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    if level == "entities":
        yield "", [cluster.mentions for cluster in trace.clusters]
        return
    for cluster in trace.clusters:
        yield BAR.join(cluster.mentions), [attribute.mentions for attribute in cluster.attributes]


def _as_written(canonical: Sequence[Trace]) -> dict[str, Trace]:
    """The same procedures with annotators' own words; the two releases share nothing but the steps' text."""
    plain = list(load_traces("openpi-v1.1:dev"))
    texts = [set(trace.procedure.steps) for trace in plain]
    found = {}
    for trace in canonical:
        steps = set(trace.procedure.steps)
        best = max(range(len(plain)), key=lambda place: len(steps & texts[place]))
        found[trace.id] = plain[best]
    return found


def _lesson(
    trace: Trace, procedure: str, entity: str, clusters: Sequence[Collection[str]], embedder: Embedder
) -> Lesson:
    facts: dict[str, list[Fact]] = {name: [] for cluster in clusters for name in cluster}
    entities = set(entity.split(BAR))
    for change in trace.changes:
        name = change.attribute if entity else change.entity
        if name in facts and (not entity or change.entity in entities):
            facts[name].append(fact_of(change))
    times = {name: len(said) for name, said in facts.items()}
    return Lesson(procedure, entity, Evidence(folded(facts, times), embedder), clusters)
