"""What the store keeps for people: documents, traces, their judgements, and the search over all of it."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session, undefer

from fluents import jsonl
from fluents.errors import InputError
from fluents.records import Procedure, Trace
from fluents.web.corrections import JudgedChange, corrected, judged, placed
from fluents.web.resources import DocumentPage, DocumentSummary, Found, FoundPage, TraceSummary
from fluents.web.search_words import has_stem, query_stems, stems
from fluents.web.store import NotFoundError, Store, new_id, storable
from fluents.web.tables import ChangeRow, CorrectionRow, DocumentRow, JobRow, TraceRow
from fluents.web.trace_resources import Correction, CorrectionGiven

FIELDS = ("entity", "attribute", "before", "after")
_DAMAGED = "restore the store from a backup"


@dataclass(frozen=True)
class KeptDocument:
    """A document as the store has it."""

    id: str
    text: str
    name: str | None
    created: datetime
    warnings: list[str]
    read: Procedure
    corrected: Procedure | None

    @property
    def procedure(self) -> Procedure:
        """The steps to track."""
        return self.corrected or self.read


@dataclass(frozen=True)
class KeptTrace:
    """A trace as the store has it."""

    summary: TraceSummary
    trace: Trace
    """In the model's words."""
    corrections: list[Correction]

    @property
    def corrected(self) -> Trace:
        """As people left it."""
        return corrected(self.trace, self.corrections)


