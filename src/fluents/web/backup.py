"""The documents of a store with all that belongs to them as one file: gzipped JSONL, a line for every row, written and
read bit by bit. Annotation projects are not in it: each has a file of its own, its history."""

from __future__ import annotations

import base64
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Literal, cast

from pydantic import TypeAdapter
from sqlalchemy import insert, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from fluents.errors import InputError
from fluents.jsonl import MAX_LINE_BYTES
from fluents.records import Provenance
from fluents.web.archive import moment, procedure_of, trace_of
from fluents.web.judgement_merge import JudgementMerge
from fluents.web.resources import JobState, Restored, StepDone
from fluents.web.store import Store
from fluents.web.tables import Base, ChangeRow, CorrectionRow, DocumentRow, EventRow, JobRow, TraceRow
from fluents.web.trace_resources import CorrectedWords, Verdict

SUFFIX = ".backup.jsonl.gz"
HEADER = "fluents-backup"
VERSION = 1
TABLES: tuple[type[Base], ...] = (DocumentRow, JobRow, EventRow, TraceRow, ChangeRow, CorrectionRow)
"""In an order in which each row comes after those that it belongs to."""
BLOCK = 500
"""Rows that are read or written at once."""
_BY_NAME = {table.__tablename__: table for table in TABLES}
_NOT_A_BACKUP = "this file is not a complete backup"
_UNCHANGED = "upload the file that you downloaded as a backup, without changes"
_AGAIN = "download the backup again"


def written(store: Store) -> Iterator[bytes]:
    """The file, part by part, of one moment: what changes meanwhile is not in it."""
    packer = zlib.compressobj(wbits=31)  # 31: with gzip's header
    for line in _lines(store):
        if packed := packer.compress(json.dumps(line).encode() + b"\n"):
            yield packed
    yield packer.flush()


def _lines(store: Store) -> Iterator[dict[str, Any]]:
    yield {HEADER: VERSION}
    count = 0
    with store.reading() as session:
        for table in TABLES:
            columns = table.__table__.columns
            rows = session.execute(select(*columns), execution_options={"yield_per": BLOCK})
            for row in rows.mappings():
                count += 1
                yield {"table": table.__tablename__, "row": {name: _plain(value) for name, value in row.items()}}
    yield {"rows": count}


