"""The entities of a trace that are rated, each under one name with all its wordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fluents.records import StateChange, Trace


@dataclass(frozen=True)
class RatedEntity:
    """An entity, everything it is called, and all that happens to it."""

    name: str
    wordings: tuple[str, ...]
    """Its name first; expansions are not among them, for nobody wrote those."""
    changes: tuple[StateChange, ...]


def rated_entities(trace: Trace) -> list[RatedEntity]:
    """The entities that change, in the order in which the trace speaks of them."""
    name_of = canonical_names(trace)
    changes: dict[str, list[StateChange]] = {}
    wordings: dict[str, list[str]] = {}
    for change in trace.changes:
        name = name_of.get(change.entity, change.entity)
        changes.setdefault(name, []).append(change)
        wordings.setdefault(name, [name]).extend((change.entity, *change.alternatives.entity))
    for cluster in trace.clusters:
        if (name := name_of.get(cluster.name, cluster.name)) in wordings:
            wordings[name].extend(cluster.mentions)
    for entity in trace.entities:
        if entity.name in wordings:
            wordings[entity.name].extend(word for group in entity.wordings for word in group)
    return [RatedEntity(name, tuple(dict.fromkeys(wordings[name])), tuple(found)) for name, found in changes.items()]


def canonical_names(trace: Trace) -> Mapping[str, str]:
    """Which entity a name stands for, where it is not simply its own: a mention stands for its cluster.

    A name that annotators rated as an entity of its own stays one, whatever cluster it is in. A mention of two
    clusters stands for the first.
    """
    tracked = {entity.name for entity in trace.entities}
    clusters = {cluster.name for cluster in trace.clusters}
    found: dict[str, str] = {}
    for cluster in trace.clusters:
        for mention in cluster.mentions:
            if mention not in tracked and mention not in clusters:
                found.setdefault(mention, cluster.name)
    return found
