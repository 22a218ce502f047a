"""Texts and files as people give them, read as the command line reads them."""

from __future__ import annotations

import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TypeVar

from fluents.data.datasets import to_trace
from fluents.data.inputs import records
from fluents.errors import FluentsError, FluentsWarning, InputError
from fluents.records import Procedure, Trace
from fluents.segmentation import segment
from fluents.web.resources import MAX_NAME, MAX_STEP_LENGTH, MAX_STEPS

MAX_RECORDS = 1000
"""Of one file."""
SUFFIXES = (".txt", ".md", ".markdown", ".html", ".htm", ".json", ".jsonl", ".csv", ".tsv", ".parquet")

_Result = TypeVar("_Result")
_alone = threading.Lock()
"""Python keeps one list of warnings for all threads."""


@dataclass(frozen=True)
class ReadText:
    """A text as steps, and what its reader should know."""

    procedure: Procedure
    warnings: list[str]


@dataclass(frozen=True)
class ReadFile:
    """What a file holds: a text, or records."""

    name: str
    text: ReadText | None
    traces: list[Trace]


def read_given_text(text: str, goal: str | None = None, name: str | None = None) -> ReadText:
    """A text or the source of a web page. It is never taken for the name of a file."""
    source = name or "the text"
    procedure, told = _with_warnings(lambda: segment(text, goal=goal, source=source))
    _check_size(procedure, source)
    return ReadText(procedure.replace(source=name), told)


def read_upload(data: bytes, name: str) -> ReadFile:
    """A file of any kind that `fluents track` or `fl.load` reads."""
    name = _file_name(name)
    suffix = Path(name).suffix.lower()
    with tempfile.TemporaryDirectory(prefix="fluents-upload-") as folder:
        file = Path(folder) / f"upload{suffix if suffix in SUFFIXES else '.txt'}"
        file.write_bytes(data)
        try:
            found, told = _with_warnings(lambda: list(islice(records(file), MAX_RECORDS + 1)))
        except FluentsError as error:  # the file's name here is nobody's business
            error.where = None if error.where is None else error.where.replace(str(file), name)
            raise
    if len(found) > MAX_RECORDS:
        raise InputError(f"the file contains more than {MAX_RECORDS:,} records", where=name, fix="split the file")
    if not found:
        raise InputError("the file is empty", where=name, fix="upload a file with a text, procedures or traces")
    traces = []
    for record in found:
        trace = to_trace(record)
        _check_size(trace.procedure, f"{name}, {trace.id}")
        traces.append(trace)
    first = found[0]
    if isinstance(first, Procedure) and first.source == str(file):
        return ReadFile(name, ReadText(first.replace(source=name), told), [])
    return ReadFile(name, None, traces)


def _with_warnings(work: Callable[[], _Result]) -> tuple[_Result, list[str]]:
    with _alone, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = work()
    return found, [str(one.message) for one in caught if issubclass(one.category, FluentsWarning)]


def _check_size(procedure: Procedure, where: str) -> None:
    """What is kept must be within the limits of `StepsGiven`: else nobody could save it after a correction."""
    if len(procedure.steps) > MAX_STEPS:
        what = f"the text has {len(procedure.steps):,} steps, but at most {MAX_STEPS:,} are allowed"
        raise InputError(what, where=where, fix="split the text")
    for number, text in enumerate((procedure.goal, *procedure.steps)):
        if len(text) > MAX_STEP_LENGTH:
            name = f"step {number}" if number else "the goal"
            what = f"{name} has {len(text):,} characters, but at most {MAX_STEP_LENGTH:,} are allowed"
            raise InputError(
                what, where=where, fix=f"split {name} into several steps" if number else "shorten the goal"
            )


def _file_name(name: str) -> str:
    """Without folders, whichever way they are written."""
    last = PurePosixPath(PureWindowsPath(name).name).name
    return "".join(letter for letter in last if letter.isprintable())[:MAX_NAME] or "file"
