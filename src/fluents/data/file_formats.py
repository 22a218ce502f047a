"""The shapes a file of procedures or traces can have: told apart when reading, chosen by name when writing."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from fluents import jsonl
from fluents.data import crepe, openpi, openpi2, openpi2_outputs, openpi2_write, openpi_c, openpi_write
from fluents.data.datasets import DATASETS, load, to_trace
from fluents.errors import EmptyFileError, InputError, UnknownNameError
from fluents.jsonl import AnyRecord
from fluents.records import Procedure, Record, Trace

MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
"""A JSON document is read whole; JSONL, which streams, is the shape for more."""

PARQUET = b"PAR1"
"""How a Parquet file begins."""

# Reading


def read(source: str | Path) -> Iterator[AnyRecord]:
    """Records from a dataset's name ("openpi:test") or from a file in any known shape, each opened once."""
    return iter(_records(source))


def read_traces(source: str | Path) -> Iterator[Trace]:
    """Likewise, as traces."""
    return map(to_trace, _records(source))


def read_answers(source: str | Path) -> Iterable[Trace]:
    """Likewise, for metrics that go step by step: an OpenPI file may repeat a step, and its last answers count.

    Only the whole file tells which are the last, so such a file comes as a list; all others stream.
    """
    records = _records(source, in_pieces=True)
    return [to_trace(record) for record in records] if isinstance(records, list) else map(to_trace, records)


def _records(source: str | Path, *, in_pieces: bool = False) -> Iterable[AnyRecord]:
    name = str(source)
    if name.partition(":")[0] in DATASETS and not Path(name).exists():
        return load(name)
    if name != "-" and not Path(name).exists():
        raise InputError(
            "neither a file nor a dataset", where=name, fix="check the path; `fluents data list` names the datasets"
        )
    return _file_records(source, in_pieces=in_pieces)


def _file_records(path: str | Path, *, in_pieces: bool) -> Iterable[AnyRecord]:
    """Ours, or a published shape, told apart by the first line."""
    name = "standard input" if str(path) == "-" else str(path)
    if _is_openpi_folder(path):
        return openpi.traces(openpi.folder_rows(Path(path)), name)
    lines = jsonl.read_lines(path, binary=PARQUET)
    first = next(lines, None)
    if first is None:
        raise EmptyFileError("the file is empty", where=name, fix="a procedure needs at least one step")
    where, line = first
    if line.startswith(PARQUET):
        from fluents.data import parquet

        return parquet.read(io.BytesIO(line), name)
    if not line.lstrip().startswith((b"{", b"[")):
        fix = "is it the file you meant? `fluents track` makes records of a text"
        raise InputError("no file of records: it begins with neither { nor [", where=where, fix=fix)
    try:
        value = jsonl.parse_json(line, where)
    except InputError:
        if line.startswith((b'{"fluents"', b'{"id"')):  # a broken record; a document's brace stands alone
            raise
        value = None
    every_line = chain([first], lines)
    if isinstance(value, dict) and ("id" in value or jsonl.is_ours(value)):
        return _from_lines(every_line, value, name, in_pieces)
    return _from_document(every_line, name)


def _is_openpi_folder(path: str | Path) -> bool:
    return str(path) != "-" and (Path(path) / "id_answers.jsonl").is_file()


Lines: TypeAlias = Iterator[tuple[str, bytes]]


def _from_lines(lines: Lines, first: dict[str, Any], name: str, in_pieces: bool) -> Iterable[AnyRecord]:
    if jsonl.is_ours(first):
        return jsonl.read_records(lines)
    objects = ((where, _object(line, where)) for where, line in lines)
    if "steps" in first:
        return (procedure for where, line in objects for procedure in openpi2_outputs.api_procedures(line, where))
    if isinstance(first["id"], list):
        return openpi_c.traces((openpi_c.line(where, line) for where, line in objects), name)
    if "answers" in first or "question" in first or "question_metadata" in first:
        rows = (openpi.row(where, line) for where, line in objects)
        return list(openpi.traces(rows, name, in_pieces=True)) if in_pieces else openpi.traces(rows, name)
    raise _unknown(name)


def _object(line: bytes, where: str) -> dict[str, Any]:
    value = jsonl.parse_json(line, where)
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object, found {type(value).__name__}", where=where)
    return value


def _from_document(lines: Lines, name: str) -> Iterator[AnyRecord]:
    value = jsonl.parse_json(_whole(lines, name), name)
    if isinstance(value, list) or (isinstance(value, dict) and ("input" in value or "steps" in value)):
        return openpi2_outputs.api_procedures(value, name)
    sample = next(iter(value.values()), None) if isinstance(value, dict) else None
    if isinstance(sample, dict) and "states" in sample and "goal" in sample:
        return openpi2.traces(value, name, name, rater="file")
    if isinstance(sample, dict) and "states" in sample:
        return openpi2_outputs.api_traces(value, name)
    if isinstance(sample, dict) and "steps" in sample:
        return crepe.cases(value, name)
    raise _unknown(name)


def _whole(lines: Lines, name: str) -> bytes:
    parts, size = [], 0
    for _, line in lines:
        size += len(line)
        if size > MAX_DOCUMENT_BYTES:
            raise InputError(
                f"a JSON document of more than {MAX_DOCUMENT_BYTES // 2**20} MB",
                where=name,
                fix="use JSONL, a record a line",
            )
        parts.append(line)
    return b"".join(parts)


