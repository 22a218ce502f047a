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
from fluents.cli import app, conventional
from fluents.cli.plan import plan_view
from fluents.data.file_formats import read_traces
from fluents.planning.trace_plan import plan
from fluents.questions import ask
from fluents.records import FORMAT_VERSION
from fluents.report.terminal import answers_view, trace_view

DOCS = Path(__file__).parent


def cli_reference() -> str:
    """Every command with its help, arguments and options."""
    parts = ["# The command line\n\nThis page contains the help of every command. `make docs` generates it.\n"]
    root = conventional(typer.main.get_command(app))
    for path, command in _commands(root, ["fluents"]):
        parts.append(f"## {' '.join(path)}\n\n{inspect.cleandoc(command.help or '')}\n")
        rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
        if rows:
            parts.append("| argument or option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n")
        if command is root:
            parts.append(command.epilog)
    return "\n".join(parts)


def _commands(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:  # an old name
            yield from _commands(child, [*path, name])


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"| `{parameter.metavar}` | {parameter.help}{_default(parameter)} |"
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    has_value = parameter.metavar and "|" not in parameter.metavar  # the help names the choices
    value = f" {parameter.metavar}" if has_value else ""
    return f"| {names}{value} | {parameter.help}{_default(parameter)} |"


def _default(parameter: Any) -> str:
    """What the terminal shows behind the help of an option."""
    default = parameter.default
    if parameter.param_type_name == "option" and parameter.required:
        return " Required."
    if default is None or default is False or parameter.required or parameter.show_default is False:
        return ""
    if default is True:
        default = parameter.opts[0]
    elif default == "-":
        default = "standard input"
    shown = [f"{one:g}" if isinstance(one, float) else str(one) for one in _list(default)]
    return f" Default: {', '.join(shown)}."


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


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
            console.print("The plan as a trace, in plan.jsonl with -o plan.jsonl:", style="dim")
            console.print(trace_view(found.trace), "")
    return console.export_svg(title="fluents plan")


def questions_picture() -> str:
    """What `fluents ask` says of a statement after each step, below the steps and their changes."""
    console = _console()
    [trace] = read_traces(DOCS.parent / "examples" / "windy_room.jsonl")
    console.print("The steps and their changes, in examples/windy_room.jsonl:", style="dim")
    console.print(trace_view(trace), "")
    statement = "The room is dark."
    console.print(f'$ fluents ask examples/windy_room.jsonl "{statement}" --table', style="green", markup=False)
    console.print(answers_view(ask(trace, statement)))
    return console.export_svg(title="fluents ask")


def _console() -> Console:
    return Console(record=True, width=100, file=open("/dev/null", "w"), highlight=False)


if __name__ == "__main__":
    (DOCS / "cli.md").write_text(cli_reference(), encoding="utf-8")
    (DOCS / "schema.json").write_text(schema(), encoding="utf-8")
    (DOCS / "demo.svg").write_text(picture(), encoding="utf-8")
    (DOCS / "plan.svg").write_text(plan_picture(), encoding="utf-8")
    (DOCS / "questions.svg").write_text(questions_picture(), encoding="utf-8")
