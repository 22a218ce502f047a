"""Writing traces as the files of OpenPI: four in v1.0, one in v1.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fluents.data.openpi import STEP_MARK, question_for
from fluents.records import Trace


def answers_of(trace: Trace, step: int) -> list[str]:
    """The sentences of a step as in the files, including those that could not be read."""
    sentences = [change.sentence for change in trace.at(step)]
    for reject in trace.rejects:  # in order of position, so each insertion is at its final place
        if reject.step == step and reject.position is not None:
            sentences.insert(reject.position, reject.text)
    return sentences


def lines(trace: Trace, fields: Mapping[str, Callable[[Trace, int], Any]]) -> Iterator[dict[str, Any]]:
    """A line for each step, with its id and these fields."""
    for step, _, _ in trace.by_step():
        yield {"id": f"{trace.id}{STEP_MARK}{step}"} | {name: value(trace, step) for name, value in fields.items()}


def _question(trace: Trace, step: int) -> str:
    procedure = trace.procedure
    questions = procedure.extra.get("questions")
    given = questions.get(str(step)) if isinstance(questions, dict) else None
    return given if isinstance(given, str) else question_for(procedure.steps[:step])


def _metadata(trace: Trace, step: int) -> dict[str, Any]:
    procedure = trace.procedure
    metadata: dict[str, Any] = {}
    if procedure.source is not None:
        metadata = {
            "url": procedure.source,
            "step_id": str(step),
            "context": " ".join(procedure.steps[: step - 1]),
            "query": procedure.steps[step - 1],
            "future_context": " ".join(procedure.steps[step:]),
        }
    if procedure.topic is not None:
        metadata["topic"] = procedure.topic
    if procedure.images:
        metadata["image_url"] = procedure.images[step - 1]
    return metadata


def _notes(trace: Trace, step: int) -> list[dict[str, Any]]:
    return [
        {
            "answer": note.sentence,
            "entity": note.entity,
            "before": note.before,
            "after": note.after,
            "attr": note.attribute,
            "modality": note.modality,
        }
        for note in trace.annotations
        if note.step == step
    ]


def _notes_if_known(trace: Trace, step: int) -> list[dict[str, Any]] | dict[str, Any]:
    """The files have an empty object, not a list, for procedures whose metadata is missing."""
    notes = _notes(trace, step)
    return notes if notes or trace.procedure.source is not None else {}


def _similar(trace: Trace, step: int) -> list[list[Any]]:
    return [[pair.first, pair.second, pair.similarity] for pair in trace.similar if pair.step == step]


FILES: dict[str, dict[str, Callable[[Trace, int], Any]]] = {
    "id_question": {"question": _question},
    "id_question_metadata": {"question_metadata": _metadata},
    "id_answers": {"answers": answers_of},
    "id_answers_metadata": {"answers_metadata": _notes_if_known},
}
"""Version 1.0: what each file says of a step."""

COMBINED: dict[str, Callable[[Trace, int], Any]] = {
    **FILES["id_question"],
    **FILES["id_answers"],
    **FILES["id_question_metadata"],
    "answers_metadata": _notes,
    "answers_sim": _similar,
}
"""Version 1.1: all about a step on one line."""
