"""fluents segment"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, cast

import typer

from fluents.cli.output import emit
from fluents.errors import InputError
from fluents.jsonl import open_input
from fluents.records import Procedure
from fluents.report.terminal import procedure_view

SUFFIXES = (".txt", ".md", ".markdown", ".json", ".jsonl")
"""What of a folder is read."""


def segment(
    files: Annotated[list[str], typer.Argument(help="Texts, JSON files, folders, datasets; - is standard input.")],
    goal: Annotated[str | None, typer.Option(help="The goal, instead of the title found.")] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write JSONL to this file.")] = None,
    as_json: Annotated[
        bool | None, typer.Option("--json/--table", help="JSONL or a view for people; by default JSONL in a pipe.")
    ] = None,
) -> None:
    """Turn a text into a procedure: its goal and its steps.

    Understands plain paragraphs, numbered and bulleted lists, Markdown, wikiHow-like headings, and the JSON shapes
    of OpenPI, OpenPI-C, OpenPI2.0 and fluents.

    Example: `fluents segment soup.md --goal "Make soup" -o soup.jsonl`
    """
    emit(unique_ids(procedures(files, goal, output)), procedure_view, output, as_json)


def procedures(files: list[str], goal: str | None = None, *outputs: str | None) -> Iterator[Procedure]:
    """The procedures of files in any shape, text or JSON; a folder stands for those in it.

    What is to be written is not read: an output inside a folder is passed over, and no file is written over itself.
    """
    from fluents.data.file_formats import read_traces

    written = {Path(output).resolve() for output in outputs if output and output != "-"}
    for file in files:
        if file != "-" and Path(file).is_file() and Path(file).resolve() in written:
            raise InputError("this file is read, and would be written over", where=file, fix="name another output")
    for file in _inside_folders(files, written):
        if _is_json(file):
            for trace in read_traces(file):
                yield trace.procedure if goal is None else trace.procedure.replace(goal=goal)
        else:
            from fluents.segmentation import read_text  # datasets need no sentence splitter
            from fluents.segmentation import segment as segment_text

            yield segment_text(read_text(file), goal=goal, source=None if file == "-" else file)


def _inside_folders(names: list[str], written: set[Path]) -> list[str]:
    """The names, a folder's own files in its place, but for hidden ones and those that are to be written."""
    found: list[str] = []
    for name in names:
        if name == "-" or not Path(name).is_dir():
            found.append(name)
            continue
        texts = (file for file in Path(name).iterdir() if file.suffix.lower() in SUFFIXES and file.name[0] != ".")
        inside = sorted(str(file) for file in texts if file.resolve() not in written)
        if not inside:
            raise InputError("no text or JSON file in this folder", where=name, fix=f"looked for {' '.join(SUFFIXES)}")
        found += inside
    return found


def _is_json(file: str) -> bool:
    if file == "-":
        stdin = cast("io.BufferedReader", sys.stdin.buffer)
        return looks_like_json(stdin.peek(4096))
    from fluents.data.datasets import DATASETS

    if file.partition(":")[0] in DATASETS:
        return True
    with open_input(file) as stream:
        return looks_like_json(stream.read(4096)) or Path(file).suffix.lower() in (".json", ".jsonl")


def looks_like_json(head: bytes) -> bool:
    """Whether a file that begins so is JSON: an object with a key, or a list of objects; "[ ] Boil" is a checklist."""
    return re.match(rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*[\"}]|\[\s*\{)", head) is not None


def unique_ids(found: Iterator[Procedure]) -> Iterator[Procedure]:
    """Two texts may have one title; in one file their ids must differ."""
    count: dict[str, int] = {}
    for procedure in found:
        count[procedure.id] = count.get(procedure.id, 0) + 1
        yield procedure if count[procedure.id] == 1 else procedure.replace(id=f"{procedure.id}-{count[procedure.id]}")
