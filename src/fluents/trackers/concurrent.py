"""Several procedures tracked at once, their traces in order: for trackers that mostly wait for answers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeAlias

from fluents.records import Procedure, Trace
from fluents.trackers import Listener

Events: TypeAlias = "SimpleQueue[Callable[[], None]]"


def side_by_side(
    track: Callable[[Procedure, Listener], Trace],
    procedures: Iterable[Procedure],
    count: int,
    listener: Listener | None = None,
) -> Iterator[Trace]:
    """The traces in the order of their procedures, `count` of which are underway; no more are read than can be begun.

    `track` runs in threads of its own; the listener is called in the thread that takes the traces.
    """
    waiting = iter(procedures)
    events: Events = SimpleQueue()
    underway: deque[_Underway] = deque()
    while True:
        while len(underway) < count and (procedure := next(waiting, None)) is not None:
            underway.append(_Underway(track, procedure, events, listener or Listener()))
        if not underway:
            return
        yield underway.popleft().trace()


class _Underway:
    """A procedure that is being tracked in a thread of its own."""

    def __init__(
        self, track: Callable[[Procedure, Listener], Trace], procedure: Procedure, events: Events, listener: Listener
    ) -> None:
        self._track, self._procedure, self._events = track, procedure, events
        self._ended: Trace | BaseException | None = None
        # A daemon: an interrupted program does not wait for it.
        threading.Thread(target=self._run, args=(_Relay(events, listener),), daemon=True).start()

    def trace(self) -> Trace:
        """Waits for it to end, and passes on what is reported meanwhile: at its end, all it has reported."""
        while self._ended is None:
            try:
                event = self._events.get(timeout=0.2)  # short: on some systems a signal does not end a long wait
            except Empty:
                continue
            event()
        if isinstance(self._ended, BaseException):
            raise self._ended
        return self._ended

    def _run(self, relay: Listener) -> None:
        try:
            ended: Trace | BaseException = self._track(self._procedure, relay)
        except BaseException as error:  # whatever it is, it belongs to the thread that waits
            ended = error
        self._events.put(partial(self._end, ended))

    def _end(self, ended: Trace | BaseException) -> None:
        self._ended = ended


class _Relay(Listener):
    """Hands what it learns over to another thread."""

    def __init__(self, events: Events, listener: Listener) -> None:
        self._events, self._listener = events, listener

    def on_start(self, procedure: Procedure, done: int = 0) -> None:
        self._events.put(partial(self._listener.on_start, procedure, done))

    def on_step(self, trace: Trace) -> None:
        self._events.put(partial(self._listener.on_step, trace))

    def on_progress(self, procedure: Procedure, steps: float) -> None:
        self._events.put(partial(self._listener.on_progress, procedure, steps))

    def on_draft(self, line: str) -> None:
        self._listener.on_draft(line)
