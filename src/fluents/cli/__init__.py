"""The command line: one thin function per command, its options plus one or two library calls."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import typer

from fluents.cli import (
    annotate,
    ask,
    batch,
    canonicalise,
    data,
    plan,
    report,
    salience,
    segment,
    serve_model,
    track,
    track_llm,
    track_neural,
    train,
    web,
    weights,
)
from fluents.cli import eval as eval_
from fluents.cli.terms import glossary, pointer
from fluents.errors import FluentsError, FluentsWarning
from fluents.version import __version__


class _App(typer.Typer):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return conventional(typer.main.get_command(self))(*arguments, **options)


HELP = """Track what changes at every step of a procedure, such as a recipe.

Example: `fluents track soup.md`

To learn more about a command, run `fluents COMMAND --help`.
"""

app = _App(
    name="fluents",
    help=HELP,
    epilog=glossary("Terms used in the help of all commands:"),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("segment")(segment.segment)
app.command("track")(track.track)
app.command("track-llm")(track_llm.track_llm)
app.command("track-neural")(track_neural.track_neural)
app.command("canonicalise")(canonicalise.canonicalise)
app.command("expand")(canonicalise.expand)
app.command("salience")(salience.salience)
app.command("ask")(ask.ask)
app.command("plan")(plan.plan)
app.command("pddl")(plan.pddl)
app.command("report")(report.report)
app.command("web")(web.web)
app.command("batch")(batch.batch)
app.command("query")(batch.query)
app.command("serve-model")(serve_model.serve_model)
app.add_typer(annotate.app, name="annotate")
app.add_typer(data.app, name="data")
app.add_typer(eval_.app, name="eval")
app.add_typer(train.app, name="train")
app.add_typer(weights.app, name="weights")

INTERRUPTED = 130
"""The status of a command that Ctrl-C ended."""


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True)) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line. An error that the user can fix ends with status 2 and no traceback."""
    warnings.showwarning = partial(_show_warning, warnings.showwarning)
    try:
        app()
    except FluentsError as error:
        print(f"error: {with_flags(str(error))}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer ends so on Ctrl-C, and says nothing
            print("interrupted", file=sys.stderr)
        raise
    except OSError as error:  # a full disk, a file that went away
        where = f"\n  where: {error.filename}" if error.filename else ""
        print(f"error: {error.strerror or error}{where}", file=sys.stderr)
        sys.exit(2)


def _show_warning(
    otherwise: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any, **more: Any
) -> None:
    """Print our own warnings without the line of code they come from."""
    if issubclass(category, FluentsWarning):
        print(f"warning: {with_flags(str(message))}", file=sys.stderr)
    else:
        otherwise(message, category, *where, **more)


def with_flags(message: str) -> str:
    """The message with parameters of library functions (`min_salience`) as the flags of this command."""
    root: Any = typer.main.get_command(app)
    command = root
    for word in sys.argv[1:]:
        command = getattr(command, "commands", {}).get(word, command)
    flags = _flags(command)
    if command.name == "track":  # at an endpoint it works like track-llm, which has more options
        more = _flags(root.commands["track-llm"]).items()
        flags = {name: f"{flag} of `fluents track-llm`" for name, flag in more} | flags
    return re.sub(r"`(\w+)`", lambda found: flags.get(found[1]) or found[0], message)


def _flags(command: Any) -> dict[str, str]:
    return {
        option.name: max(option.opts, key=len) if option.param_type_name == "option" else option.name.upper()
        for option in command.params
    }


# What typer shows, in the words of other tools


def conventional(command: Any, parent: Any = None) -> Any:
    """The command, with help that names values as most tools do (FILE, N, a|b), where typer shows Python's types."""
    context = typer.Context(command, parent=parent, **command.context_settings)
    for inner in getattr(command, "commands", {}).values():
        inner.format_help = partial(_format_help, inner, inner.format_help)
        conventional(inner, context)
    for parameter in command.get_params(context):  # --help is one of them
        parameter.handle_parse_result = partial(_read_value, parameter.handle_parse_result)
        if hasattr(parameter, "display_type"):
            _name_value(parameter, context)
    return command


_WRONG_VALUES = {
    **dict.fromkeys(("int_parsing", "int_from_float", "int_parsing_size"), "{input!r} is not a whole number"),
    **dict.fromkeys(("float_parsing", "finite_number"), "{input!r} is not a number"),
    "greater_than_equal": "{input} is less than {ge:g}",
    "less_than_equal": "{input} is more than {le:g}",
}
"""By pydantic's type of an error, which typer repeats in pydantic's words: what is wrong, in plain words."""


def _read_value(handle_parse_result: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return handle_parse_result(*arguments, **options)
    except typer.BadParameter as error:
        for one in getattr(error.__cause__, "errors", list)()[:1]:
            if told := _WRONG_VALUES.get(one["type"]):
                error.message = told.format(input=one["input"], **one.get("ctx", {}))
            else:
                error.message = one["msg"].removeprefix("Value error, ")
        raise


def _format_help(command: Any, format_help: Callable[[Any, Any], None], context: Any, formatter: Any) -> None:
    """Show the help of a command, and name the terms that it uses: found when they are shown, not at every start."""
    command.epilog = command.epilog or pointer(_help_of(command))
    for parameter in command.get_params(context):  # --help is one of them
        if parameter.param_type_name == "option":
            _join_columns(parameter)
    format_help(context, formatter)


def _join_columns(option: Any) -> None:
    """Show `-o, --output FILE` and `--json/--table` in one column: with the five columns of typer, half of a screen of
    80 columns stays empty. The range of a number is left out: the help says it where it is not plain."""
    long = [name for name in option.opts if name.startswith("--")]
    short = [name for name in option.opts if name not in long]
    value = "" if option.is_flag else option.metavar
    shown = ", ".join(filter(None, [*short, "/".join([*long, *option.secondary_opts])]))
    option.opts = [f"{shown} {value if len(value) <= WIDEST_VALUE else 'NAME'}".rstrip()]
    option.secondary_opts = []
    option.display_type_rich = lambda **_: None
    option._get_number_range_help_str = str


def _help_of(command: Any) -> str:
    """The text of a help screen, without its examples: the names in them are no terms."""
    shown = [one.help for one in command.params if not getattr(one, "hidden", False)]
    shown += [inner.get_short_help_str(limit=1000) for inner in getattr(command, "commands", {}).values()]
    told = re.sub(r"^Example: `[^`]*`", "", command.help or "", flags=re.MULTILINE)
    return "\n".join([told, *filter(None, shown)])


WIDEST_VALUE = 14
"""Characters. The help of an option says its values in words too; a longer list of them would push it aside."""
_VALUES = {"bool": "", "str": "TEXT", "int": "N", "float": "X", "path": "PATH", "file": "FILE", "directory": "FOLDER"}


def _name_value(parameter: Any, context: Any) -> None:
    if parameter.param_type_name == "argument":
        parameter.metavar = parameter.metavar or parameter.name.upper()
        parameter.display_type_rich = lambda **_: None
        usage = getattr(parameter, "_usage_display_name", str)()
        parameter._usage_display_name = lambda: usage.replace("{", "").replace("}", "")  # FILES..., not {FILES}...
    elif parameter.metavar is None:
        kind = parameter.display_type(context).strip("<>").removeprefix("list[").removesuffix("]")
        parameter.metavar = _VALUES.get(kind.removesuffix(" range"), kind)
    if allowed := getattr(parameter, "_get_number_range_help_str", str)():
        parameter._get_number_range_help_str = lambda: allowed.replace("x", parameter.metavar)
