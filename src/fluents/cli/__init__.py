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
from fluents.cli.command import conventional
from fluents.cli.terms import glossary
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
