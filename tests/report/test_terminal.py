"""Traces in the terminal: whole words in whatever room there is."""

from __future__ import annotations

import pytest
from rich.console import Console

from fluents.records import Procedure, StateChange, Trace
from fluents.report.terminal import procedure_view, trace_view

CHANGES = (
    ("a very large enamelled pot", "temperature", "as cold as the cellar", "hot enough to sizzle"),
    ("shelf", "fullness", "with one more pot on it than before", "with one pot fewer"),
)


def _trace(goal: str = "Make soup") -> Trace:
    changes = [
        StateChange(step=1, entity=entity, attribute=attribute, before=before, after=after)
        for entity, attribute, before, after in CHANGES
    ]
    return Trace(procedure=Procedure(id="soup", goal=goal, steps=("Heat the pot.",)), changes=tuple(changes))


def _lines(view: object, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(view)
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_word_is_broken_where_there_is_room_for_it(width: int) -> None:
    lines = _lines(trace_view(_trace()), width)
    shown = {word for line in lines for word in line.split()}
    assert {word for change in CHANGES for text in change for word in text.split()} <= shown
    assert max(map(len, lines)) <= width


def test_a_very_narrow_terminal_breaks_words_and_loses_none() -> None:
    lines = _lines(trace_view(_trace()), 30)
    assert max(map(len, lines)) <= 30
    told = sum(len(text.replace(" ", "")) for change in CHANGES for text in change)
    assert sum(len(line.replace(" ", "").replace("→", "")) for line in lines[3:]) >= told


def test_a_procedure_without_a_goal_is_named_once() -> None:
    assert _lines(procedure_view(_trace("").procedure), 80)[0].split() == ["soup"]


def test_confidences_are_shown_where_there_are_any_and_what_is_likely_wrong_is_dim() -> None:
    trace = _trace()
    sure, unsure = (c.replace(confidence=share) for c, share in zip(trace.changes, (0.871, 0.2), strict=True))
    lines = _lines(trace_view(trace.replace(changes=(sure, unsure))), 140)
    assert [word for line in lines for word in line.split() if word.startswith("0.")] == ["0.87", "0.20"]
    assert lines[-1] == "last column: confidence, 0 to 1"
    assert "confidence" not in "".join(_lines(trace_view(trace), 140)), "where there are none"
    console = Console(width=140, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(trace_view(trace.replace(changes=(sure, unsure))))
    first, second = (line for line in capture.get().splitlines() if "0." in line)
    assert "\x1b[31m" in first, "before is red"
    assert "\x1b[31m" not in second
