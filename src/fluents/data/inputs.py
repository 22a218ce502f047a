"""Procedures from whatever a user names: texts, web pages, JSON files, folders, datasets, standard input."""

from __future__ import annotations

import codecs
import io
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import cast

from fluents.errors import FluentsError, InputError
from fluents.jsonl import AnyRecord, open_input, output_path
from fluents.records import Procedure, Trace

SUFFIXES = (".txt", ".md", ".markdown", ".html", ".htm", ".json", ".jsonl")
"""The files that are read from a folder."""


def procedures(
    sources: Iterable[str | Path],
    *,
    goal: str | None = None,
    outputs: Iterable[str | Path | None] = (),
    skipped: list[FluentsError] | None = None,
) -> Iterator[Procedure]:
    """The procedures in files, folders and datasets, each with an id of its own; "-" is standard input.

    `outputs` are the files to be written: they are passed over inside a folder, and may not be named as sources.
    By default the first file that cannot be read raises its error. With a list as `skipped`, its error is appended
    to the list and reading goes on; an error is still raised if no procedure is found at all.

    >>> skipped = []
    >>> for procedure in procedures(["recipes/", "soup.md"], skipped=skipped):
    ...     print(procedure.goal)
    """
    written = {output_path(output) for output in outputs if output and str(output) != "-"}
    files = list(_files(map(str, sources), written, skipped))
    return _unique_ids(_all(files, goal, skipped))


def traces(sources: Iterable[str | Path]) -> Iterator[Trace]:
    """Likewise with the changes of those that have them, as traces."""
    from fluents.data.datasets import to_trace

    seen: Counter[str] = Counter()
    for file in _files(map(str, sources), (), None):
        for trace in map(to_trace, records(file)):
            seen[trace.id] += 1
            number = seen[trace.id]
            yield trace if number == 1 else trace.replace(procedure=trace.procedure.replace(id=f"{trace.id}-{number}"))


def _all(files: list[str], goal: str | None, skipped: list[FluentsError] | None) -> Iterator[Procedure]:
    found = False
    for file in files:
        try:
            for procedure in _procedures(file, goal):
                found = True
                yield procedure
        except FluentsError as error:
            if skipped is None:
                raise
            skipped.append(error)
    if skipped and not found:
        first = skipped[0]
        if len(skipped) == 1:
            raise first
        what = f"none of the {len(skipped)} inputs can be read. The first error: {first.what}"
        raise InputError(what, where=first.where, fix=first.fix)


def _procedures(file: str, goal: str | None) -> Iterator[Procedure]:
    if _is_records(file):
        from fluents.data.file_formats import read_traces  # texts need no dataset

        for trace in read_traces(file):
            yield trace.procedure if goal is None else trace.procedure.replace(goal=goal)
    else:
        from fluents.segmentation import read_text, segment  # datasets need no sentence splitter

        yield segment(read_text(file), goal=goal, source=None if file == "-" else file)


def records(source: str | Path) -> Iterator[AnyRecord]:
    """The records of a dataset or a file of records, as they are; a text or a web page as one procedure."""
    if _is_records(str(source)):
        from fluents.data.file_formats import read

        yield from read(source)
    else:
        yield from _procedures(str(source), None)


def _files(sources: Iterable[str], written: Collection[Path], skipped: list[FluentsError] | None) -> Iterator[str]:
    """The sources, a folder's files in its place, without hidden ones and those to be written."""
    for source in sources:
        if source == "-" or not _exists(source):
            yield source
        elif Path(source).is_dir():
            inside = [
                file for file in Path(source).iterdir() if file.suffix.lower() in SUFFIXES and file.name[0] != "."
            ]
            readable = sorted(str(file) for file in inside if file.resolve() not in written)
            if not readable:
                error = InputError(
                    "this folder contains no texts, web pages or JSON files",
                    where=source,
                    fix=f"give a folder with files whose names end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
                )
                if skipped is None:
                    raise error
                skipped.append(error)
            yield from readable
        elif Path(source).resolve() in written:
            raise InputError("the output would overwrite this input", where=source, fix="choose another output file")
        else:
            yield source


def _exists(source: str) -> bool:
    try:
        return Path(source).exists()
    except (OSError, ValueError):  # too long, or with a NUL byte: told when it is opened
        return False


def _is_records(file: str) -> bool:
    """Whether it is a dataset or JSON, rather than a text."""
    if file == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", fix="give the name of a file")
        return looks_like_json(cast("io.BufferedReader", sys.stdin.buffer).peek(4096))
    if not _exists(file):
        from fluents.data.datasets import DATASETS, no_such_source

        if file.partition(":")[0] in DATASETS:
            return True
        if ":" in file:  # a dataset misspelt
            raise no_such_source(file)
    with open_input(file) as stream:
        return looks_like_json(stream.read(4096)) or Path(file).suffix.lower() in (".json", ".jsonl", ".csv", ".tsv")


def looks_like_json(head: bytes) -> bool:
    """Whether a file that begins so is JSON: an object with a key, or a list of objects. "[ ] Boil" is a checklist."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        head = head.decode("utf-16", errors="ignore").encode()
    return re.match(rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*[\"}]|\[\s*\{)", head) is not None


def _unique_ids(found: Iterable[Procedure]) -> Iterator[Procedure]:
    """Two texts may share a title; their ids must differ."""
    count: dict[str, int] = {}
    for procedure in found:
        count[procedure.id] = count.get(procedure.id, 0) + 1
        yield procedure if count[procedure.id] == 1 else procedure.replace(id=f"{procedure.id}-{count[procedure.id]}")