def _unknown(name: str) -> InputError:
    return InputError(
        "JSON in a shape fluents does not know",
        where=name,
        fix='known: fluents JSONL, OpenPI, OpenPI-C, OpenPI2.0, CREPE, or {"id", "goal", "steps"}; see docs/formats.md',
    )


# Writing

_OPENPI_FILES: dict[str, Callable[[Trace], Iterator[dict[str, Any]]]] = {
    "id_question.jsonl": openpi_write.question_lines,
    "id_question_metadata.jsonl": openpi_write.question_metadata_lines,
    "id_answers.jsonl": openpi_write.answer_lines,
    "id_answers_metadata.jsonl": openpi_write.answer_metadata_lines,
}
_LINES: dict[str, Callable[[Trace], Iterator[dict[str, Any]]]] = {
    "openpi-v1.1": openpi_write.combined_lines,
    "openpi-c": openpi_c.lines_of,
    "openpi-c-clustered": openpi_c.clustered_lines_of,
}
SHAPES = ("fluents", "openpi", *_LINES, "openpi2", "parquet")


def write(records: Iterable[AnyRecord], shape: str, path: str | Path) -> int:
    """Write records in a shape; returns how many. `openpi` is a folder of four files, the others are one file."""
    if shape == "fluents":
        return jsonl.write(records, path)
    traces = [to_trace(record) for record in records]
    if shape == "openpi":
        folder = Path(path)
        if str(path) == "-" or folder.is_file():
            raise InputError("openpi is a folder of four files", where=path, fix="name a folder")
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in _OPENPI_FILES.items():
            _write_lines(traces, lines, folder / name)
    elif shape in _LINES:
        _write_lines(traces, _LINES[shape], path)
    elif shape == "openpi2":
        with jsonl.atomic_output(path) as stream:
            stream.write(json.dumps(openpi2_write.document(traces), indent=4).encode() + b"\n")
    elif shape == "parquet":
        from fluents.data import parquet

        parquet.write(traces, path)
    else:
        raise UnknownNameError(f"no shape {shape!r}", fix=f"one of: {', '.join(SHAPES)}")
    return len(traces)


def _write_lines(traces: Iterable[Trace], lines: Callable[[Trace], Iterator[dict[str, Any]]], path: str | Path) -> None:
    with jsonl.atomic_output(path) as stream:
        for trace in traces:
            for line in lines(trace):
                stream.write(json.dumps(line).encode() + b"\n")


# What a shape cannot hold

_CHANGE = {"step", "entity", "attribute", "before", "after"}
_HELD: dict[str, dict[str, set[str]]] = {
    "openpi": {
        "procedure": {"id", "steps", "topic", "source", "images", "extra"},
        "change": {*_CHANGE, "raw", "modality"},
        "trace": {"rejects", "annotations", "covered"},
    },
    "openpi-c": {"procedure": {"id", "steps"}, "change": _CHANGE, "trace": {"covered"}},
    "openpi-c-clustered": {"procedure": {"id"}, "change": {*_CHANGE, "cluster"}, "trace": {"covered"}},
    "openpi2": {
        "procedure": {"id", "goal", "steps", "topic", "images"},
        "change": {*_CHANGE, "alternatives", "votes", "saliency"},
        "trace": {"clusters", "entities", "salience"},
    },
}
_HELD["openpi-v1.1"] = {**_HELD["openpi"], "trace": {*_HELD["openpi"]["trace"], "similar"}}


def lost(records: Iterable[AnyRecord], shape: str) -> list[str]:
    """The fields that these records have and the shape cannot hold, such as "change.votes"."""
    if shape == "fluents":
        return []
    found: dict[str, None] = {}
    traces = []
    for record in records:
        if not isinstance(record, Trace | Procedure):
            found |= {f"{jsonl.kind_of(record)}.{name}": None for name in sorted(type(record).model_fields)}
            found.pop(f"{jsonl.kind_of(record)}.procedure")
        traces.append(to_trace(record))
    if shape not in _HELD:
        return list(found)
    held = _HELD[shape]
    for trace in traces:
        parts: list[tuple[str, Record]] = [
            ("procedure", trace.procedure),
            *(("change", change) for change in trace.changes),
        ]
        for kind, part in parts:
            given = part.model_fields_set - held[kind]
            found |= {f"{kind}.{name}": None for name in sorted(given) if _says_something(part, name)}
        for name in sorted(trace.model_fields_set - held["trace"] - {"procedure", "changes", "provenance"}):
            if _says_something(trace, name):
                found[f"trace.{name}"] = None
    if shape == "openpi-c-clustered" and any(c.cluster is None for trace in traces for c in trace.changes):
        found["changes without a cluster"] = None
    if shape == "openpi2" and any(len({r.rater for r in trace.salience}) > 1 for trace in traces):
        found["salience of all raters but the first"] = None
    # The goal follows from a wikiHow address, so the older shapes lose it only where it does not.
    if all(trace.procedure.goal == openpi.goal_of(trace.id) for trace in traces):
        found.pop("procedure.goal", None)
    return list(found)


def _says_something(record: Any, name: str) -> bool:
    return bool(getattr(record, name) != type(record).model_fields[name].get_default(call_default_factory=True))
