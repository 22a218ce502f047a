"""What the gold's entities and attributes may be called, and which of them a predicted pair of names means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from fluents.records import AttributeCluster, EntityCluster, StateChange, Trace

Pair: TypeAlias = tuple[str, str]
"""An entity and one of its attributes, by name."""


def without_article(text: str) -> str:
    """Lower case, less one leading article: OpenPI2.0's own normalisation."""
    lowered = text.lower()
    for article in ("the ", "a ", "an "):
        if lowered.startswith(article):
            return lowered[len(article) :]
    return lowered


def normalised(text: str) -> str:
    """Likewise, with white space put in order first."""
    return without_article(" ".join(text.split()))


def names_of(cluster: EntityCluster | AttributeCluster, *, expanded: bool) -> tuple[str, ...]:
    """Every name of a cluster, each once; with its paraphrases if `expanded`."""
    return tuple(dict.fromkeys((cluster.name, *cluster.mentions, *(cluster.expansions if expanded else ()))))


def pair_names(trace: Trace, *, expanded: bool) -> dict[Pair, list[Pair]]:
    """Every way to name each pair of a trace's clusters, by its canonical names."""
    return {
        (cluster.name, attribute.name): [
            (e, a) for e in names_of(cluster, expanded=expanded) for a in names_of(attribute, expanded=expanded)
        ]
        for cluster in clusters_of(trace)
        for attribute in cluster.attributes
    }


def has_expansions(trace: Trace) -> bool:
    return any(c.expansions or any(a.expansions for a in c.attributes) for c in trace.clusters)


def clusters_of(trace: Trace) -> tuple[EntityCluster, ...]:
    """A trace's clusters, and clusters made of the wordings of those changes that have no place in one."""
    known = {cluster.name: cluster for cluster in trace.clusters}
    placed = {(cluster.name, attribute.name) for cluster in trace.clusters for attribute in cluster.attributes}
    homeless: dict[str, list[StateChange]] = {}
    for change in trace.changes:
        if (change.entity, change.attribute) not in placed:
            homeless.setdefault(change.entity, []).append(change)
    return (*trace.clusters, *(_made_of(entity, changes, known) for entity, changes in homeless.items()))


def _made_of(entity: str, changes: Sequence[StateChange], known: dict[str, EntityCluster]) -> EntityCluster:
    wordings: dict[str, list[str]] = {}
    for change in changes:
        wordings.setdefault(change.attribute, []).extend(change.alternatives.attribute)
    cluster = known.get(entity)
    return EntityCluster(
        name=entity,
        mentions=cluster.mentions if cluster else tuple(w for change in changes for w in change.alternatives.entity),
        expansions=cluster.expansions if cluster else (),
        attributes=tuple(AttributeCluster(name=name, mentions=tuple(words)) for name, words in wordings.items()),
    )


class GoldVocabulary:
    """From an entity's and an attribute's name to the canonical pairs they may mean.

    Names are looked up as they are given: whoever asks has put them into the form that the keys have here.
    """

    def __init__(
        self,
        clusters: Iterable[EntityCluster],
        *,
        expanded: bool,
        entity_key: Callable[[str], str],
        attribute_key: Callable[[str], str],
    ) -> None:
        self._attributes_of: dict[str, dict[str, list[Pair]]] = {}
        for cluster in clusters:
            for entity in {entity_key(name) for name in names_of(cluster, expanded=expanded)}:
                attributes = self._attributes_of.setdefault(entity, {})
                for attribute in cluster.attributes:
                    for name in {attribute_key(name) for name in names_of(attribute, expanded=expanded)}:
                        attributes.setdefault(name, []).append((cluster.name, attribute.name))

    def find(self, entity: str, attribute: str) -> Sequence[Pair]:
        """The canonical pairs, in the order of the clusters."""
        return self._attributes_of.get(entity, {}).get(attribute, ())
