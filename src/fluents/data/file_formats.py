"""The formats of files of procedures and traces: recognised when a file is read, named when it is written."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from fluents import jsonl
from fluents.data import change_tables, crepe, openpi, openpi2, openpi2_outputs, openpi_c, openpi_write
from fluents.data.datasets import DATASETS, no_such_source, to_trace
from fluents.data.datasets import load as load_records
from fluents.errors import EmptyFileError, InputError, UnknownNameError
from fluents.jsonl import AnyRecord
from fluents.records import Procedure, Provenance, Record, Trace

MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
"""A JSON document is read whole. Larger data should be JSONL, which is read line by line."""

PARQUET = b"PAR1"
"""How a Parquet file begins."""

# Reading


def load(source: str | Path) -> list[Trace]:
    """The traces of a dataset's split, or of a file in any known format.

    >>> gold = fl.load("openpi:dev")
    >>> mine = fl.load("mine.jsonl")
    """
    return list(read_traces(source))


def save(traces: Trace | Iterable[Trace], path: str | Path) -> int:
    """Write traces to a JSONL file, atomically; returns how many.

    >>> fl.save([trace], "soup.jsonl")
    1
    """
    if Path(path).suffix.lower() in _OTHER_FORMATS:
        fix = "give a name that ends in .jsonl; for other formats, use `fluents data convert` or `trace.rows()`"
        raise InputError("`save` writes only JSONL files", where=path, fix=fix)
    return jsonl.write([traces] if isinstance(traces, Trace) else traces, path)


_OTHER_FORMATS = (".csv", ".tsv", ".html", ".parquet", ".xlsx")


def read(source: str | Path) -> Iterator[AnyRecord]:
    """The records of a dataset ("openpi:test") or of a file in any known format, which is opened once."""
    return iter(_records(source))


def read_traces(source: str | Path) -> Iterator[Trace]:
    """The records of a dataset or a file as traces."""
    return map(to_trace, _records(source))


def read_answers(source: str | Path) -> Iterable[Trace]:
    """The same for metrics that go step by step: an OpenPI file may repeat a step, and its last answers count.

    Only the whole file tells which are the last, so such a file comes as a list; all others stream.
    """
    records = _records(source, in_pieces=True)
    return [to_trace(record) for record in records] if isinstance(records, list) else map(to_trace, records)


def _records(source: str | Path, *, in_pieces: bool = False) -> Iterable[AnyRecord]:
    name = str(source)
    if name.partition(":")[0] in DATASETS and not Path(name).exists():
        return load_records(name)
    if name != "-" and not Path(name).exists():
        raise no_such_source(name)
    return _file_records(source, in_pieces=in_pieces)


def _file_records(path: str | Path, *, in_pieces: bool) -> Iterable[AnyRecord]:
    """The records of a file, whose format is told by how it begins."""
    name = "standard input" if str(path) == "-" else str(path)
    if str(path) != "-" and (Path(path) / "id_answers.jsonl").is_file():
        return openpi.traces(openpi.folder_rows(Path(path)), name)
    lines = jsonl.read_lines(path, binary=PARQUET)
    start = list(islice(lines, 1))  # no more: whoever writes into a pipe may wait for what we make of it
    if not start:
        raise EmptyFileError(
            "the file is empty",
            where=name,
            fix="give a file that contains procedures or traces",
        )
    where, first = start[0]
    if first.startswith(PARQUET):
        from fluents.data import parquet

        return parquet.read(io.BytesIO(first), name)
    if change_tables.is_header(first):
        return change_tables.traces(change_tables.csv_rows(chain(start, lines)), name)
    if not first.lstrip().startswith((b"{", b"[")):
        fix = f"to track a text, use `fluents track`; otherwise give JSON records, for example:\n    {_EXAMPLES}"
        raise InputError("unknown file format: neither JSON nor a table of changes", where=where, fix=fix)
    try:
        value = jsonl.parse_json(first, where)
    except InputError:
        if first.startswith((b'{"fluents"', b'{"id"')):  # a broken record; a document's brace stands alone
            raise
        value = None
    if jsonl.is_ours(value):
        return jsonl.read_records(chain(start, lines))
    start += islice(lines, 1)
    every_line = chain(start, lines)
    if isinstance(value, dict) and ("id" in value or len(start) > 1 or change_tables.is_row(value)):
        return _from_objects(
            ((where, jsonl.parse_json(line, where)) for where, line in every_line), value, name, in_pieces
        )
    return _from_document(every_line, name, in_pieces)


Lines: TypeAlias = Iterator[tuple[str, bytes]]
Objects: TypeAlias = Iterator[tuple[str, Any]]
"""("file:line", decoded JSON) one after the other."""


def _from_objects(values: Objects, first: Any, name: str, in_pieces: bool) -> Iterable[AnyRecord]:
    """The records in the lines of JSONL, or in the items of a list, told by the first."""
    if not isinstance(first, dict):
        raise _unknown(name)
    objects = ((where, _object(value, where)) for where, value in values)
    if jsonl.is_ours(first):
        return (jsonl.loads(json.dumps(value), where) for where, value in objects)
    if isinstance(first.get("id"), list):
        return openpi_c.traces((openpi_c.line(where, value) for where, value in objects), name)
    if "id" in first and {"answers", "answer", "question", "question_metadata"} & first.keys():
        return _openpi((openpi.row(where, value) for where, value in objects), name, in_pieces)
    if change_tables.is_row(first):
        return change_tables.traces(objects, name)
    if "steps" in first:
        return (procedure for where, value in objects for procedure in openpi2_outputs.api_procedures(value, where))
    raise _unknown(name)


def _openpi(rows: Iterator[openpi.OpenPIRow], name: str, in_pieces: bool) -> Iterable[Trace]:
    return list(openpi.traces(rows, name, in_pieces=True)) if in_pieces else openpi.traces(rows, name)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        fix = f"write one JSON object per line, for example:\n    {openpi.EXAMPLE}"
        raise InputError(f"expected a JSON object, found {jsonl.json_type(value)}", where=where, fix=fix)
    return value


def _from_document(lines: Lines, name: str, in_pieces: bool) -> Iterable[AnyRecord]:
    value = jsonl.parse_json(_whole(lines, name), name)
    if isinstance(value, dict) and isinstance(value.get("input"), list):
        value = value["input"]
    if isinstance(value, list) or (isinstance(value, dict) and ("id" in value or jsonl.is_ours(value))):
        items = value if isinstance(value, list) else [value]
        places = ((f"{name}, item {number}", item) for number, item in enumerate(items, start=1))
        return _from_objects(places, items[0] if items else None, name, in_pieces)
    if not isinstance(value, dict) or not value:
        raise _unknown(name)
    sample = next(iter(value.values()))
    if isinstance(sample, dict) and "states" in sample and "goal" in sample:
        return openpi2.traces(value, name, name, rater="file")
    if isinstance(sample, dict) and "states" in sample:
        return openpi2_outputs.api_traces(value, name)
    if isinstance(sample, dict) and "steps" in sample:
        return crepe.cases(value, name)
    if isinstance(sample, list) and openpi.STEP_MARK in next(iter(value)):  # {"procedure||1": [answers], …}
        return _openpi((openpi.row(name, {"id": key, "answers": item}) for key, item in value.items()), name, in_pieces)
    if isinstance(sample, list):
        return openpi2_outputs.traces(value, Provenance(dataset=name), name)
    raise _unknown(name)


def _whole(lines: Lines, name: str) -> bytes:
    parts, size = [], 0
    for _, line in lines:
        size += len(line)
        if size > MAX_DOCUMENT_BYTES:
            fix = "use JSONL, with one record per line"
            raise InputError(f"the JSON document is larger than {MAX_DOCUMENT_BYTES // 2**20} MB", where=name, fix=fix)
        parts.append(line)
    return b"".join(parts)


_EXAMPLES = f"{openpi.EXAMPLE}\n    or a table:\n    {change_tables.EXAMPLE}"


def _unknown(name: str) -> InputError:
    fix = f"write, for example:\n    {_EXAMPLES}\n    docs/formats.md describes all formats"
    return InputError("this file is JSON in an unknown format", where=name, fix=fix)


# Writing

OPENPI_FILES: dict[str, Callable[[Trace], Iterator[dict[str, Any]]]] = {
    f"{name}.jsonl": partial(openpi_write.lines, fields=fields) for name, fields in openpi_write.FILES.items()
}
"""The files of OpenPI: name → the lines of a trace."""
STEP_LINES: dict[str, Callable[[Trace], Iterator[dict[str, Any]]]] = {
    "openpi-v1.1": partial(openpi_write.lines, fields=openpi_write.COMBINED),
    "openpi-c": openpi_c.lines_of,
    "openpi-c-clustered": openpi_c.clustered_lines_of,
}
"""Formats with a line for each step: name → the lines of a trace."""
Format: TypeAlias = Literal[
    "fluents", "openpi", "openpi-v1.1", "openpi-c", "openpi-c-clustered", "openpi2", "csv", "parquet"
]
FORMATS: tuple[Format, ...] = get_args(Format)


def write(records: Iterable[AnyRecord], format: Format, path: str | Path) -> int:
    """Write records in a format; return how many. `openpi` is a folder of four files, the others are one file."""
    if format == "fluents":
        return jsonl.write(records, path)
    traces = [to_trace(record) for record in records]
    if format == "openpi":
        folder = Path(path)
        if str(path) == "-" or folder.is_file():
            raise InputError(
                "the openpi format consists of four files, so the output must be a folder",
                where=path,
                fix="give the name of a folder",
            )
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in OPENPI_FILES.items():
            _write_lines(traces, lines, folder / name)
    elif format in STEP_LINES:
        _write_lines(traces, STEP_LINES[format], path)
    elif format == "openpi2":
        jsonl.write_text(path, json.dumps(openpi2.document(traces), indent=4) + "\n")
    elif format == "csv":
        jsonl.write_text(path, change_tables.csv_text(traces))
    elif format == "parquet":
        from fluents.data import parquet

        with jsonl.atomic_output(path) as stream:
            parquet.write(traces, stream)
    else:
        raise UnknownNameError(f"unknown format {format!r}", fix=f"choose one of: {', '.join(FORMATS)}")
    return len(traces)


def _write_lines(traces: Iterable[Trace], lines: Callable[[Trace], Iterator[dict[str, Any]]], path: str | Path) -> None:
    with jsonl.atomic_output(path) as stream:
        for trace in traces:
            for line in lines(trace):
                stream.write(json.dumps(line).encode() + b"\n")


# What a format cannot hold

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
    "csv": {
        "procedure": {"id", "goal", "steps"},
        "change": {*_CHANGE, "confidence", "support", "mentioned"},
        "trace": set(),
    },
}
_HELD["openpi-v1.1"] = {**_HELD["openpi"], "trace": {*_HELD["openpi"]["trace"], "similar"}}


def lost(records: Iterable[AnyRecord], format: Format) -> list[str]:
    """The fields that these records have and the format cannot hold, such as "change.votes"."""
    if format == "fluents":
        return []
    found: dict[str, None] = {}
    traces = []
    for record in records:
        if not isinstance(record, Trace | Procedure):
            found |= {f"{jsonl.kind_of(record)}.{name}": None for name in sorted(type(record).model_fields)}
            found.pop(f"{jsonl.kind_of(record)}.procedure")
        traces.append(to_trace(record))
    if format not in _HELD:
        return list(found)
    held = _HELD[format]
    for trace in traces:
        parts: list[Record] = [trace.procedure, *trace.changes, trace]
        for kind, part in zip(["procedure", *["change"] * len(trace.changes), "trace"], parts, strict=True):
            given = part.model_fields_set - held[kind] - {"procedure", "changes", "provenance"}
            found |= {f"{kind}.{name}": None for name in sorted(given) if _says_something(part, name)}
    if format == "openpi-c-clustered" and any(c.cluster is None for trace in traces for c in trace.changes):
        found["changes without a cluster"] = None
    if format == "openpi2" and any(len({r.rater for r in trace.salience}) > 1 for trace in traces):
        found["salience of all raters but the first"] = None
    # The goal follows from a wikiHow address, so the older shapes lose it only where it does not.
    if all(trace.procedure.goal == openpi.goal_of(trace.id) for trace in traces):
        found.pop("procedure.goal", None)
    return list(found)


def _says_something(record: Any, name: str) -> bool:
    return bool(getattr(record, name) != type(record).model_fields[name].get_default(call_default_factory=True))
