"""Write what the docs show of the program itself: the command line's help, the JSON Schema, the pictures.

`make docs` runs it; tests/test_docs.py fails when the reference or the schema is not what it would write.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from fluents import jsonl
from fluents.cli import app
from fluents.cli.plan import plan_view
from fluents.data.file_formats import read_traces
from fluents.planning.trace_plan import plan
from fluents.records import FORMAT_VERSION
from fluents.report.terminal import trace_view

DOCS = Path(__file__).parent


def cli_reference() -> str:
    """Every command with its help, arguments and options."""
    parts = ["# The command line\n\nThis page is generated from the program by `make docs`.\n"]
    for path, command in _commands(typer.main.get_command(app), ["fluents"]):
        parts.append(f"## {' '.join(path)}\n\n{inspect.cleandoc(command.help or '')}\n")
        rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
        if rows:
            parts.append("| argument or option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _commands(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    inner = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, child in inner.items():
        if child.hidden:  # an old name
            continue
        yield from _commands(child, [*path, name])


def _row(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    names = (
        [parameter.metavar or parameter.name.upper()] if is_argument else [*parameter.opts, *parameter.secondary_opts]
    )
    return f"| {', '.join(f'`{name}`' for name in names)} | {parameter.help or ''} |"


def schema() -> str:
    """The JSON Schema of a line, for other languages."""
    definitions: dict[str, Any] = {}
    kinds = []
    for kind, cls in jsonl.KINDS.items():
        whole = cls.model_json_schema(ref_template="#/$defs/{model}")
        definitions |= whole.pop("$defs", {})
        whole["properties"] = {"fluents": {"const": FORMAT_VERSION}, "kind": {"const": kind}} | whole["properties"]
        whole["required"] = ["fluents", "kind", *whole.get("required", [])]
        kinds.append(whole)
    whole_schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of a fluents file, format {FORMAT_VERSION}",
        "oneOf": kinds,
        "$defs": definitions,
    }
    return json.dumps(whole_schema, indent=2, ensure_ascii=False) + "\n"


def picture() -> str:
    """What `make demo` prints, as a picture."""
    console = _console()
    for trace in read_traces(DOCS.parent / "examples" / "tomato_soup.jsonl"):
        console.print(trace_view(trace))
    return console.export_svg(title="fluents track examples/tomato_soup.md")


def plan_picture() -> str:
    """What `fluents plan` prints, with side effects and without, and the plan as a trace."""
    console = _console()
    [trace] = read_traces(DOCS.parent / "examples" / "rainy_woods.jsonl")
    command = '$ fluents plan examples/rainy_woods.jsonl --goal "camper quenched"'
    for side_effects in (True, False):
        console.print(command + " --no-side-effects" * (not side_effects), style="green", markup=False)
        found = plan(trace, "camper quenched", side_effects=side_effects, planner="built-in")
        console.print(plan_view(found), "")
        if found.trace is not None:
            console.print("The plan as a trace (-o plan.jsonl writes it to a file):", style="dim")
            console.print(trace_view(found.trace), "")
    return console.export_svg(title="fluents plan")


def _console() -> Console:
    return Console(record=True, width=100, file=open("/dev/null", "w"), highlight=False)


if __name__ == "__main__":
    (DOCS / "cli.md").write_text(cli_reference(), encoding="utf-8")
    (DOCS / "schema.json").write_text(schema(), encoding="utf-8")
    (DOCS / "demo.svg").write_text(picture(), encoding="utf-8")
    (DOCS / "plan.svg").write_text(plan_picture(), encoding="utf-8")
