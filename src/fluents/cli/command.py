"""What commands share: options that belong together, and where they write: tables for people, JSONL for programs."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from fluents import jsonl
from fluents.errors import FluentsError, InputError
from fluents.jsonl import AnyRecord
from fluents.records import Trace
from fluents.report.terminal import plain
from fluents.text.names import counted

if TYPE_CHECKING:
    from fluents.resumable import ResumableOutput
    from fluents.salience.filter import Keep

Item = TypeVar("Item", bound=AnyRecord)

messages = Console(stderr=True, highlight=False)
"""For people, never for the next program in the pipe."""


AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def tell(text: str, style: str = "") -> None:
    """A line for people, whatever is in it."""
    messages.print(plain(text, style), soft_wrap=True)


def show(renderable: RenderableType) -> None:
    # A pipe has no width of its own, and 80 columns would fold every table.
    width = None if sys.stdout.isatty() else 120
    Console(highlight=False, width=width).print(renderable)


def show_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def emit(
    records: Iterable[Item], view: Callable[[Item], RenderableType], path: str | None, as_json: bool | None
) -> None:
    """Records to a file, else as JSONL to a pipe, else as tables to a person; `as_json` overrides the guess."""
    if path is not None:
        count = jsonl.write(records, path)
        if path != "-":
            tell(f"wrote {counted(count, 'record')} to {path}")
    elif as_json or (as_json is None and not sys.stdout.isatty()):
        for record in records:
            sys.stdout.buffer.write(jsonl.dumps(record) + b"\n")
            sys.stdout.buffer.flush()
    else:
        for record in records:
            show(view(record))
            show("")


def tell_skipped(error: FluentsError) -> None:
    """Say why an input was skipped."""
    from fluents.cli import with_flags  # which knows all commands

    tell(f"skipped: {with_flags(str(error))}")


def report_skipped(skipped: Sequence[FluentsError]) -> None:
    """Name the inputs that were skipped, and end with status 1 if there are any."""
    for error in skipped:
        tell_skipped(error)
    if skipped:
        tell(f"skipped {counted(len(skipped), 'input')}; to stop at the first bad input instead, add --strict")
        raise typer.Exit(1)


@dataclass(frozen=True)
class OutputOptions:
    """Where traces go. Each field is an option."""

    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the results to FILE, as JSONL.")
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run that wrote to the same --output.")
    ] = False
    as_json: Annotated[
        bool | None,
        typer.Option("--json/--table", help="Print JSONL or tables. Default: tables in a terminal, otherwise JSONL."),
    ] = None

    def __post_init__(self) -> None:
        if self.resume and self.output in (None, "-"):
            raise InputError("`resume` needs `output`", fix="give the output file of the interrupted run as `output`")


@dataclass(frozen=True)
class Salient:
    """What is shown of a trace. Each field is an option."""

    min_salience: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            min=0,
            max=5,
            help="Keep only changes of entities with a salience of at least X, from 0 to 5. Default: keep all.",
        ),
    ] = None
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Keep only changes of the N most salient entities in each procedure. Default: all.",
        ),
    ] = None

    @property
    def keep(self) -> Keep | None:
        """What to keep; None for everything."""
        if self.min_salience is None and self.top is None:
            return None
        from fluents.salience.filter import Keep

        return Keep(self.min_salience, self.top)

    def only(self, trace: Trace, *, report: bool = False) -> Trace:
        """The trace with its salient entities only; can report where nothing is left."""
        wanted = self.keep
        if wanted is None:
            return trace
        from fluents.salience.filter import keep_salient

        left = keep_salient(trace, wanted)
        if report and trace.changes and not left.changes:
            lost = counted(len(trace.changes), "change")
            tell(f"{trace.id}: no entity is salient enough; dropped {lost}")
        return left


@dataclass(frozen=True)
class ScoredSalient(Salient):
    """Likewise, for a score, where gold and predictions may have different raters."""

    min_salience: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            min=0,
            max=5,
            help="Score only changes of entities with a salience of at least X, from 0 to 5, in both gold and "
            "predictions. Default: score all.",
        ),
    ] = None
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Score only changes of the N entities with the highest salience in each procedure, in both gold and "
            "predictions. Default: score all.",
        ),
    ] = None
    salience_rater: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --min-salience or --top: use the salience ratings by NAME, a person or a program. For example, "
            "A1 is an annotator of OpenPI2.0. Required if a procedure has ratings by several raters. If a procedure in "
            "the predictions has no ratings by NAME, the built-in method of `fluents salience` rates its entities. If "
            "a procedure in the gold has no ratings by NAME, all its changes are scored.",
        ),
    ] = None

    @property
    def keep(self) -> Keep | None:
        wanted = super().keep
        if wanted is None and self.salience_rater is not None:
            raise InputError(
                "`salience_rater` has no effect without `min_salience` or `top`",
                fix="add `min_salience` or `top`, or leave out `salience_rater`",
            )
        return None if wanted is None else replace(wanted, rater=self.salience_rater)


TraceFile = Annotated[
    str,
    typer.Argument(
        help="Traces, as written by `fluents track`: a file, a dataset split such as openpi2:dev, or - for standard "
        "input."
    ),
]


def each_trace(
    file: str,
    work: Callable[[Trace], Trace],
    view: Callable[[Trace], RenderableType],
    to: OutputOptions,
    settings: Mapping[str, Any],
) -> None:
    """Do the work on each trace of a file. A run with other `settings` cannot be resumed."""
    if file == "-" and sys.stdin is not None and sys.stdin.isatty():
        tell("reading traces from standard input; press Ctrl-D to end", "dim")
    from fluents.data.file_formats import read_traces
    from fluents.resumable import is_regular

    traces = read_traces(file)
    if to.output is None or not is_regular(to.output):
        emit(map(work, traces), view, to.output, to.as_json)
        return
    with resumable_output(to.output, settings, resume=to.resume) as output:
        for trace in traces:
            output.add(output.kept(trace) or work(trace))
    tell(f"wrote {counted(output.count, 'trace')} to {to.output}")


@contextmanager
def resumable_output(path: str, settings: Mapping[str, Any], **options: Any) -> Iterator[ResumableOutput]:
    """A ResumableOutput. Where the run ends early, this says how to go on."""
    from fluents.resumable import ResumableOutput

    output = ResumableOutput(path, settings, **options)
    opened = False
    try:
        with output:
            opened = True
            yield output
    except BaseException:
        messages.quiet = False  # this belongs to the error
        if opened and output.count:
            tell(f"finished results are in {output.part}; run the command again with --resume to continue")
        raise


@contextmanager
def step_progress(what: str, steps: int) -> Iterator[Callable[[int, int], None]]:
    """A progress bar with the time left, as a callback that takes steps done and in all."""
    from fluents.report.terminal import TimeLeft

    with _progress_bar(what[:60], steps, MofNCompleteColumn(), TimeLeft()) as update:
        yield update


@contextmanager
def download_progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar, as a callback that takes bytes done and in all."""
    with _progress_bar(what, None, DownloadColumn(), TimeRemainingColumn()) as update:
        yield update


@contextmanager
def _progress_bar(
    what: str, total: int | None, *columns: ProgressColumn
) -> Iterator[Callable[[int, int | None], None]]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *columns)
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done, total: progress.update(task, completed=done, total=total)


# Options that belong together: a frozen dataclass in the code, spelled out one by one on the command line


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field in the place of each parameter that is a dataclass."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    options = {name: _options(group) for name, group in groups.items()}
    keyword = inspect.Parameter.KEYWORD_ONLY  # so that what has no default may come after what has one
    shown = [
        option
        for name, parameter in signature.parameters.items()
        for option in options.get(name, [parameter.replace(kind=keyword)])
    ]

    def run(**given: Any) -> None:
        choices = {
            name: group(**{option.name: given.pop(option.name) for option in options[name]})
            for name, group in groups.items()
        }
        command(**given, **choices)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    setattr(run, "__signature__", signature.replace(parameters=shown))  # noqa: B010 - mypy knows no such attribute
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def changed(choice: Any) -> list[str]:
    """The options of a group that were not left as they are, as the command line spells them."""
    return [
        "--" + field.name.replace("_", "-") for field in fields(choice) if getattr(choice, field.name) != field.default
    ]
