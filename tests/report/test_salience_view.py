"""Salience in the terminal: what matters most comes first, and an unread rating is no number."""

from __future__ import annotations

from rich.console import Console

from fluents.records import Procedure, Salience, Trace
from fluents.report.terminal import MOST_STEPS, salience_view


def shown(*ratings: Salience, rater: str = "me") -> list[list[str]]:
    trace = Trace(procedure=Procedure(id="tea", goal="Make tea", steps=("Boil.",) * 20), salience=ratings)
    console = Console(width=200)
    with console.capture() as capture:
        console.print(salience_view(trace, rater))
    return [line.split() for line in capture.get().splitlines()]


def rating(entity: str, value: float | None, step: int | None = None, rater: str = "me") -> Salience:
    return Salience(entity=entity, rater=rater, step=step, value=value)


def test_the_highest_rated_comes_first_and_others_raters_are_left_out() -> None:
    lines = shown(rating("cup", 2), rating("moon", None), rating("tea", 4.5), rating("cup", 5, rater="A1"))
    assert lines == [["Make", "tea"], ["entity", "goal"], ["tea", "4.5"], ["cup", "2.0"], ["moon", "–"]]
    assert shown(rating("cup", 2))[2] == ["cup", "2"], "a scale of whole numbers stays one"


def test_steps_have_their_columns_as_far_as_there_is_room() -> None:
    heading = shown(*(rating("cup", 1, step) for step in range(1, 21)))[1]
    assert heading == ["entity", *(word for step in range(1, MOST_STEPS + 1) for word in ("step", str(step)))]


def test_nothing_rated_is_told() -> None:
    assert shown()[1] == ["nothing", "to", "rate"]
