"""OpenPI-C (Wu et al. 2023): the cleaned data, and its test set with gold clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from fluents.data import file_catalogue
from fluents.data.openpi import STEP_MARK, change_of, goal_of
from fluents.errors import InputError
from fluents.jsonl import WrongShape, list_of, wrong_shape_is_input_error
from fluents.records import Procedure, Provenance, Trace


class OpenPICLine(NamedTuple):
    """One line of the files: a step and its changes as [entity, attribute, before, after]."""

    where: str
    procedure_id: str
    step: int
    text: str
    answers: list[Any]


def line(where: str, value: dict[str, Any]) -> OpenPICLine:
    with wrong_shape_is_input_error('expected {"id": [address, step], "query": …, "answers": [[4 strings], …]}', where):
        procedure_id, step = list_of(value["id"], "id")
        if not isinstance(procedure_id, str):
            raise WrongShape("the first part of the id must be a string")
        return OpenPICLine(where, procedure_id, step, value["query"], list_of(value["answers"], "answers"))


def traces(lines: Iterable[OpenPICLine], dataset: str) -> Iterator[Trace]:
    """One trace for the lines of each procedure, whose steps must be numbered 1, 2, 3 …"""
    seen: set[str] = set()
    for procedure_id, run in groupby(lines, key=lambda line: line.procedure_id):
        steps = list(run)
        if procedure_id in seen:
            raise InputError(
                f"the steps of {procedure_id!r} are not on consecutive lines",
                where=steps[0].where,
                fix="put the steps of each procedure together, in the order of their numbers",
            )
        seen.add(procedure_id)
        for number, step in enumerate(steps, start=1):
            if step.step != number:
                what = f"expected step {number} of {procedure_id}, found step {step.step}"
                raise InputError(
                    what, where=step.where, fix="give all steps of a procedure, in the order of their numbers"
                )
        with wrong_shape_is_input_error("this step is not in the OpenPI-C format", steps[0].where):
            trace = _trace(procedure_id, steps, dataset)
        yield trace


def _trace(procedure_id: str, steps: list[OpenPICLine], dataset: str) -> Trace:
    return Trace(
        procedure=Procedure(
            id=procedure_id, goal=goal_of(procedure_id), steps=tuple(step.text for step in steps), source=procedure_id
        ),
        changes=tuple(change_of(answer, step.step) for step in steps for answer in step.answers),
        provenance=Provenance(dataset=dataset),
    )


def with_clusters(gold: Iterable[Trace], clustered: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[Trace]:
    """The traces with the clusters of the clustered file, matched by sentence."""
    numbers: dict[tuple[str, str], int] = {}
    for where, value in clustered:
        if len(value["answers"]) != len(value["answer_clusters"]):
            what = "`answers` and `answer_clusters` have different lengths"
            raise InputError(what, where=where, fix="give one cluster number for each answer")
        for sentence, cluster in zip(value["answers"], value["answer_clusters"], strict=True):
            numbers[value["id"], sentence] = cluster
    for trace in gold:
        yield trace.replace(
            changes=tuple(
                change.replace(cluster=numbers[f"{trace.id}{STEP_MARK}{change.step}", change.templated])
                for change in trace.changes
            )
        )


def load(split: str) -> Iterator[Trace]:
    """OpenPI-C: train, dev, or test with its gold clusters."""
    lines = (line(where, value) for where, value in file_catalogue.lines("openpi-c", f"data/{split}.jsonl"))
    gold = traces(lines, f"openpi-c:{split}")
    if split != "test":
        return gold
    return with_clusters(gold, file_catalogue.lines("openpi-c", "data/test.jsonl.clustered"))


# Writing


def lines_of(trace: Trace) -> Iterator[dict[str, Any]]:
    for step, text, changes in trace.by_step():
        yield {
            "id": [trace.id, step],
            "query": text,
            "answers": [[change.entity, change.attribute, change.before, change.after] for change in changes],
        }


def clustered_lines_of(trace: Trace) -> Iterator[dict[str, Any]]:
    """The lines of the clustered file: sorted unique sentences; changes without a cluster are left out."""
    for step, _, changes in trace.by_step():
        clusters = {change.templated: change.cluster for change in changes if change.cluster is not None}
        yield {
            "id": f"{trace.id}{STEP_MARK}{step}",
            "answers": sorted(clusters),
            "answer_clusters": [clusters[sentence] for sentence in sorted(clusters)],
        }
