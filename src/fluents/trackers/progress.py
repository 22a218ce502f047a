"""A progress bar on standard error: how many steps are tracked, what the model drafts, and how long it will take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from fluents.records import Procedure, Trace
from fluents.report.terminal import plain
from fluents.trackers import Listener

MAX_GOAL, MAX_DRAFT = 40, 60
"""Characters shown of a goal and of a draft."""


class TimeLeft(ProgressColumn):
    """The time left if the rest takes as long as what is done, from the first step on."""

    def render(self, task: Task) -> Text:
        if not task.completed or not task.total or task.elapsed is None:
            return Text("-:--:-- left", style="progress.remaining")
        left = task.elapsed / task.completed * (task.total - task.completed)
        return Text(f"{timedelta(seconds=round(left))} left", style="progress.remaining")


class ProgressBar(Listener):
    """Shows progress over all procedures; `steps` is how many steps there are to track, if that is known."""

    def __init__(self, steps: int | None = None, console: Console | None = None) -> None:
        console = console or Console(stderr=True, highlight=False)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[steps]}", markup=False),
            TimeLeft(),
        )
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._total = steps
        self._task = self._progress.add_task("", total=steps, steps="")
        self._goal = ""
        self._before: dict[str, int] = {}
        self._done: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Make room to print something."""
        self._progress.stop()
        yield
        self._progress.start()

    def on_start(self, procedure: Procedure, done: int = 0) -> None:
        self._goal = (procedure.goal or procedure.id)[:MAX_GOAL]
        self._before[procedure.id] = done
        self._show(self._goal)

    def on_step(self, trace: Trace) -> None:
        self._count(trace.id, len(trace.covered_steps))

    def on_progress(self, procedure: Procedure, steps: float) -> None:
        self._count(procedure.id, steps)

    def on_draft(self, line: str) -> None:
        self._show(f"{self._goal}  {line[:MAX_DRAFT]}")

    def _count(self, name: str, steps: float) -> None:
        self._done[name] = steps - self._before.get(name, 0)
        done = sum(self._done.values())
        total = "" if self._total is None else f"/{self._total}"
        self._progress.update(self._task, completed=done, steps=f"{int(done)}{total} steps")

    def _show(self, text: str) -> None:
        self._progress.update(self._task, description=plain(text).plain)