class Archive:
    """Documents, traces and judgements of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # Documents

    def add(self, procedure: Procedure, text: bytes, name: str | None, warnings: Sequence[str] = ()) -> str:
        """Keep a text as it was read; returns its id."""
        with self._store.writing() as session:
            return insert_document(session, procedure, text, name, warnings)

    def add_traces(self, traces: Sequence[Trace], name: str) -> tuple[list[str], list[str]]:
        """Keep traces of a file, all or none; returns the ids of their documents, and of those with changes."""
        documents, kept = [], []
        with self._store.writing() as session:
            for trace in traces:
                text = "\n".join((trace.procedure.goal, *trace.procedure.steps)).strip()
                documents.append(insert_document(session, trace.procedure, text.encode(), name))
                if trace.changes:
                    kept.append(insert_trace(session, documents[-1], trace, name))
        return documents, kept

    def document(self, document_id: str) -> KeptDocument:
        with self._store.reading() as session:
            row = get_row(session, DocumentRow, document_id, undefer(DocumentRow.text))
            return KeptDocument(
                row.id,
                row.text.decode("utf-8", "replace"),
                row.name,
                moment(row.created),
                json.loads(row.warnings),
                procedure_of(row.read),
                None if row.corrected is None else procedure_of(row.corrected),
            )

    def summaries(self, ids: Sequence[str]) -> list[DocumentSummary]:
        with self._store.reading() as session:
            rows = {row.id: row for row in session.scalars(select(DocumentRow).where(DocumentRow.id.in_(ids)))}
            return _summaries(session, [rows[one] for one in ids if one in rows])

    def documents(self, query: str = "", offset: int = 0, limit: int = 20) -> DocumentPage:
        """A page of the archive, newest first: of all documents, or of those that have all words of the query."""
        chosen = select(DocumentRow)
        for stem in query_stems(query):
            chosen = chosen.where(has_stem(DocumentRow.stems, stem))
        with self._store.reading() as session:
            total = session.scalar(select(func.count()).select_from(chosen.subquery())) or 0
            newest = chosen.order_by(DocumentRow.created.desc(), DocumentRow.id).offset(offset).limit(limit)
            items = _summaries(session, list(session.scalars(newest)))
        return DocumentPage(items=items, total=total, next=_next(offset, len(items), total))

    def correct_steps(self, document_id: str, goal: str | None, steps: Sequence[str] | None) -> None:
        """Keep steps as a person corrected them; both None: as they were read."""
        with self._store.writing() as session:
            row = get_row(session, DocumentRow, document_id)
            now = read = procedure_of(row.read)
            if goal is not None or steps is not None:
                texts = read.steps if steps is None else tuple(steps)
                images = read.images if len(texts) == len(read.steps) else ()
                now = read.replace(goal=read.goal if goal is None else goal.strip(), steps=texts, images=images)
            row.corrected = None if now == read else jsonl.dumps(now).decode()
            row.stems = stems(row.name or "", now.goal, *now.steps)

    def delete_document(self, document_id: str) -> None:
        """With its jobs, traces and judgements."""
        with self._store.writing() as session:
            session.delete(get_row(session, DocumentRow, document_id))

    # Traces

    def traces_of(self, document_id: str) -> list[TraceSummary]:
        """Oldest first."""
        chosen = select(TraceRow).where(TraceRow.document_id == document_id).order_by(TraceRow.created, TraceRow.id)
        with self._store.reading() as session:
            return [_trace_summary(row) for row in session.scalars(chosen)]

    def trace_summaries(self, ids: Sequence[str]) -> list[TraceSummary]:
        with self._store.reading() as session:
            rows = {row.id: row for row in session.scalars(select(TraceRow).where(TraceRow.id.in_(ids)))}
            return [_trace_summary(rows[one]) for one in ids if one in rows]

    def trace(self, trace_id: str) -> KeptTrace:
        with self._store.reading() as session:
            return kept_traces(session, get_row(session, TraceRow, trace_id, undefer(TraceRow.record)))[0]

    def delete_trace(self, trace_id: str) -> None:
        """With the judgements on it."""
        with self._store.writing() as session:
            session.delete(get_row(session, TraceRow, trace_id))

    def correct(self, trace_id: str, given: CorrectionGiven) -> Correction:
        """Add a judgement; a later one on the same change counts."""
        with self._store.writing() as session:
            row = get_row(session, TraceRow, trace_id, undefer(TraceRow.record), lock=True)
            [kept] = kept_traces(session, row)
            position, step = placed(kept.trace, kept.corrections, given)
            row.corrections = len(kept.corrections) + 1
            added = CorrectionRow(
                id=new_id(),
                trace_id=trace_id,
                number=row.corrections,
                position=position,
                verdict=given.verdict,
                step=step,
                words=None if given.words is None else given.words.model_dump_json(),
                created=time.time(),
            )
            session.add(added)
            correction = _correction(added)
            session.execute(delete(ChangeRow).where(ChangeRow.trace_id == trace_id, ChangeRow.position == position))
            index_changes(session, trace_id, [judged(kept.trace, [*kept.corrections, correction])[position]])
        return correction

    def corrected_traces(self) -> Iterator[Trace]:
        """All traces that somebody judged, as people left them, each with an id of its own."""
        with self._store.reading() as session:
            chosen = select(TraceRow.id).where(TraceRow.corrections > 0).order_by(TraceRow.created, TraceRow.id)
            ids = list(session.scalars(chosen))
        for one in ids:
            try:
                kept = self.trace(one)
            except NotFoundError:  # deleted meanwhile
                continue
            procedure = kept.trace.procedure
            yield kept.corrected.replace(procedure=procedure.replace(id=f"{procedure.id}-{one}"))

    # Search

    def search(self, query: str = "", offset: int = 0, limit: int = 20, **fields: str) -> FoundPage:
        """Changes that have all words of the query in any field, and all words of `fields` in theirs."""
        chosen = select(ChangeRow, TraceRow.created).join(TraceRow, TraceRow.id == ChangeRow.trace_id)
        anywhere = ChangeRow.entity + ChangeRow.attribute + ChangeRow.before + ChangeRow.after
        for stem in query_stems(query):
            chosen = chosen.where(has_stem(anywhere, stem))
        for name, value in fields.items():
            for stem in query_stems(value):
                chosen = chosen.where(has_stem(getattr(ChangeRow, name), stem))
        newest = (TraceRow.created.desc(), ChangeRow.trace_id, ChangeRow.step, ChangeRow.position)
        with self._store.reading() as session:
            total = session.scalar(select(func.count()).select_from(chosen.subquery())) or 0
            rows = session.scalars(chosen.order_by(*newest).offset(offset).limit(limit)).all()
            items = list(_found(session, rows))
        return FoundPage(items=items, total=total, next=_next(offset, len(rows), total))


def insert_document(
    session: Session, procedure: Procedure, text: bytes, name: str | None, warnings: Sequence[str] = ()
) -> str:
    """Add a document to a transaction; returns its id."""
    row = DocumentRow(
        id=new_id(),
        created=time.time(),
        name=None if name is None else storable(name),
        text=text,
        read=jsonl.dumps(procedure).decode(),
        corrected=None,
        warnings=json.dumps(list(warnings)),
        stems=stems(name or "", procedure.goal, *procedure.steps),
    )
    session.add(row)
    session.flush()
    return row.id


def insert_trace(session: Session, document_id: str, trace: Trace, name: str, job_id: str | None = None) -> str:
    """Add a trace to a transaction, and its changes to the search; returns its id."""
    row = TraceRow(
        id=new_id(),
        document_id=document_id,
        job_id=job_id,
        name=storable(name),
        created=time.time(),
        record=jsonl.dumps(trace).decode(),
        steps=len(trace.procedure.steps),
        changes=len(trace.changes),
        corrections=0,
    )
    session.add(row)
    session.flush()
    index_changes(session, row.id, judged(trace, []))
    return row.id


def index_changes(session: Session, trace_id: str, changes: Sequence[JudgedChange]) -> None:
    """Let searches find the current words of changes of which they find nothing yet."""
    for one in changes:
        if (now := one.current) is not None:
            words = {field: stems(getattr(now, field)) for field in FIELDS}
            session.add(ChangeRow(trace_id=trace_id, position=one.position, step=now.step, **words))


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _next(offset: int, count: int, total: int) -> int | None:
    return offset + count if count and offset + count < total else None


_NOUNS: dict[type, str] = {DocumentRow: "document", TraceRow: "trace", JobRow: "job"}
_Row = TypeVar("_Row", DocumentRow, TraceRow, JobRow)


def get_row(session: Session, table: type[_Row], row_id: str, *options: Any, lock: bool = False) -> _Row:
    """The row with this id; with `lock` nobody else changes it until the transaction ends."""
    chosen = select(table).where(table.id == row_id).options(*options)
    row = session.scalars(chosen.with_for_update() if lock else chosen).one_or_none()
    if row is None:
        noun = _NOUNS[table]
        raise NotFoundError(
            f"there is no {noun} with this id",
            where=row_id,
            fix=f"check the list of {noun}s: this {noun} may have been deleted",
        )
    return row


CACHED_LENGTH = 20_000
"""Characters of the longest line that is kept as a record: 200 of those take tens of MiB."""


def _record(line: str) -> jsonl.AnyRecord:
    return _kept_record(line) if len(line) <= CACHED_LENGTH else jsonl.loads(line, "the store")


@lru_cache(maxsize=200)
def _kept_record(line: str) -> jsonl.AnyRecord:
    """Records are frozen, and most are read many times."""
    return jsonl.loads(line, "the store")


def procedure_of(line: str) -> Procedure:
    """The procedure in a line that the store wrote."""
    record = _record(line)
    if not isinstance(record, Procedure):
        raise InputError(
            f"expected a procedure, found a `{jsonl.kind_of(record)}` record", where="the store", fix=_DAMAGED
        )
    return record


def trace_of(line: str) -> Trace:
    """The trace in a line that the store or the worker wrote."""
    record = _record(line)
    if not isinstance(record, Trace):
        raise InputError(f"expected a trace, found a `{jsonl.kind_of(record)}` record", where="the store", fix=_DAMAGED)
    return record


def kept_traces(session: Session, *rows: TraceRow) -> list[KeptTrace]:
    """Traces with the judgements on them."""
    corrections: dict[str, list[Correction]] = {row.id: [] for row in rows}
    chosen = select(CorrectionRow).where(CorrectionRow.trace_id.in_(corrections)).order_by(CorrectionRow.number)
    for one in session.scalars(chosen):
        corrections[one.trace_id].append(_correction(one))
    return [KeptTrace(_trace_summary(row), trace_of(row.record), corrections[row.id]) for row in rows]


def _correction(row: CorrectionRow) -> Correction:
    return Correction.model_validate(
        {
            "id": row.id,
            "trace": row.trace_id,
            "position": row.position,
            "verdict": row.verdict,
            "step": row.step,
            "words": None if row.words is None else json.loads(row.words),
            "created": moment(row.created),
        }
    )


def _trace_summary(row: TraceRow) -> TraceSummary:
    return TraceSummary(
        id=row.id,
        document=row.document_id,
        job=row.job_id,
        name=row.name,
        created=moment(row.created),
        steps=row.steps,
        changes=row.changes,
        corrections=row.corrections,
    )


def _summaries(session: Session, rows: Sequence[DocumentRow]) -> list[DocumentSummary]:
    ids = [row.id for row in rows]
    counts = select(TraceRow.document_id, func.count()).where(TraceRow.document_id.in_(ids))
    traces = dict(session.execute(counts.group_by(TraceRow.document_id)).all())
    jobs = select(JobRow.document_id, JobRow.state).where(JobRow.document_id.in_(ids)).order_by(JobRow.created)
    states = dict(session.execute(jobs).all())  # of several the last stays
    found = []
    for row in rows:
        procedure = procedure_of(row.corrected or row.read)
        summary = {
            "id": row.id,
            "goal": procedure.goal,
            "name": row.name,
            "first_step": textwrap.shorten(next(iter(procedure.steps), ""), 80, placeholder=" …"),
            "created": moment(row.created),
            "steps": len(procedure.steps),
            "traces": traces.get(row.id, 0),
            "state": states.get(row.id),
        }
        found.append(DocumentSummary.model_validate(summary))
    return found


def _found(session: Session, rows: Sequence[ChangeRow]) -> Iterator[Found]:
    """What the rows stand for, in its current words."""
    chosen = select(TraceRow).where(TraceRow.id.in_({row.trace_id for row in rows})).options(undefer(TraceRow.record))
    kept = {one.summary.id: one for one in kept_traces(session, *session.scalars(chosen))}
    judgements = {trace_id: judged(one.trace, one.corrections) for trace_id, one in kept.items()}
    for row in rows:
        trace, changes = kept[row.trace_id], judgements[row.trace_id]
        change = changes[row.position].current if row.position < len(changes) else None
        if change is not None:
            procedure = trace.trace.procedure
            yield Found(
                document=trace.summary.document,
                trace=row.trace_id,
                goal=procedure.goal,
                step=change.step,
                text=procedure.steps[change.step - 1],
                position=row.position,
                entity=change.entity,
                attribute=change.attribute,
                before=change.before,
                after=change.after,
                confidence=change.confidence,
            )
