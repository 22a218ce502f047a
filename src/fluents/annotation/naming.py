"""Stages about names (OpenPI2.0): clusters of entities and of attributes, their expansions, and salience."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fluents.annotation.design import StageDesign
from fluents.annotation.items import FormAnswer, ItemAnswers, procedure_payload
from fluents.annotation.outcomes import AskedItem, Removal, StageSources, TraceOutcome
from fluents.records import AttributeCluster, EntityCluster, Salience, StateChange, Trace

if TYPE_CHECKING:
    from fluents.canonicalisation import Thesaurus

Field: TypeAlias = Literal["entity", "attribute"]
AnyCluster: TypeAlias = EntityCluster | AttributeCluster


# Clusters


def ask_entities(stage: StageDesign, trace: Trace, _: StageSources) -> Iterator[AskedItem]:  # noqa: ARG001
    names = _names(trace.changes, "entity")
    if len(names) > 1:
        suggestion = suggested_groups(trace.changes, "entity", trace)
        payload = {"procedure": procedure_payload(trace), "names": names, "suggestion": suggestion}
        yield AskedItem(payload, key=([entry["name"] for entry in names],))


def ask_attributes(stage: StageDesign, trace: Trace, _: StageSources) -> Iterator[AskedItem]:  # noqa: ARG001
    for cluster in _clusters(trace):
        changes = _changes_of(trace, cluster)
        names = _names(changes, "attribute")
        if len(names) > 1:
            suggestion = suggested_groups(changes, "attribute", trace)
            payload = {
                "procedure": procedure_payload(trace),
                "entity": cluster.name,
                "names": names,
                "suggestion": suggestion,
            }
            yield AskedItem(payload, key=(cluster.name, [entry["name"] for entry in names]))


def _names(changes: Sequence[StateChange], field: Field) -> list[dict[str, Any]]:
    """Every name, with the steps in which it stands, in the order in which the trace has them."""
    steps: dict[str, list[int]] = {}
    for change in changes:
        of_name = steps.setdefault(getattr(change, field), [])
        if change.step not in of_name:
            of_name.append(change.step)
    return [{"name": name, "steps": sorted(found)} for name, found in steps.items()]


def suggested_groups(changes: Sequence[StateChange], field: Field, trace: Trace) -> list[list[str]]:
    """The names as the offline method groups them, the one to call each group by first."""
    from fluents.canonicalisation.clusters import NameList
    from fluents.canonicalisation.feature_method import FeatureMethod
    from fluents.canonicalisation.name_facts import names_in

    plain = [StateChange(**_words(change)) for change in changes]  # other wordings are not asked about
    groups = names_in(plain, field)
    level: Literal["entities", "attributes"] = "entities" if field == "entity" else "attributes"
    [found] = FeatureMethod().group(trace, [NameList(level, groups)]).groups
    order = {entry["name"]: place for place, entry in enumerate(_names(plain, field))}
    named = [[name for place in places for name in groups[place].names] for places in found]
    return sorted(named, key=lambda names: min(order[name] for name in names))


def _words(change: StateChange) -> dict[str, Any]:
    return {name: getattr(change, name) for name in ("step", "entity", "attribute", "before", "after")}


def decide_entities(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """The trace with clusters of its entities; each attribute is a cluster of its own until people join them."""
    groups = [[entry["name"]] for entry in _names(trace.changes, "entity")]
    for one in answers:
        groups = most_agreed([answer["clusters"] for answer in one.answers]) or groups
    clusters = [EntityCluster(name=names[0], mentions=tuple(names)) for names in groups]
    found = [cluster.replace(attributes=_single_attributes(trace, cluster)) for cluster in clusters]
    return TraceOutcome(trace.replace(clusters=tuple(found)))


def _single_attributes(trace: Trace, cluster: EntityCluster) -> tuple[AttributeCluster, ...]:
    names = dict.fromkeys(change.attribute for change in _changes_of(trace, cluster))
    return tuple(AttributeCluster(name=name, mentions=(name,)) for name in names)


def decide_attributes(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    by_entity = {one.item.payload["entity"]: one for one in answers}
    clusters = []
    for cluster in _clusters(trace):
        one = by_entity.get(cluster.name)
        groups = most_agreed([answer["clusters"] for answer in one.answers]) if one else None
        attributes = (
            _single_attributes(trace, cluster)
            if groups is None
            else tuple(AttributeCluster(name=names[0], mentions=tuple(names)) for names in groups)
        )
        clusters.append(cluster.replace(attributes=attributes))
    return TraceOutcome(trace.replace(clusters=tuple(clusters)))


def _clusters(trace: Trace) -> Sequence[EntityCluster]:
    """The clusters of the trace, and one for each entity that is in none."""
    known = {name for cluster in trace.clusters for name in (cluster.name, *cluster.mentions)}
    alone = dict.fromkeys(change.entity for change in trace.changes if change.entity not in known)
    return (*trace.clusters, *(EntityCluster(name=name, mentions=(name,)) for name in alone))


def _changes_of(trace: Trace, cluster: EntityCluster) -> list[StateChange]:
    names = {cluster.name, *cluster.mentions}
    return [change for change in trace.changes if change.entity in names]


def most_agreed(clusterings: Sequence[Sequence[Sequence[str]]]) -> list[list[str]] | None:
    """Of several clusterings of the same names the one that is most like the others (B-cubed); None of none.

    Joining majorities pair by pair could give clusters that nobody made.
    """
    if not clusterings:
        return None
    if len(clusterings) == 1:
        return [list(names) for names in clusterings[0]]
    from fluents.scoring.greedy_clusters import b_cubed

    def likeness(one: Sequence[Sequence[str]]) -> float:
        return sum(b_cubed(one, other)[0] + b_cubed(other, one)[0] for other in clusterings if other is not one)

    return [list(names) for names in max(clusterings, key=likeness)]


# Expansions


def ask_expansions(stage: StageDesign, trace: Trace, sources: StageSources) -> Iterator[AskedItem]:  # noqa: ARG001
    """An item for each cluster that has expansions: its own, those of the draft, or else those of a vocabulary."""
    for cluster in _expanded(trace, sources.drafts.get(trace.id)).clusters:
        if cluster.expansions:
            yield _expansion_item(trace, "entities", cluster, cluster.name)
        for attribute in cluster.attributes:
            if attribute.expansions:
                yield _expansion_item(trace, "attributes", attribute, cluster.name)


def _expanded(trace: Trace, draft: Trace | None) -> Trace:
    if any(one.expansions or any(attribute.expansions for attribute in one.attributes) for one in trace.clusters):
        return trace
    if draft is None or not draft.clusters:
        from fluents.canonicalisation import expand

        if not trace.clusters:
            return trace
        with _loading:
            vocabulary = _vocabulary()
        return expand(trace, vocabulary)
    clusters = []
    for cluster in trace.clusters:
        theirs = [one for one in draft.clusters if _share_a_name(one, cluster)]
        attributes = tuple(
            attribute.replace(expansions=_expansions(attribute, [one for their in theirs for one in their.attributes]))
            for attribute in cluster.attributes
        )
        clusters.append(cluster.replace(expansions=_expansions(cluster, theirs), attributes=attributes))
    return trace.replace(clusters=tuple(clusters))


def _expansions(cluster: AnyCluster, theirs: Sequence[AnyCluster]) -> tuple[str, ...]:
    found = dict.fromkeys(name for one in theirs if _share_a_name(one, cluster) for name in one.expansions)
    return tuple(name for name in found if name not in (cluster.name, *cluster.mentions))


def _share_a_name(one: AnyCluster, other: AnyCluster) -> bool:
    return not {one.name, *one.mentions}.isdisjoint((other.name, *other.mentions))


_loading = threading.Lock()  # else each of many threads at once would load a vocabulary of its own


@cache
def _vocabulary() -> Thesaurus:
    """The names of our own corpus. It takes seconds to load."""
    from fluents.canonicalisation.expansion import VocabularyThesaurus
    from fluents.data.file_formats import read_traces

    return VocabularyThesaurus(read_traces("fluents:train"), "fluents:train")


def _expansion_item(trace: Trace, level: str, cluster: AnyCluster, entity: str) -> AskedItem:
    names = list(dict.fromkeys((cluster.name, *cluster.mentions)))
    payload = {
        "procedure": procedure_payload(trace),
        "cluster": names,
        "level": level,
        "entity": entity,
        "expansions": list(dict.fromkeys(cluster.expansions)),
    }
    return AskedItem(payload, key=(level, entity, names))


def decide_expansions(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """Expansions stay where most judges accept them."""
    accepted: dict[tuple[str, str, str], tuple[str, ...]] = {}
    removed = []
    for one in answers:
        shown = one.item.payload
        votes = [name for answer in one.answers for name in answer["accepted"]]
        kept = tuple(name for name in shown["expansions"] if votes.count(name) >= one.majority)
        accepted[shown["level"], shown["entity"], shown["cluster"][0]] = kept
        removed += [
            Removal("expansion", trace.id, "not accepted", None, name)
            for name in shown["expansions"]
            if name not in kept
        ]
    clusters = tuple(
        cluster.replace(
            expansions=accepted.get(("entities", cluster.name, cluster.name), ()),
            attributes=tuple(
                attribute.replace(expansions=accepted.get(("attributes", cluster.name, attribute.name), ()))
                for attribute in cluster.attributes
            ),
        )
        for cluster in trace.clusters
    )
    return TraceOutcome(trace.replace(clusters=clusters), removed)


# Salience


def ask_salience(stage: StageDesign, trace: Trace, _: StageSources) -> Iterator[AskedItem]:
    from fluents.salience.entities import rated_entities

    names = [entity.name for entity in rated_entities(trace)]
    if not names:
        return
    shown = {"procedure": procedure_payload(trace), "entities": names}
    if stage.scope in ("both", "global"):
        yield AskedItem({**shown, "scope": "global"}, key=("global", names))
    if stage.scope in ("both", "local"):
        for step in range(1, len(trace.procedure.steps) + 1):
            yield AskedItem({**shown, "scope": "local", "step": step}, key=("local", step, names))


RULING = "adjudicated"
"""The rater of scores that an adjudicator gave."""


def decide_salience(stage: StageDesign, trace: Trace, answers: Sequence[ItemAnswers]) -> TraceOutcome:  # noqa: ARG001
    """The trace with everybody's ratings. An adjudicator's come first, because some formats have room for one rater."""
    ratings: list[Salience] = []
    for one in answers:
        by_rater: Mapping[str, FormAnswer] = {RULING: one.ruling, **one.by_author} if one.ruling else one.by_author
        step = one.item.payload.get("step")
        for rater, answer in by_rater.items():
            ratings += [
                Salience(entity=name, rater=rater, step=step, value=score) for name, score in answer["scores"].items()
            ]
    ratings.sort(key=lambda rating: (rating.rater != RULING, rating.rater))
    return TraceOutcome(trace.replace(salience=(*trace.salience, *ratings)))
