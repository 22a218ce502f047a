"""The results of a project in the formats of the datasets, written bit by bit."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from fluents import jsonl
from fluents.data import openpi2
from fluents.data.file_formats import OPENPI_FILES, STEP_LINES
from fluents.records import Trace

ExportFormat: TypeAlias = Literal["fluents", "openpi", "openpi-c", "openpi2", "history"]
SUFFIXES: Mapping[ExportFormat, str] = {
    "fluents": ".jsonl",
    "openpi": ".openpi.zip",
    "openpi-c": ".openpi-c.jsonl",
    "openpi2": ".openpi2.json",
    "history": ".history.jsonl",
}
MEDIA_TYPES: Mapping[ExportFormat, str] = {
    "fluents": "application/x-ndjson",
    "openpi": "application/zip",
    "openpi-c": "application/x-ndjson",
    "openpi2": "application/json",
    "history": "application/x-ndjson",
}


def written(
    traces: Callable[[], Iterator[Trace]], format: Literal["fluents", "openpi", "openpi-c", "openpi2"]
) -> Iterator[bytes]:
    """Traces in a format; they are asked for again for each file of the format."""
    if format == "fluents":
        yield from (jsonl.dumps(trace) + b"\n" for trace in traces())
    elif format == "openpi":
        yield from _zipped(traces)
    elif format == "openpi-c":
        yield from _lines(traces(), STEP_LINES[format])
    else:
        yield from _document(traces())


def _lines(traces: Iterator[Trace], lines: Callable[[Trace], Iterator[dict[str, Any]]]) -> Iterator[bytes]:
    for trace in traces:
        for line in lines(trace):
            yield json.dumps(line).encode() + b"\n"


def _document(traces: Iterator[Trace]) -> Iterator[bytes]:
    """One JSON object, an entry for each trace."""
    before = b"{"
    for trace in traces:
        yield before + json.dumps(openpi2.document([trace])).encode()[1:-1]
        before = b",\n"
    yield (b"{}" if before == b"{" else b"}") + b"\n"


def _zipped(traces: Callable[[], Iterator[Trace]]) -> Iterator[bytes]:
    """The files of OpenPI in an archive."""
    buffer = _Buffer()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, lines in OPENPI_FILES.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as file:
                for line in _lines(traces(), lines):
                    file.write(line)
                    yield buffer.taken()
            yield buffer.taken()
    yield buffer.taken()


class _Buffer(io.RawIOBase):
    """Takes what is written, and hands it on; it cannot go back, so an archive is written from front to end."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        found = b"".join(self._parts)
        self._parts.clear()
        return found
