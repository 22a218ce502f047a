"""Writing traces as the files of OpenPI: four in v1.0, one in v1.1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fluents.data.openpi import STEP_MARK, question_for
from fluents.records import Procedure, Trace


def answers_of(trace: Trace, step: int) -> list[str]:
    """The sentences of a step as in the files, including those that could not be read."""
    sentences = [change.sentence for change in trace.at(step)]
    for reject in trace.rejects:  # in order of position, so each insertion is at its final place
        if reject.step == step and reject.position is not None:
            sentences.insert(reject.position, reject.text)
    return sentences


def question_lines(trace: Trace) -> Iterator[dict[str, Any]]:
    for step, _, _ in trace.by_step():
        yield {"id": f"{trace.id}{STEP_MARK}{step}", "question": _question(trace.procedure, step)}


def answer_lines(trace: Trace) -> Iterator[dict[str, Any]]:
    for step, _, _ in trace.by_step():
        yield {"id": f"{trace.id}{STEP_MARK}{step}", "answers": answers_of(trace, step)}


def question_metadata_lines(trace: Trace) -> Iterator[dict[str, Any]]:
    for step, _, _ in trace.by_step():
        yield {"id": f"{trace.id}{STEP_MARK}{step}", "question_metadata": _metadata(trace.procedure, step)}


def answer_metadata_lines(trace: Trace) -> Iterator[dict[str, Any]]:
    for step, _, _ in trace.by_step():
        notes = _notes(trace, step)
        # The files have an empty object, not a list, for procedures whose metadata is missing.
        yield {
            "id": f"{trace.id}{STEP_MARK}{step}",
            "answers_metadata": notes if notes or trace.procedure.source is not None else {},
        }


def combined_lines(trace: Trace) -> Iterator[dict[str, Any]]:
    """Version 1.1: all about a step on one line."""
    for step, _, _ in trace.by_step():
        yield {
            "id": f"{trace.id}{STEP_MARK}{step}",
            "question": _question(trace.procedure, step),
            "answers": answers_of(trace, step),
            "question_metadata": _metadata(trace.procedure, step),
            "answers_metadata": _notes(trace, step),
            "answers_sim": [[pair.first, pair.second, pair.similarity] for pair in trace.similar if pair.step == step],
        }


def _question(procedure: Procedure, step: int) -> str:
    questions = procedure.extra.get("questions")
    given = questions.get(str(step)) if isinstance(questions, dict) else None
    return given if isinstance(given, str) else question_for(procedure.steps[:step])


def _metadata(procedure: Procedure, step: int) -> dict[str, Any]:
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
