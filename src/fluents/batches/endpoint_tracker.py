"""Procedures that are asked about side by side, with one limit on the requests of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from threading import BoundedSemaphore, Lock
from weakref import WeakValueDictionary

from fluents.llm import Question
from fluents.llm.question import Answerer
from fluents.records import Procedure, Provenance, Trace
from fluents.trackers import Listener, Tracker
from fluents.trackers.concurrent import side_by_side
from fluents.trackers.llm.tracker import LlmTracker

MAX_THREADS = 512
"""Threads that ask or wait for their turn; a process may not have any number of them. Each procedure has one more, that
waits for its answers."""


class LimitedAnswerer:
    """Asks somebody else, at most so many questions at a time, and none twice at a time. Threads share it."""

    def __init__(self, answerer: Answerer, most: int) -> None:
        self._answerer, self._free = answerer, BoundedSemaphore(most)
        self._lock = Lock()
        self._underway: WeakValueDictionary[tuple[str, str, int], Lock] = WeakValueDictionary()

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        with self._lock:
            same = self._underway.setdefault((question.system, question.prompt, question.seed), Lock())
        # Who asks the same waits for the first answer, and then has it from the cache, where it costs nothing.
        with same, self._free:
            return self._answerer.ask(question, samples)


class EndpointTracker(Tracker):
    """What an LlmTracker does, for many procedures: a single one has too few questions at a time to keep a server busy,
    about as many as steps, as each round of them depends on the answers of the last."""

    def __init__(self, tracker: Tracker) -> None:
        assert isinstance(tracker, LlmTracker)
        self._tracker, self._most = tracker, tracker.model.workers
        self._answerer = LimitedAnswerer(tracker.model.answerer, self._most)

    @property
    def provenance(self) -> Provenance:
        return self._tracker.provenance

    def track(self, procedure: Procedure, listener: Listener | None = None, done: Trace | None = None) -> Trace:
        return self._asking(1).track(procedure, listener, done)

    def track_many(
        self, procedures: Iterable[Procedure], listener: Listener | None = None, done: Mapping[str, Trace] | None = None
    ) -> Iterator[Trace]:
        wanted, before = list(procedures), done or {}
        # More than there are requests: a procedure that is done keeps its place until those before it are done.
        count = min(2 * self._most, len(wanted), MAX_THREADS)
        asking = self._asking(count)
        return side_by_side(
            lambda procedure, listening: asking.track(procedure, listening, before.get(procedure.id)),
            wanted,
            count,
            listener,
        )

    def steps_of(self, procedure: Procedure) -> tuple[int, ...]:
        return self._tracker.steps_of(procedure)

    def _asking(self, count: int) -> LlmTracker:
        """The tracker for each of so many procedures."""
        workers = max(min(self._most, MAX_THREADS // max(count, 1)), 1)
        asking = copy(self._tracker)  # with its examples and given pairs
        asking.model = replace(self._tracker.model, answerer=self._answerer, workers=workers)
        return asking
