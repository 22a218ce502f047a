"""OpenPI2.0 (Zhang et al. 2024): one JSON document of procedures, read in several published variants, and written.

A variant adds to the plain one: expansions to the clusters, votes and scores to the states, salience by a rater.
`traces` reads them all; `merged` lays the variants of the development set over each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fluents.data import file_catalogue
from fluents.errors import InputError
from fluents.jsonl import list_of, wrong_shape_is_input_error
from fluents.records import (
    Alternatives,
    AttributeCluster,
    EntityCluster,
    Procedure,
    Provenance,
    Reject,
    Salience,
    StateChange,
    Trace,
    TrackedEntity,
)

BAR = " | "
"""Separates alternative wordings."""


def traces(document: Mapping[str, Any], dataset: str, where: str, rater: str | None = None) -> Iterator[Trace]:
    """One trace for each procedure. `rater` names whose salience the file holds, if it holds any."""
    texts_only = _has_text_ratings(document)
    for procedure_id, value in document.items():
        with wrong_shape_is_input_error(f"procedure {procedure_id!r:.80} is not in the OpenPI2.0 format", where):
            trace = _trace(procedure_id, value, dataset, rater, texts_only)
        yield trace


def merged(base: Iterable[Trace], scored: Iterable[Trace], *rated: Iterable[Trace]) -> Iterator[Trace]:
    """Each procedure with the clusters of `base`, the votes and scores of `scored`, and the salience of all."""
    for first, second, *others in zip(base, scored, *rated, strict=True):
        ids = {trace.id for trace in (first, second, *others)}
        if ids != {first.id}:
            raise InputError(f"the OpenPI2.0 files have different procedures at the same position: {sorted(ids)}")
        if len(first.changes) != len(second.changes):
            raise InputError(f"the OpenPI2.0 files have different numbers of changes for the procedure {first.id!r}")
        yield first.replace(
            changes=second.changes,
            entities=second.entities,
            salience=tuple(rating for trace in (second, *others) for rating in trace.salience),
        )


def procedure_of(procedure_id: str, value: Mapping[str, Any]) -> Procedure:
    return Procedure(
        id=procedure_id,
        goal=value["goal"],
        steps=tuple(list_of(value["steps"], "steps")),
        topic=value.get("topics"),
        images=tuple(value.get("image_urls", ())),
    )


def _trace(procedure_id: str, value: Mapping[str, Any], dataset: str, rater: str | None, texts_only: bool) -> Trace:
    changes: list[StateChange] = []
    entities: list[TrackedEntity] = []
    salience: list[Salience] = []
    rejects: list[Reject] = []
    for item in value["states"]:
        if not item["entity"].strip():  # one entity of ranked-test has no name
            rejects.append(Reject(text=json.dumps(item), reason="no entity"))
            continue
        wordings = tuple(item["entity"].split(BAR))
        step_votes, step_scores = [], []
        if rater:
            salience += _rating(item, "global", wordings[0], rater, None, texts_only)
        for key, cell in item["answers"].items():
            step = int(key.removeprefix("step"))
            cell = cell if isinstance(cell, dict) else {"states": cell}
            step_votes += [cell["votes"]] if "votes" in cell else []
            step_scores += [cell["score"]] if "score" in cell else []
            changes += [
                _change(state, step, wordings) for state in cell["states" if "states" in cell else "attributes"]
            ]
            if rater:
                salience += _rating(cell, "local", wordings[0], rater, step, texts_only)
        annotated = item.get("entity_annotation")
        entities.append(
            TrackedEntity(
                name=wordings[0],
                wordings=(wordings,) if annotated is None else tuple(tuple(a.split(BAR)) for a in annotated),
                votes=item.get("votes"),
                score=item.get("score"),
                step_votes=tuple(step_votes),
                step_scores=tuple(step_scores),
            )
        )
    clusters = value.get("clusters", {})
    if rater:
        salience += _cluster_ratings(clusters, f"{rater}, clusters")
    return Trace(
        procedure=procedure_of(procedure_id, value),
        changes=tuple(changes),
        rejects=tuple(rejects),
        entities=tuple(entities),
        clusters=tuple(_cluster(name, cluster) for name, cluster in clusters.items()),
        salience=tuple(salience),
        provenance=Provenance(dataset=dataset),
    )


def _change(state: Mapping[str, Any], step: int, entity: tuple[str, ...]) -> StateChange:
    votes = state.get("votes")
    state = state.get("states", state)
    attribute = tuple(state["attribute"].split(BAR))
    annotated = tuple(state["attribute_annotation"].split(BAR)) if "attribute_annotation" in state else attribute
    before, after = tuple(state["before"].split(BAR)), tuple(state["after"].split(BAR))
    return StateChange(
        step=step,
        entity=entity[0],
        attribute=attribute[0],
        before=before[0],
        after=after[0],
        alternatives=Alternatives(
            entity=_unless_plain(entity, entity[0]),
            attribute=_unless_plain(annotated, attribute[0]),
            before=_unless_plain(before, before[0]),
            after=_unless_plain(after, after[0]),
        ),
        votes=votes,
        saliency=state.get("saliency"),
    )


def _unless_plain(wordings: tuple[str, ...], word: str) -> tuple[str, ...]:
    return () if wordings == (word,) else wordings


def _rating(
    cell: Mapping[str, Any], scope: str, entity: str, rater: str, step: int | None, texts_only: bool
) -> Iterator[Salience]:
    """The salience a cell holds, if any: a model's rating or a person's."""
    predicted, rated = f"{scope}_salience_pred", f"{scope}_salience"
    if predicted in cell:
        given = cell[predicted]
        value = None if texts_only and not isinstance(given, str) else _number(given)
        explanation = cell.get(f"{scope}_salience_explanation")
        yield Salience(entity=entity, rater=rater, step=step, value=value, explanation=explanation)
    elif rated in cell:
        yield Salience(entity=entity, rater=rater, step=step, value=_number(cell[rated]))


def _number(given: Any) -> Any:
    """A rating as a number, None for a text that is none."""
    if not isinstance(given, str):
        return given
    try:
        return float(given) if "." in given else int(given)
    except ValueError:
        return None


def _has_text_ratings(document: Mapping[str, Any]) -> bool:
    """Whether a model's ratings are texts, as in the published files. Then a number is the 1 that the publishers put
    where they could not read the model's answer."""
    return any(
        isinstance(item, dict) and isinstance(item.get("global_salience_pred"), str)
        for value in document.values()
        if isinstance(value, dict) and isinstance(value.get("states"), list)
        for item in value["states"]
    )


