"""The published files as decoded JSON: line by line, or as one document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fluents.data.catalogue import find, local_path
from fluents.jsonl import parse_json, read_lines


def lines(dataset: str, path: str) -> Iterator[tuple[str, Any]]:
    """("file:line", value) of a JSONL file."""
    for where, line in read_lines(local_path(find(dataset, path))):
        yield where, parse_json(line, where)


def document(dataset: str, path: str) -> tuple[Any, str]:
    """A file that is one JSON document, and its path for messages."""
    local = local_path(find(dataset, path))
    return parse_json(local.read_bytes(), str(local)), str(local)
