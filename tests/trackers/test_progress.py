"""The progress bar: steps over all procedures, and the time left from the first finished step on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Task, TaskID

from fluents.records import Procedure, Trace
from fluents.report.terminal import TimeLeft
from fluents.trackers import ProgressBar

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil.", "Pour.", "Wait.", "Drink."))


def task(completed: float, total: float | None, elapsed: float) -> Task:
    made = Task(TaskID(0), "", total, completed, _get_time=lambda: elapsed)
    made.start_time = 0.0
    return made


@pytest.mark.parametrize(
    ("completed", "total", "elapsed", "shown"),
    [
        (0, 4, 5, "-:--:-- left"),
        (1, 4, 10, "0:00:30 left"),
        (0.5, 4, 10, "0:01:10 left"),
        (4, 4, 10, "0:00:00 left"),
        (3, None, 10, "-:--:-- left"),
    ],
)
def test_the_time_left_is_estimated_from_what_is_done(
    completed: float, total: float | None, elapsed: float, shown: str
) -> None:
    assert TimeLeft().render(task(completed, total, elapsed)).plain == shown


def test_it_counts_the_steps_of_this_run_and_shows_drafts_without_control_characters() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with ProgressBar(5, console) as bar:
        bar.on_start(TEA, done=2)  # two of its steps were finished by an earlier run
        bar.on_draft("water | \x1b]0;owned\x07 | cold | hot")
        bar.on_progress(TEA, 2.5)
        bar.on_step(Trace(procedure=TEA, covered=(1, 2, 3)))
        with bar.hidden():
            console.print("a table")
        bar.on_step(Trace(procedure=TEA))
    shown = screen.getvalue()
    assert "Make tea" in shown
    assert "water | " in shown
    assert "2/5 steps" in shown, "of the four steps two were done before"
    assert "\x1b]0;owned" not in shown
    assert "a table" in shown


def test_nothing_is_printed_where_there_is_no_terminal() -> None:
    screen = io.StringIO()
    with ProgressBar(3, Console(file=screen)) as bar:
        bar.on_start(TEA)
        with bar.hidden():
            pass
        bar.on_step(Trace(procedure=TEA))
    assert screen.getvalue() == ""