def _cluster_ratings(clusters: Mapping[str, Any], rater: str) -> Iterator[Salience]:
    for name, cluster in clusters.items():
        if "global_salience" in cluster:
            yield Salience(entity=name, rater=rater, value=cluster["global_salience"])
            for step, value in enumerate(cluster["local_salience"], start=1):
                yield Salience(entity=name, rater=rater, step=step, value=value)


def _cluster(name: str, cluster: Mapping[str, Any]) -> EntityCluster:
    attributes = []
    for attribute, names in cluster["attribute_cluster"].items():
        plain = isinstance(names, list)
        attributes.append(
            AttributeCluster(
                name=attribute,
                mentions=tuple(names if plain else names["attribute_cluster"]),
                expansions=() if plain else tuple(names["attribute_overgenerate"]),
            )
        )
    return EntityCluster(
        name=name,
        mentions=tuple(list_of(cluster["entity_cluster"], "entity_cluster")),
        expansions=tuple(cluster.get("entity_overgenerate", ())),
        attributes=tuple(attributes),
    )


V4 = "v2.0/data/dev-data-reformatted-v4"
MODELS_WITH_SALIENCE = ("gpt-4", "gpt-3.5-turbo", "llama2-13", "llama2-70")


def load(split: str) -> Iterator[Trace]:
    """OpenPI2.0: dev with everything known about it, a draft of its salience, or the ranked dev and test sets."""
    if split == "dev":
        return _dev()
    if split == "dev-draft":
        return variant(f"{V4}_salience.json", split, rater="A1 draft")
    return variant(f"v2.0/data/{split.removeprefix('ranked-')}-ranked.json", split)


