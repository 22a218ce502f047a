"""Several procedures underway: in order, no more than wanted, errors and progress passed on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from fluents.errors import InputError
from fluents.records import Procedure, Trace
from fluents.trackers import OnStep
from fluents.trackers.concurrent import side_by_side


class Meeting:
    """A tracker that ends a procedure only when so many are underway together."""

    def __init__(self, together: int) -> None:
        self._barrier = threading.Barrier(together, timeout=10)

    def track(self, procedure: Procedure, on_step: OnStep | None = None) -> Trace:
        self._barrier.wait()
        if procedure.id == "bad":
            raise InputError("bad procedure")
        if on_step:
            on_step(7, 7)
        return Trace(procedure=procedure)


def procedures(count: int, begun: list[int]) -> Iterator[Procedure]:
    for number in range(count):
        begun.append(number)
        yield Procedure(id=f"p{number}", steps=("Stir.",))


def test_they_run_together_come_in_order_and_are_read_as_needed() -> None:
    begun: list[int] = []
    told: list[tuple[int, int]] = []
    underway = side_by_side(Meeting(3), procedures(6, begun), 3)
    first = next(underway)
    assert len(begun) == 3, "none is read before its turn"
    ids = [first.trace(lambda *now: told.append(now)).id, *(task.trace().id for task in underway)]
    assert ids == [f"p{number}" for number in range(6)]
    assert told[-1] == (7, 7)


def test_an_error_reaches_whoever_waits() -> None:
    wanted = [Procedure(id=name, steps=("Stir.",)) for name in ("good", "bad")]
    good, bad = side_by_side(Meeting(2), wanted, 2)
    assert good.trace().id == "good"
    with pytest.raises(InputError, match="bad procedure"):
        bad.trace()
