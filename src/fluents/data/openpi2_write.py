"""Writing traces as the document of OpenPI2.0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fluents.data.openpi2 import BAR
from fluents.records import EntityCluster, Salience, StateChange, Trace, TrackedEntity


def document(traces: Iterable[Trace], rater: str | None = None) -> dict[str, Any]:
    """The document. It holds the salience of one rater: `rater`, or the first there is."""
    return {trace.id: _procedure_value(trace, rater) for trace in traces}


def _procedure_value(trace: Trace, rater: str | None) -> dict[str, Any]:
    procedure = trace.procedure
    rater = rater or (trace.salience[0].rater if trace.salience else None)
    ratings = {(r.entity, r.step): r for r in trace.salience if r.rater == rater}
    value: dict[str, Any] = {"goal": procedure.goal, "steps": list(procedure.steps)}
    if procedure.topic is not None:
        value["topics"] = procedure.topic
    if procedure.images:
        value["image_urls"] = list(procedure.images)
    value["states"] = [_state_value(trace, entity, ratings) for entity in _entities(trace)]
    if trace.clusters:
        expanded = any(c.expansions or any(a.expansions for a in c.attributes) for c in trace.clusters)
        value["clusters"] = {cluster.name: _cluster_value(cluster, expanded) for cluster in trace.clusters}
    return value


def _entities(trace: Trace) -> tuple[TrackedEntity, ...]:
    """The entities of the trace, or else of its changes, in order."""
    if trace.entities:
        return trace.entities
    names = dict.fromkeys((c.entity, c.alternatives.entity or (c.entity,)) for c in trace.changes)
    return tuple(TrackedEntity(name=name, wordings=(wordings,)) for name, wordings in names)


def _state_value(
    trace: Trace, entity: TrackedEntity, ratings: Mapping[tuple[str, int | None], Salience]
) -> dict[str, Any]:
    mine = [c for c in trace.changes if c.entity == entity.name and _is_of(c, entity)]
    ranked = entity.wordings == (mine[0].alternatives.entity or (entity.name,),) if mine else False
    plain = not trace.clusters and ranked
    item: dict[str, Any] = {"entity": BAR.join(entity.wordings[0]) if plain else entity.name}
    item["answers"] = {
        f"step{step}": _cell(entity, step, [c for c in mine if c.step == step], plain, ratings.get((entity.name, step)))
        for step in range(1, len(trace.procedure.steps) + 1)
    }
    if not plain:
        item["entity_annotation"] = [BAR.join(wordings) for wordings in entity.wordings]
    if entity.votes is not None:
        item["votes"] = entity.votes
    item |= _rating_value("global", ratings.get((entity.name, None)))
    if entity.score is not None:
        item["score"] = entity.score
    return item


def _is_of(change: StateChange, entity: TrackedEntity) -> bool:
    """Whether a change belongs to an entity: by all its wordings, if the change has several."""
    return not change.alternatives.entity or change.alternatives.entity in entity.wordings


def _cell(
    entity: TrackedEntity, step: int, changes: list[StateChange], plain: bool, rating: Salience | None
) -> list[Any] | dict[str, Any]:
    states = [_change_value(change, plain) for change in changes]
    if entity.step_votes:
        voted = [{"votes": c.votes, "states": state} for c, state in zip(changes, states, strict=True)]
        cell: dict[str, Any] = {"votes": entity.step_votes[step - 1], "states": voted}
        cell |= _rating_value("local", rating)
        if entity.step_scores:
            cell["score"] = entity.step_scores[step - 1]
        return cell
    if rating is not None:
        return {"attributes": states} | _rating_value("local", rating)
    return states


def _change_value(change: StateChange, plain: bool) -> dict[str, Any]:
    other = change.alternatives
    attribute = BAR.join(other.attribute or (change.attribute,))
    state: dict[str, Any] = {
        "attribute": attribute if plain else change.attribute,
        "before": BAR.join(other.before or (change.before,)),
        "after": BAR.join(other.after or (change.after,)),
    }
    if change.saliency is not None:
        state["saliency"] = change.saliency
    if not plain:
        state["attribute_annotation"] = attribute
    return state


def _rating_value(scope: str, rating: Salience | None) -> dict[str, Any]:
    if rating is None:
        return {}
    if rating.explanation is None:
        return {f"{scope}_salience": rating.value}
    given = 1 if rating.value is None else str(rating.value)
    return {f"{scope}_salience_pred": given, f"{scope}_salience_explanation": rating.explanation}


def _cluster_value(cluster: EntityCluster, expanded: bool) -> dict[str, Any]:
    value: dict[str, Any] = {"entity_cluster": list(cluster.mentions)}
    if not expanded:
        value["attribute_cluster"] = {a.name: list(a.mentions) for a in cluster.attributes}
        return value
    value["attribute_cluster"] = {
        a.name: {
            "attribute_cluster": list(a.mentions),
            "attribute_overgenerate": list(a.expansions),
            "attribute_cluster_combined": list(dict.fromkeys(a.mentions + a.expansions)),
        }
        for a in cluster.attributes
    }
    value["entity_overgenerate"] = list(cluster.expansions)
    value["entity_cluster_combined"] = list(dict.fromkeys(cluster.mentions + cluster.expansions))
    return value
