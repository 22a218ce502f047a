"""Several procedures tracked at once, their traces in order: for trackers that wait for others most of the time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator

from fluents.records import Procedure, Trace
from fluents.trackers import OnStep, Tracker


class Underway:
    """A procedure that is being tracked in a thread of its own."""

    def __init__(self, tracker: Tracker, procedure: Procedure) -> None:
        self.procedure = procedure
        self._tracker = tracker
        self._progress = (0, len(procedure.steps))
        self._ended: Trace | BaseException | None = None
        # A daemon: an interrupted program does not wait for it.
        self._thread = threading.Thread(target=self._track, daemon=True)
        self._thread.start()

    def trace(self, on_step: OnStep | None = None) -> Trace:
        """Waits for it to end, telling how far it is."""
        while self._thread.is_alive():  # in short waits: on some systems a signal does not end a long one
            self._thread.join(0.2)
            if on_step:
                on_step(*self._progress)
        if isinstance(self._ended, Trace):
            return self._ended
        raise self._ended or RuntimeError("the thread ended without a trace")

    def _track(self) -> None:
        try:
            self._ended = self._tracker.track(self.procedure, self._tell)
        except BaseException as error:  # whatever it is, it belongs to whoever waits
            self._ended = error

    def _tell(self, done: int, total: int) -> None:
        self._progress = done, total


def side_by_side(tracker: Tracker, procedures: Iterable[Procedure], count: int) -> Iterator[Underway]:
    """The procedures in their order, so many of them underway; no more are read than can be begun."""
    waiting = iter(procedures)
    underway: deque[Underway] = deque()
    while True:
        while len(underway) < count and (procedure := next(waiting, None)) is not None:
            underway.append(Underway(tracker, procedure))
        if not underway:
            return
        yield underway.popleft()
