"""A trace with its names clustered, whichever method groups them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from fluents.canonicalisation.name_facts import Field, NameGroup, best_first, names_in, wordings_of
from fluents.errors import InputError
from fluents.records import AttributeCluster, EntityCluster, Reject, StateChange, Trace
from fluents.scoring import Level

MOST_NAMES = 5000
"""Far more than any text has; every two of them are compared, in memory."""

REASON = "clustering: "
"""What the reason of a reject begins with where an answer about names could not be read."""

Groups: TypeAlias = "list[list[int]]"
"""Groups of names, by their places in a list; every place in exactly one."""


@dataclass(frozen=True)
class NameList:
    """Names to be grouped: a procedure's entities, or the attributes of one entity."""

    level: Level
    names: Sequence[NameGroup]
    entity: str = ""
    """Whose attributes they are."""


class Grouped(NamedTuple):
    groups: list[Groups]
    """For each list of names, in its order."""
    rejects: tuple[Reject, ...] = ()


class Method(Protocol):
    """A way to tell which names mean one thing."""

    @property
    def name(self) -> str:
        """As a trace's provenance records it."""
        ...

    def group(self, trace: Trace, lists: Sequence[NameList]) -> Grouped: ...


def cluster_names(trace: Trace, method: Method) -> Trace:
    """The trace with clusters of its entities and of their attributes, made anew from its changes.

    The words of the changes stay as they are. The same changes in another order give the same clusters.
    """
    names = _few(names_in(trace.changes, "entity"), trace)
    [groups], rejects = method.group(trace, [NameList("entities", names)])
    members = [[name for place in group for name in names[place].names] for group in groups]
    owned = _changes_of(trace, members)
    lists = [
        NameList("attributes", _few(names_in(changes, "attribute"), trace), _ordered(changes, group, "entity")[0])
        for changes, group in zip(owned, members, strict=True)
    ]
    attribute_groups, more_rejects = method.group(trace, lists)
    clusters = [
        EntityCluster(
            name=one.entity,
            mentions=tuple(_ordered(changes, group, "entity")),
            attributes=tuple(_attribute_clusters(one.names, places, changes)),
        )
        for one, group, places, changes in zip(lists, members, attribute_groups, owned, strict=True)
    ]
    first = {
        cluster.name: min(change.step for change in changes) for cluster, changes in zip(clusters, owned, strict=True)
    }
    kept = tuple(reject for reject in trace.rejects if not reject.reason.startswith(REASON))
    return trace.replace(
        clusters=tuple(sorted(clusters, key=lambda cluster: (first[cluster.name], cluster.name))),
        rejects=(*kept, *rejects, *more_rejects),
        provenance=trace.provenance.replace(decoding={**trace.provenance.decoding, "clusters": method.name}),
    )


def parse_failures(trace: Trace) -> list[str]:
    """Why answers about names could not be read; the answers are among the rejects."""
    return [reject.reason for reject in trace.rejects if reject.reason.startswith(REASON)]


def _few(names: list[NameGroup], trace: Trace) -> list[NameGroup]:
    if len(names) > MOST_NAMES:
        raise InputError(
            f"this procedure contains {len(names)} different names, but at most {MOST_NAMES} can be clustered",
            where=trace.id,
            fix="split the procedure into shorter ones",
        )
    return names


def _changes_of(trace: Trace, members: Sequence[Sequence[str]]) -> list[list[StateChange]]:
    """The changes of each group of entities; all wordings of a change are in one group."""
    home = {name: place for place, names in enumerate(members) for name in names}
    found: list[list[StateChange]] = [[] for _ in members]
    for change in trace.changes:
        found[home[change.entity]].append(change)
    return found


def _ordered(changes: Sequence[StateChange], names: Sequence[str], field: Field) -> list[str]:
    return best_first(names, Counter(wording for change in changes for wording in wordings_of(change, field)))


def _attribute_clusters(
    names: Sequence[NameGroup], groups: Groups, changes: Sequence[StateChange]
) -> list[AttributeCluster]:
    found = []
    for group in groups:
        ordered = _ordered(changes, [name for place in group for name in names[place].names], "attribute")
        found.append(AttributeCluster(name=ordered[0], mentions=tuple(ordered)))
    return sorted(found, key=lambda cluster: cluster.name)
