"""fluents segment"""

from __future__ import annotations

from typing import Annotated

import typer

from fluents.cli.command import emit, report_skipped
from fluents.errors import FluentsError
from fluents.report.terminal import procedure_view


def segment(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Texts, web pages (HTML files), JSON files, folders, or dataset splits such as openpi:dev. Use - for "
            "standard input."
        ),
    ],
    goal: Annotated[str | None, typer.Option(help="Goal of the procedure. Default: its title.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the procedures to FILE, as JSONL.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first file that cannot be read, instead of skipping it.")
    ] = False,
    as_json: Annotated[
        bool | None,
        typer.Option("--json/--table", help="Print JSONL or tables. Default: tables in a terminal, otherwise JSONL."),
    ] = None,
) -> None:
    """Turn texts into procedures: find the goal and the steps of each text.

    Reads plain text, Markdown, web pages, and the JSON files of OpenPI, OpenPI-C, OpenPI2.0 and fluents. A
    step is a list item, a line, a sentence, or a section with its own heading, depending on the text.

    Example: `fluents segment soup.md`

    Example: `fluents segment soup.md --goal "Make soup" -o soup.jsonl`
    """
    from fluents.data.inputs import procedures

    skipped: list[FluentsError] = []
    found = procedures(files, goal=goal, outputs=[output], skipped=None if strict else skipped)
    emit(found, procedure_view, output, as_json)
    report_skipped(skipped)
