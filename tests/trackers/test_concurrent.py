"""Several procedures underway: in order, no more than wanted, errors and reports passed on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from fluents.errors import InputError
from fluents.records import Procedure, Trace
from fluents.trackers import Listener
from fluents.trackers.concurrent import side_by_side


class Meeting:
    """Ends a procedure only when so many are underway together."""

    def __init__(self, together: int) -> None:
        self._barrier = threading.Barrier(together, timeout=60)

    def __call__(self, procedure: Procedure, listener: Listener) -> Trace:
        self._barrier.wait()
        if procedure.id == "bad":
            raise InputError("bad procedure")
        listener.on_start(procedure, 0)
        listener.on_progress(procedure, 0.5)
        listener.on_step(Trace(procedure=procedure))
        return Trace(procedure=procedure)


class Heard(Listener):
    def __init__(self) -> None:
        self.told: list[tuple[str, str, int]] = []

    def on_start(self, procedure: Procedure, done: int = 0) -> None:  # noqa: ARG002
        self.told.append(("start", procedure.id, threading.get_ident()))

    def on_progress(self, procedure: Procedure, steps: float) -> None:  # noqa: ARG002
        self.told.append(("progress", procedure.id, threading.get_ident()))

    def on_step(self, trace: Trace) -> None:
        self.told.append(("step", trace.id, threading.get_ident()))


def procedures(count: int, begun: list[int]) -> Iterator[Procedure]:
    for number in range(count):
        begun.append(number)
        yield Procedure(id=f"p{number}", steps=("Stir.",))


def test_they_run_together_come_in_order_and_are_read_as_needed() -> None:
    begun: list[int] = []
    traces = side_by_side(Meeting(3), procedures(6, begun), 3)
    first = next(traces)
    assert len(begun) == 3, "none is read before its turn"
    assert [first.id, *(trace.id for trace in traces)] == [f"p{number}" for number in range(6)]


def test_everything_a_procedure_reports_is_heard_before_its_trace_comes_in_the_callers_thread() -> None:
    """Also where the thread ends before anybody looks."""
    heard = Heard()
    for trace in side_by_side(Meeting(1), procedures(20, []), 4, heard):
        mine = [what for what, name, _ in heard.told if name == trace.id]
        assert mine == ["start", "progress", "step"]
    assert {thread for _, _, thread in heard.told} == {threading.get_ident()}


def test_an_error_reaches_whoever_waits() -> None:
    wanted = [Procedure(id=name, steps=("Stir.",)) for name in ("good", "bad")]
    traces = side_by_side(Meeting(2), wanted, 2)
    assert next(traces).id == "good"
    with pytest.raises(InputError, match="bad procedure"):
        next(traces)
