"""Where commands write: people get tables, pipes and files get JSONL."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fluents import jsonl
from fluents.errors import FluentsError
from fluents.jsonl import AnyRecord
from fluents.report.terminal import counted, plain

Item = TypeVar("Item", bound=AnyRecord)

messages = Console(stderr=True, highlight=False)
"""For people, never for the next program in the pipe."""


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
            messages.print(f"wrote {counted(count, 'record')} to {path}", markup=False, soft_wrap=True)
    elif as_json or (as_json is None and not sys.stdout.isatty()):
        for record in records:
            sys.stdout.buffer.write(jsonl.dumps(record) + b"\n")
            sys.stdout.buffer.flush()
    else:
        for record in records:
            show(view(record))
            show("")


def report_skipped(skipped: Sequence[FluentsError]) -> None:
    """Name the inputs that were skipped, and end with status 1 if there are any."""
    for error in skipped:
        messages.print(f"skipped: {error}", markup=False, soft_wrap=True)
    if skipped:
        messages.print(f"{counted(len(skipped), 'input')} skipped; --strict stops at the first", soft_wrap=True)
        raise typer.Exit(1)


class StepProgress:
    """A progress bar, told of steps done and in all; it can say beside them what is going on."""

    def __init__(self, progress: Progress, what: str, steps: int) -> None:
        self._progress, self._what = progress, what[:60]
        self._task = progress.add_task(self._what, total=steps)

    def __call__(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def say(self, text: str) -> None:
        self._progress.update(self._task, description=f"{self._what}  {plain(text[:60]).plain}")


@contextmanager
def step_progress(what: str, steps: int) -> Iterator[StepProgress]:
    """A progress bar with the time left, as a callback that takes steps done and in all."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        yield StepProgress(progress, what, steps)


@contextmanager
def download_progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar on standard error, as a callback that takes bytes done and in all."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        task = progress.add_task(what, total=None)

        def update(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        yield update
