"""Prompts as text files, one for each prompt and version: `texts/schemata-1.txt`.

A prompt that was used is never edited: a better wording gets the next number, so a trace's provenance stays true.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEXTS = Path(__file__).parent / "texts"


@cache
def _environment() -> Environment:
    # A value that is not given is an error, never an empty place in a question. Nothing is escaped: this is no HTML.
    return Environment(
        loader=FileSystemLoader(TEXTS),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )


def render(name: str, **values: Any) -> str:
    """The prompt of this name, such as "schemata-1", filled in. Values are never read as templates themselves."""
    return _environment().get_template(f"{name}.txt").render(**values)
