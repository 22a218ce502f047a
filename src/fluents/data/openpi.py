"""OpenPI v1.0 and v1.1 (Tandon et al. 2020): reading the published files and writing them back.

Version 1.0 spreads a step over up to four files (question, its metadata, answers, theirs); 1.1 has it on one line.
Ids and questions are HTML-escaped in the files, the metadata's texts are not: steps here are unescaped, ids are kept.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from fluents.data import file_catalogue
from fluents.errors import InputError
from fluents.jsonl import WrongShape, list_of, parse_json, read_lines, wrong_shape_is_input_error
from fluents.records import (
    UNKNOWN_STEP,
    Annotation,
    Modality,
    Procedure,
    Provenance,
    Reject,
    SimilarPair,
    StateChange,
    Trace,
)
from fluents.text.template import parse_among, split_answers

QUESTION_END = " Now, what happens?"
STEP_MARK = "||"
EXAMPLE = '{"id": "tea||1", "answers": ["temperature of water was cold before and hot afterwards"]}'
_FIX = f"write, for example:\n    {EXAMPLE}"
MAX_STEP = 100_000
"""A procedure has a handful of steps; a number past this is a mistake that would eat the memory."""


class OpenPIRow(NamedTuple):
    """What the files say about one step; None for what they do not say."""

    where: str
    procedure_id: str
    step: int
    question: str | None = None
    metadata: dict[str, Any] | None = None
    answers: Any = None
    """What `read_answers` takes."""
    answers_metadata: list[dict[str, Any]] | None = None
    similar: list[list[Any]] | None = None
    clusters: list[int] | None = None
    """OpenPI-C's clustered file is in this shape too, with a number for every answer."""

    @property
    def has_text(self) -> bool:
        return self.question is not None or self.metadata is not None


def split_id(step_id: str, where: str) -> tuple[str, int]:
    """ "address||3" → ("address", 3)."""
    procedure_id, mark, number = step_id.rpartition(STEP_MARK)
    fits = mark and procedure_id and number.isdecimal() and len(number) <= len(str(MAX_STEP))
    if not fits or not 1 <= int(number) <= MAX_STEP:
        what = f"the id {step_id[:80]!r} is not of the form procedure||step, with a step from 1 to {MAX_STEP}"
        raise InputError(what, where=where, fix=_FIX)
    return procedure_id, int(number)


def row(where: str, *lines: dict[str, Any]) -> OpenPIRow:
    """One step from its line in each file. All lines must have the same id."""
    ids = [line.get("id") for line in lines]
    if not isinstance(ids[0], str) or any(other != ids[0] for other in ids):
        what = (
            f"the OpenPI files have different ids on the same line: {ids}"
            if len(ids) > 1
            else "the id must be a string of the form procedure||step"
        )
        raise InputError(what, where=where, fix="copy the files again" if len(ids) > 1 else _FIX)
    merged = {key: value for line in lines for key, value in line.items()}
    answers_metadata = merged.get("answers_metadata")
    if isinstance(merged.get("answer"), str):  # the 2020 training format: a step's answers in one string
        merged["answers"] = split_answers(merged["answer"])
    return OpenPIRow(
        where,
        *split_id(ids[0], where),
        question=merged.get("question"),
        metadata=merged.get("question_metadata"),
        answers=merged.get("answers"),
        answers_metadata=answers_metadata if isinstance(answers_metadata, list) else None,
        similar=merged.get("answers_sim"),
        clusters=merged.get("answer_clusters"),
    )


def goal_of(procedure_id: str) -> str:
    """The goal in a wikiHow address: its last part, unescaped, with spaces for dashes."""
    return html.unescape(procedure_id.rsplit("/", 1)[-1]).replace("-", " ")