def variant(path: str, split: str, rater: str | None = None) -> Iterator[Trace]:
    """One published variant of the document."""
    value, where = file_catalogue.document("openpi2", path)
    return traces(value, f"openpi2:{split}", where, rater)


def _dev() -> Iterator[Trace]:
    second = (
        # The second annotator's file puts 0 where nothing was labelled, past procedure 20.
        trace if int(trace.id) <= 20 else trace.replace(salience=())
        for trace in variant(f"{V4}_votes_salience_1-20_human2.json", "dev", rater="A2")
    )
    return merged(
        variant(f"{V4}-overgenerated-unique.json", "dev"),
        variant(f"{V4}_votes_score_salience_1-20.json", "dev", rater="A1"),
        second,
        *(variant(f"{V4}_pred-salience-{model}.json", "dev", rater=model) for model in MODELS_WITH_SALIENCE),
    )


# Writing


def document(traces: Iterable[Trace], rater: str | None = None) -> dict[str, Any]:
    """The document. It holds the salience of one rater: `rater`, or the first there is."""
    return {trace.id: _procedure_value(trace, rater) for trace in traces}


def _procedure_value(trace: Trace, rater: str | None) -> dict[str, Any]:
    procedure = trace.procedure
    if trace.clusters and not trace.entities:
        trace = _with_canonical_names(trace)
    rater = rater or (trace.salience[0].rater if trace.salience else None)
    ratings = {(r.entity, r.step): r for r in trace.salience if r.rater == rater}
    value: dict[str, Any] = {"goal": procedure.goal, "steps": list(procedure.steps)}
    if procedure.topic is not None:
        value["topics"] = procedure.topic
    if procedure.images:
        value["image_urls"] = list(procedure.images)
    value["states"] = [_state_value(trace, entity, ratings) for entity in _entities_of(trace)]
    if trace.clusters:
        expanded = any(c.expansions or any(a.expansions for a in c.attributes) for c in trace.clusters)
        value["clusters"] = {cluster.name: _cluster_value(cluster, expanded) for cluster in trace.clusters}
    return value


def _with_canonical_names(trace: Trace) -> Trace:
    """The trace as the files have it: changes and ratings under the names of clusters, the words that people wrote
    beside them. Votes are written if every change has some."""
    named: dict[str, EntityCluster] = {}
    for cluster in trace.clusters:
        for mention in (cluster.name, *cluster.mentions):
            named.setdefault(mention, cluster)
    changes = tuple(_canonical_change(change, named.get(change.entity)) for change in trace.changes)
    voted = bool(changes) and all(change.votes is not None for change in changes)
    entities = []
    for name in dict.fromkeys(change.entity for change in changes):
        votes = [0] * len(trace.procedure.steps)
        for change in changes:
            if change.entity == name:
                votes[change.step - 1] += change.votes or 0
        mentions = named[name].mentions if name in named else (name,)
        wordings = tuple((mention,) for mention in mentions)
        given = {"votes": sum(votes), "step_votes": tuple(votes)} if voted else {}
        entities.append(TrackedEntity(name=name, wordings=wordings, **given))
    salience = tuple(
        rating.replace(entity=named[rating.entity].name) if rating.entity in named else rating
        for rating in trace.salience
    )
    return trace.replace(changes=changes, entities=tuple(entities), salience=salience)


def _canonical_change(change: StateChange, cluster: EntityCluster | None) -> StateChange:
    if cluster is None:
        return change
    wordings = change.alternatives.attribute or (change.attribute,)
    of_name = (one.name for one in cluster.attributes if change.attribute in (one.name, *one.mentions))
    attribute = next(of_name, change.attribute)
    return change.replace(
        entity=cluster.name,
        attribute=attribute,
        alternatives=change.alternatives.replace(entity=(), attribute=_unless_plain(wordings, attribute)),
    )


def _entities_of(trace: Trace) -> tuple[TrackedEntity, ...]:
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
