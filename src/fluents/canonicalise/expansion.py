"""Other names nobody wrote for a trace's clusters: they make an evaluation fairer to whoever words things anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fluents.canonicalise.named import Fact, fact_of, squashed
from fluents.canonicalise.scorer import Level
from fluents.canonicalise.words import parts_of
from fluents.errors import InputError
from fluents.records import AttributeCluster, EntityCluster, Reject, StateChange, Trace

MOST = 5
"""New names for a cluster, unless somebody says otherwise."""

REASON = "expansion: "
"""What the reason of a reject begins with where an answer about other names could not be read."""


@dataclass(frozen=True)
class Known:
    """The names of one cluster."""

    level: Level
    names: tuple[str, ...]
    facts: frozenset[Fact]
    """What the trace says under them."""
    entity: str = ""
    """Whose attribute it is."""


class Suggested(NamedTuple):
    names: list[list[str]]
    """For each cluster, the best first."""
    rejects: tuple[Reject, ...] = ()


class Thesaurus(Protocol):
    """Whoever knows other names."""

    @property
    def name(self) -> str:
        """As a trace's provenance records it."""
        ...

    def suggest(self, trace: Trace, clusters: Sequence[Known], most: int) -> Suggested: ...


def expand(trace: Trace, thesaurus: Thesaurus, most: int = MOST) -> Trace:
    """The trace with up to `most` new names beside those of each cluster and of each of its attributes.

    Names that were there stay. One that some cluster of the kind already goes by is no expansion of another.
    """
    if trace.changes and not trace.clusters:
        raise InputError("there are no clusters to expand", where=trace.id, fix="run `fluents canonicalise` first")
    asked = [known for cluster in trace.clusters for known in _known(cluster, trace.changes)]
    names, rejects = thesaurus.suggest(trace, asked, most)
    suggestions = iter(names)
    clusters = []
    taken = _plain(name for cluster in trace.clusters for name in (cluster.name, *cluster.mentions))
    for cluster in trace.clusters:
        expansions = _added(cluster.expansions, next(suggestions), taken, most)
        of_attributes = _plain(name for one in cluster.attributes for name in (one.name, *one.mentions))
        attributes = tuple(
            one.replace(expansions=_added(one.expansions, next(suggestions), of_attributes, most))
            for one in cluster.attributes
        )
        clusters.append(cluster.replace(expansions=expansions, attributes=attributes))
    kept = tuple(reject for reject in trace.rejects if not reject.reason.startswith(REASON))
    return trace.replace(
        clusters=tuple(clusters),
        rejects=(*kept, *rejects),
        provenance=trace.provenance.replace(decoding={**trace.provenance.decoding, "expansions": thesaurus.name}),
    )


def _known(cluster: EntityCluster, changes: Sequence[StateChange]) -> Iterable[Known]:
    names = {cluster.name, *cluster.mentions}
    mine = [change for change in changes if change.entity in names]
    yield Known("entities", _names(cluster), _facts(mine))
    for one in cluster.attributes:
        called = {one.name, *one.mentions}
        facts = _facts(change for change in mine if change.attribute in called)
        yield Known("attributes", _names(one), facts, cluster.name)


def _names(cluster: EntityCluster | AttributeCluster) -> tuple[str, ...]:
    return tuple(dict.fromkeys((cluster.name, *cluster.mentions)))


def _facts(changes: Iterable[StateChange]) -> frozenset[Fact]:
    return frozenset(fact_of(change) for change in changes)


def _added(old: tuple[str, ...], new: Sequence[str], taken: set[str], most: int) -> tuple[str, ...]:
    found = list(old)
    seen = taken | _plain(old)
    for name in new[:most]:
        if name.strip() and plain_name(name) not in seen:
            seen.add(plain_name(name))
            found.append(" ".join(name.split()))
    return tuple(found)


def _plain(names: Iterable[str]) -> set[str]:
    return {plain_name(name) for name in names}


def plain_name(name: str) -> str:
    """As names are told apart: without case, articles and plurals."""
    return " ".join(parts_of(name).words) or squashed(name)