def traces(rows: Iterable[OpenPIRow], dataset: str, *, in_pieces: bool = False) -> Iterator[Trace]:
    """One trace for each run of rows of one procedure.

    Steps must count 1, 2, 3 … — except in files that hold answers alone, where a step may be left out. With
    `in_pieces`, answers that repeat a step or stand apart from their procedure's others become traces of their own.
    """
    seen: set[str] = set()
    for procedure_id, run in groupby(rows, key=lambda row: row.procedure_id):
        steps = list(run)
        if in_pieces and not any(row.has_text for row in steps):
            yield from (_trace(procedure_id, piece, dataset) for piece in _pieces(steps))
            continue
        if procedure_id in seen:
            raise InputError(
                f"the steps of {procedure_id!r} are not on consecutive lines",
                where=steps[0].where,
                fix="put the steps of each procedure together, in the order of their numbers",
            )
        seen.add(procedure_id)
        last = 0
        for row in steps:
            if row.step <= last:
                what = f"the id {procedure_id}{STEP_MARK}{row.step} "
                raise InputError(
                    what + ("occurs twice" if row.step == last else f"comes after {procedure_id}{STEP_MARK}{last}"),
                    where=row.where,
                    fix="give every step once, and put the steps of a procedure in the order of their numbers",
                )
            if row.step != last + 1 and row.has_text:
                raise InputError(
                    f"step {last + 1} is missing before {procedure_id}{STEP_MARK}{row.step}",
                    where=row.where,
                    fix="give all steps of a procedure, in the order of their numbers",
                )
            last = row.step
        yield _trace(procedure_id, steps, dataset)


def _pieces(rows: Sequence[OpenPIRow]) -> Iterator[list[OpenPIRow]]:
    """Runs of rows whose steps ascend."""
    piece: list[OpenPIRow] = []
    for row in rows:
        if piece and row.step <= piece[-1].step:
            yield piece
            piece = []
        piece.append(row)
    yield piece


def _trace(procedure_id: str, rows: Sequence[OpenPIRow], dataset: str) -> Trace:
    with wrong_shape_is_input_error("this step is not in the OpenPI format", rows[0].where, _FIX):
        return _checked_trace(procedure_id, rows, dataset)


def _checked_trace(procedure_id: str, rows: Sequence[OpenPIRow], dataset: str) -> Trace:
    changes: list[StateChange] = []
    rejects = []
    annotations: list[Annotation] = []
    for row in rows:
        read, unread = read_answers(row.answers or [], row.step)
        if row.clusters is not None:
            read = _with_clusters(read, row)
        noted = [_annotation(note, row.step) for note in row.answers_metadata or ()]
        changes += _with_modality(read, noted)
        rejects += unread
        annotations += noted
    return Trace(
        procedure=_procedure(procedure_id, rows),
        changes=tuple(changes),
        covered=None if len(rows) == rows[-1].step else tuple(row.step for row in rows),
        rejects=tuple(rejects),
        annotations=tuple(annotations),
        similar=tuple(
            SimilarPair(step=row.step, first=first, second=second, similarity=similarity)
            for row in rows
            for first, second, similarity in row.similar or ()
        ),
        provenance=Provenance(dataset=dataset),
    )


def read_answers(answers: Any, step: int) -> tuple[list[StateChange], list[Reject]]:
    """(changes, rejects) of a step's answers: sentences, [entity, attribute, before, after], or objects of these."""
    said = list_of(answers, "answers")
    parsed = [
        parse_among(answer, step, position, len(said)) if isinstance(answer, str) else change_of(answer, step)
        for position, answer in enumerate(said)
    ]
    return [one for one in parsed if isinstance(one, StateChange)], [one for one in parsed if isinstance(one, Reject)]


def change_of(answer: Any, step: int) -> StateChange:
    """A change from [entity, attribute, before, after] or an object with these keys."""
    if isinstance(answer, dict):
        attribute = answer["attr"] if "attr" in answer else answer["attribute"]
        answer = [answer["entity"], attribute, answer.get("before", ""), answer.get("after", "")]
    if not isinstance(answer, list) or len(answer) != 4:
        raise WrongShape("an answer must be a sentence or [entity, attribute, before, after]")
    entity, attribute, before, after = answer
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


def _procedure(procedure_id: str, rows: Sequence[OpenPIRow]) -> Procedure:
    if not any(row.has_text for row in rows):
        return Procedure(id=procedure_id, goal=goal_of(procedure_id), steps=(UNKNOWN_STEP,) * rows[-1].step)
    known = [row.metadata or {} for row in rows]
    steps: list[str] = []
    questions: dict[str, JsonValue] = {}
    for row, metadata in zip(rows, known, strict=True):
        step = metadata["query"] if "query" in metadata else _added_text(row, steps)
        if not isinstance(step, str) or not step.strip():
            what = f"step {row.step} of {procedure_id} has no text"
            raise InputError(what, where=row.where, fix="write the text of the step as the value of 'query'")
        steps.append(step)
        if row.question is not None and row.question != question_for(steps):
            questions[str(row.step)] = row.question  # two training questions do not follow from their steps
    return Procedure(
        id=procedure_id,
        goal=goal_of(procedure_id),
        steps=tuple(steps),
        topic=known[0].get("topic"),
        source=known[0].get("url"),
        images=tuple(metadata["image_url"] for metadata in known if "image_url" in metadata),
        extra={"questions": questions} if questions else {},
    )


