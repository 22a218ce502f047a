"""Outputs of OpenPI2.0's code and API: released answers of language models, and files in the same formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fluents.data import file_catalogue, openpi2
from fluents.data.openpi import read_answers
from fluents.data.openpi2 import BAR
from fluents.errors import InputError
from fluents.jsonl import WrongShape, list_of, wrong_shape_is_input_error
from fluents.records import UNKNOWN_STEP, Alternatives, Procedure, Provenance, Reject, Salience, StateChange, Trace

NO_ATTRIBUTE = "this entity has no attribute"


def traces(document: Mapping[str, Any], provenance: Provenance, where: str) -> Iterator[Trace]:
    """What OpenPI2.0's code writes: for every procedure a list of steps, each schemata, states or sentences.

    The texts of the steps are not in these files.
    """
    for procedure_id, steps in document.items():
        with wrong_shape_is_input_error(
            f"procedure {procedure_id!r:.80} is not in the format of OpenPI2.0's code", where
        ):
            read = [_step(answers, step) for step, answers in enumerate(list_of(steps, "a procedure"), start=1)]
            trace = Trace(
                procedure=Procedure(id=procedure_id, steps=(UNKNOWN_STEP,) * len(steps)),
                changes=tuple(change for changes, _ in read for change in changes),
                rejects=tuple(reject for _, rejects in read for reject in rejects),
                provenance=provenance,
            )
        yield trace


def _step(answers: Any, step: int) -> tuple[list[StateChange], list[Reject]]:
    if isinstance(answers, dict):
        return _schemata(answers, step)
    if isinstance(answers, list) and answers and isinstance(answers[0], list):
        return [_state(fields, step) for fields in answers], []
    return read_answers(answers, step)


def _schemata(answers: Mapping[str, list[str]], step: int) -> tuple[list[StateChange], list[Reject]]:
    """{entity: [attributes]}. An entity without name or attributes is a reject: some metrics count it."""
    changes, rejects = [], []
    position = 0
    for entity, attributes in answers.items():
        for attribute in list_of(attributes, "the attributes of an entity") or [""]:
            if entity.strip() and attribute.strip():
                changes.append(StateChange(step=step, entity=entity, attribute=attribute, before="", after=""))
            else:
                rejects.append(
                    Reject(step=step, text=f"{entity}{BAR}{attribute}", reason=NO_ATTRIBUTE, position=position)
                )
            position += 1
    return changes, rejects


def _state(fields: Any, step: int) -> StateChange:
    if len(list_of(fields, "a state")) != 4:
        raise WrongShape("a state must be [entity, attribute, before, after]")
    entity, attribute, before, after = fields
    entities, attributes = tuple(entity.split(BAR)), tuple(attribute.split(BAR))
    return StateChange(
        step=step,
        entity=entities[0],
        attribute=attributes[0],
        before=before,
        after=after,
        alternatives=Alternatives(
            entity=entities if len(entities) > 1 else (), attribute=attributes if len(attributes) > 1 else ()
        ),
    )


def load(split: str) -> Iterator[Trace]:
    """The released outputs of one model, such as "davinci-schemata", with the steps of the gold file."""
    model, _, kind = split.rpartition("-")
    name = {"schemata": "schema_{}_1", "states": "states_{}", "sentences": "schema_{}_2"}[kind]
    path = f"v2.0/output/dev_{name.format('chatgpt' if model == 'gpt-3.5' else model)}.json"
    gold = {trace.id: trace.procedure for trace in openpi2.variant(f"{openpi2.V4}.json", "dev")}
    value, where = file_catalogue.document("openpi2", path)
    made = Provenance(tracker="replay", model={"davinci": "text-davinci-003", "gpt-3.5": "gpt-3.5-turbo"}[model])
    for trace in traces(value, made, where):
        if trace.id not in gold or len(trace.procedure.steps) != len(gold[trace.id].steps):
            what = f"procedure {trace.id!r} is not in the gold file, or has a different number of steps there"
            raise InputError(what, where=where)
        yield trace.replace(procedure=gold[trace.id])


def api_procedures(value: Any, where: str) -> Iterator[Procedure]:
    """The API's input: {"input": [{"id", "goal", "steps"}, …]}, or such a list, or one such object."""
    items = value["input"] if isinstance(value, dict) and "input" in value else value
    for item in items if isinstance(items, list) else [items]:
        with wrong_shape_is_input_error('expected a JSON object with "id", "goal" and "steps"', where):
            procedure = Procedure(id=str(item["id"]), goal=item["goal"], steps=tuple(list_of(item["steps"], "steps")))
        yield procedure


def api_traces(document: Mapping[str, Any], where: str) -> Iterator[Trace]:
    """The API's output: states and salience by procedure id; its goals are in the input, not here."""
    for procedure_id, value in document.items():
        with wrong_shape_is_input_error(f"procedure {procedure_id!r} is not in the format of the OpenPI2.0 API", where):
            trace = _api_trace(procedure_id, value)
        yield trace


def _api_trace(procedure_id: str, value: Mapping[str, Any]) -> Trace:
    steps = [value["states"][key] for key in sorted(value["states"], key=int)]
    changes = [
        StateChange(step=number, entity=entity, **state)
        for number, step in enumerate(steps, start=1)
        for entity, states in step["entities"].items()
        for state in states
    ]
    ratings: list[tuple[int | None, Any, str]] = [
        (None, rating, "global") for rating in value.get("global_salience", ())
    ]
    ratings += [
        (number, rating, "local")
        for number, step in enumerate(value.get("local_salience", ()), start=1)
        for rating in step
    ]
    return Trace(
        procedure=Procedure(id=procedure_id, steps=tuple(step["step"] for step in steps)),
        changes=tuple(changes),
        salience=tuple(
            Salience(
                entity=rating["entity"],
                rater="OpenPI2.0 API",
                step=number,
                value=rating[f"{scope}_salience_pred"],
                explanation=rating[f"{scope}_salience_explanation"],
            )
            for number, rating, scope in ratings
        ),
        provenance=Provenance(tracker="OpenPI2.0 API"),
    )