def _plain(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def restore(store: Store, stream: IO[bytes]) -> Restored:
    """Add what a backup holds to a store, all or nothing. Rows that are there already stay as they are.

    A job that waited or ran when the backup was made is cancelled: somebody may resume it.
    """
    added = {table.__tablename__: 0 for table in TABLES}
    skipped = count = 0
    try:
        with store.writing() as session, gzip.open(stream) as unpacked:
            lines = _parsed(cast(IO[bytes], unpacked))
            if next(lines, {}).get(HEADER) != VERSION:
                raise InputError(_NOT_A_BACKUP, fix=_UNCHANGED)
            known: set[tuple[str, str]] = set()
            merge = JudgementMerge(session)
            ended = False
            for line in lines:
                if ended:
                    raise InputError(_NOT_A_BACKUP, fix=_UNCHANGED)
                if "rows" in line:
                    ended = line["rows"] == count
                    continue
                count += 1
                table, row = _BY_NAME[line["table"]], _values(_BY_NAME[line["table"]], line["row"])
                if _insert(session, table, row, known, merge):
                    added[table.__tablename__] += 1
                else:
                    skipped += 1
            if not ended:
                raise InputError(_NOT_A_BACKUP, fix=_AGAIN)
            merge.finish()
    except EOFError:
        raise InputError(_NOT_A_BACKUP, fix=_AGAIN) from None
    except (
        OSError,
        zlib.error,
        ValueError,
        LookupError,
        TypeError,
        ArithmeticError,
        AttributeError,
    ):
        raise InputError(_NOT_A_BACKUP, fix=_UNCHANGED) from None
    except SQLAlchemyError:
        raise InputError("this backup is damaged: its parts do not fit together", fix=_AGAIN) from None
    names = ("documents", "jobs", "traces", "corrections")
    return Restored(**{name: added[name] for name in names}, skipped=skipped)


def _parsed(unpacked: IO[bytes]) -> Iterator[dict[str, Any]]:
    while line := unpacked.readline(MAX_LINE_BYTES):
        if not line.endswith(b"\n"):
            raise InputError(_NOT_A_BACKUP, fix=_AGAIN)
        yield json.loads(line)


def _values(table: type[Base], row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row, checked as far as the application relies on them: a database takes almost anything."""
    found: dict[str, Any] = {
        name: base64.b64decode(value["base64"], validate=True) if isinstance(value, dict) else value
        for name, value in row.items()
    }
    columns = table.__table__.columns
    if found.keys() != set(columns.keys()):
        what = "this backup was created by another version of fluents"
        raise InputError(what, fix="restore the backup with the version of fluents that created it")
    for column in columns:
        value, kinds = found[column.name], _KINDS[column.type.python_type]
        if type(value) not in (*kinds, type(None)) or (value is None and not column.nullable):
            raise InputError(_NOT_A_BACKUP, fix=_UNCHANGED)
        if int in kinds and value is not None:
            moment(value) if float in kinds else range(2**31).index(value)
    for name in ("id", *(key.parent.name for key in table.__table__.foreign_keys)):
        if found.get(name) is not None and not re.fullmatch("[0-9a-f]{16}", found[name]):
            raise InputError(_NOT_A_BACKUP, fix=_UNCHANGED)
    for name, check in _CHECKS.items():
        if found.get(name) is not None:
            check(found[name])
    if table is EventRow and found["kind"] == "step":
        data = json.loads(found["data"])
        shown, step = data.pop("shown"), StepDone.model_validate(data)
        [step.changes[place] for place in shown]
    if table is JobRow and found["state"] in ("queued", "running"):
        found["state"] = "cancelled"
    return found


_KINDS: dict[type, tuple[type, ...]] = {str: (str,), int: (int,), float: (float, int), bytes: (bytes,)}
_CHECKS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("read", "corrected", "procedure"), procedure_of),
    "record": trace_of,
    "warnings": TypeAdapter(list[str]).validate_json,
    "options": TypeAdapter(dict[str, Any]).validate_json,
    "data": TypeAdapter(dict[str, Any]).validate_json,
    "words": CorrectedWords.model_validate_json,
    "provenance": Provenance.model_validate_json,
    "state": TypeAdapter(JobState).validate_python,
    "verdict": TypeAdapter(Verdict).validate_python,
    "kind": TypeAdapter(Literal["state", "step", "warning"]).validate_python,
}
"""What columns of these names must be."""


def _insert(
    session: Session, table: type[Base], row: dict[str, Any], known: set[tuple[str, str]], merge: JudgementMerge
) -> bool:
    """Add a row, unless it is there, or is a part of something that was there before. Judgements are added to that."""
    if table is CorrectionRow and ("traces", row["trace_id"]) in known:
        _check_step(session, row)
        return merge.take(row)
    if "id" not in row:
        [key] = table.__table__.foreign_keys
        if (key.column.table.name, row[key.parent.name]) in known:
            return False
    else:
        if session.get(table, row["id"]) is not None:
            known.add((table.__tablename__, row["id"]))
            return False
        session.expunge_all()
    if table is CorrectionRow:
        _check_step(session, row)
    session.execute(insert(table), [row])
    return True


def _check_step(session: Session, row: Mapping[str, Any]) -> None:
    trace = session.get(TraceRow, row["trace_id"])
    if trace is None or not 1 <= row["step"] <= trace.steps:
        raise InputError(_NOT_A_BACKUP, fix=_UNCHANGED)