def _added_text(row: OpenPIRow, earlier: Sequence[str]) -> str:
    """The text of a step that its metadata lacks: what its question adds to the steps before it."""
    if row.question is None:
        raise InputError(
            "this step has no text: it has no 'question', and its 'question_metadata' has no 'query'",
            where=row.where,
            fix="add 'question', or add 'query' to 'question_metadata'",
        )
    text = html.unescape(row.question.removesuffix(QUESTION_END))
    return text.strip().removeprefix(" ".join(earlier)).strip()


def question_for(steps: Sequence[str]) -> str:
    """The question about the last of these steps, as in the files."""
    return html.escape(" ".join(steps[:-1]) + " " + steps[-1] + QUESTION_END)


def _annotation(note: dict[str, Any], step: int) -> Annotation:
    return Annotation(
        step=step,
        sentence=note["answer"],
        entity=note["entity"],
        attribute=note["attr"],
        before=note["before"],
        after=note["after"],
        modality=note["modality"],
    )


def _with_clusters(changes: Iterable[StateChange], row: OpenPIRow) -> list[StateChange]:
    numbers = dict(zip(row.answers or (), list_of(row.clusters, "answer_clusters"), strict=True))
    return [change.replace(cluster=numbers[change.sentence]) for change in changes]


def _with_modality(changes: Iterable[StateChange], noted: Iterable[Annotation]) -> list[StateChange]:
    """The changes with whether their annotators saw an image, matched by sentence without punctuation."""
    seen: dict[str, Modality] = {}
    for note in noted:
        key = _plain(note.sentence)
        seen[key] = note.modality if seen.get(key, note.modality) == note.modality else "both"
    found = [(change, seen.get(_plain(change.sentence))) for change in changes]
    return [change.replace(modality=modality) if modality else change for change, modality in found]


def _plain(sentence: str) -> str:
    return re.sub(r"[,.]", "", sentence)


def load(split: str) -> Iterator[Trace]:
    """OpenPI v1.0: the gold splits, the same in the format GPT-2 was trained on, and GPT-2's released predictions."""
    kind, _, part = split.rpartition("-")
    if kind:
        path = f"data/formatted_for_gpt2/{part}.jsonl"
        if kind == "gpt2":
            path = f"emnlp2020-predictions/predictions/on_openpi_v1.0/{part}.predictions.jsonl"
        return traces((row(where, line) for where, line in file_catalogue.lines("openpi", path)), f"openpi:{split}")
    names = ["id_question", "id_question_metadata", "id_answers"] + ["id_answers_metadata"] * (split != "train")
    columns = [file_catalogue.lines("openpi", f"data/gold/{split}/{name}.jsonl") for name in names]
    return traces(_joined(columns), f"openpi:{split}")


def load_v1_1(split: str) -> Iterator[Trace]:
    """OpenPI v1.1: train, dev or test, with corrections and pairs of similar answers."""
    rows = (row(where, line) for where, line in file_catalogue.lines("openpi-v1.1", f"data/gold-v1.1/{split}.jsonl"))
    return traces(rows, f"openpi-v1.1:{split}")


def folder_rows(folder: Path) -> Iterator[OpenPIRow]:
    """The steps in a folder with up to four files of OpenPI v1.0."""
    names = ("id_question", "id_question_metadata", "id_answers", "id_answers_metadata")
    files = [folder / f"{name}.jsonl" for name in names if (folder / f"{name}.jsonl").is_file()]
    return _joined([((where, parse_json(line, where)) for where, line in read_lines(file)) for file in files])


def _joined(columns: Iterable[Iterator[tuple[str, Any]]]) -> Iterator[OpenPIRow]:
    for lines in zip_longest(*columns):
        if None in lines:
            where = next(li[0] for li in lines if li)
            what = "the OpenPI files in this folder have different numbers of lines"
            raise InputError(what, where=where, fix="copy the files again")
        yield row(lines[0][0], *(line for _, line in lines))
