"""The process with the model: it tracks one job after the other, and ends with whoever started it.

Orders come as lines of JSON on standard input: `{"job": …}` to track one, `{"cancel": id}` to stop it. What happens
goes as lines of JSON to standard output. The model stays loaded between jobs.
"""

from __future__ import annotations

import _thread
import json
import os
import queue
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import BaseModel, ConfigDict

from fluents import jsonl
from fluents.errors import FluentsError, FluentsWarning, InputError
from fluents.records import Procedure, Trace
from fluents.trackers import Listener, Tracker, open_tracker, settings_of, track_into


class TrackerChoice(BaseModel):
    """A tracker as the server was told of it. It names where a key is, and never holds one."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["embedded", "endpoint", "replay"]
    model: str | None = None
    adapter: str | None = None
    base_url: str | None = None
    key_file: Path | None = None
    key_variable: str | None = None
    replay: Path | None = None
    pause: float = 0.0


class Order(BaseModel):
    """A job for the worker."""

    model_config = ConfigDict(extra="forbid")

    id: str
    choice: TrackerChoice
    options: dict[str, Any]
    """Of `open_tracker`."""
    procedure: str
    """A line of JSONL, as is `done`: the steps that are finished already."""
    done: str | None = None


class Worker:
    """Reads orders, tracks, and reports."""

    def __init__(self, orders: IO[str], reports: IO[str]) -> None:
        self._orders, self._reports = orders, reports
        self._waiting: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._current: str | None = None

    def run(self) -> None:
        """Work until the orders end, which ends the process."""
        threading.Thread(target=self._read_orders, daemon=True).start()
        while True:
            try:
                self._work(self._waiting.get())
            except KeyboardInterrupt:  # a cancellation that came as the job ended
                with self._lock:
                    current, self._current = self._current, None
                if current is not None:
                    self.report("cancelled", job=current)

    def report(self, event: str, **more: Any) -> None:
        """Tell the server. Threads take turns."""
        line = json.dumps({"event": event, **more})
        with self._writing:
            self._reports.write(line + "\n")
            self._reports.flush()

    def _read_orders(self) -> None:
        for line in self._orders:
            order = json.loads(line)
            if "cancel" in order:
                with self._lock:
                    if self._current == order["cancel"]:
                        _interrupt_main_thread()
            else:
                self._waiting.put(Order.model_validate(order["job"]))
        os._exit(0)  # the server has ended: nobody wants the rest

    def _work(self, order: Order) -> None:
        with self._lock:
            self._current = order.id
        try:
            trace = self._track(order)
            ended: dict[str, Any] = {"event": "done", "trace": jsonl.dumps(trace).decode()}
        except KeyboardInterrupt:
            ended = {"event": "cancelled"}
        except FluentsError as error:
            ended = {"event": "failed", "error": str(error)}
        except MemoryError:
            ended = {"event": "failed", "error": "the model needs more memory than the server allows"}
        except Exception as error:  # whatever it is, this job has failed and the next one may not
            ended = {"event": "failed", "error": f"{type(error).__name__}: {error}"[:500]}
        with self._lock:
            self._current = None
        self.report(**ended, job=order.id)

    def _track(self, order: Order) -> Trace:
        from fluents.canonicalisation import canonicalise
        from fluents.salience import rate_salience

        procedure, done = jsonl.loads(order.procedure), jsonl.loads(order.done) if order.done else None
        assert isinstance(procedure, Procedure)
        assert done is None or isinstance(done, Trace)
        with warnings.catch_warnings(), self._opened(order) as tracker:
            warnings.simplefilter("always", FluentsWarning)
            warnings.showwarning = lambda message, *_, **__: self.report("warning", job=order.id, message=str(message))
            if done is not None and settings_of(done.provenance) != settings_of(tracker.provenance):
                raise InputError(
                    "this job cannot continue, because the tracker has changed since the job was started",
                    fix="start a new job",
                )
            self.report("begin", job=order.id, provenance=tracker.provenance.model_dump_json(exclude_defaults=True))
            sink = _Reports(self, order.id, tracker, done)
            [trace] = track_into(sink, tracker, [procedure], sink)
            return rate_salience(canonicalise(trace), scope="global")

    @contextmanager
    def _opened(self, order: Order) -> Iterator[Tracker]:
        choice, options = order.choice, order.options
        if choice.kind == "replay":
            from fluents.trackers.replay import ReplayTracker

            assert choice.replay is not None
            yield ReplayTracker.read(choice.replay, choice.pause)
        elif choice.kind == "endpoint":
            from fluents.llm import open_model

            with (
                open_model(
                    choice.model, choice.base_url, key_file=choice.key_file, key_variable=choice.key_variable
                ) as model,
                open_tracker(model=model, **options) as tracker,
            ):
                yield tracker
        else:
            self._fetch(order)
            with open_tracker(model=choice.model, adapter=choice.adapter, **options) as tracker:
                yield tracker

    def _fetch(self, order: Order) -> None:
        """Before the tracker is opened, so that the download can be seen."""
        from fluents.weights import BASES, ensure

        if order.choice.model in BASES:
            told = 0.0

            def progress(done: int, total: int | None) -> None:
                nonlocal told
                if time.monotonic() - told > 0.5:
                    told = time.monotonic()
                    self.report("fetching", job=order.id, done=done, total=total or done)

            ensure(order.choice.model, progress)


def _interrupt_main_thread() -> None:
    """As Ctrl-C would, which also ends waiting."""
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)
    else:  # Windows
        _thread.interrupt_main()


class _Reports(Listener):
    """Where `track_into` keeps traces: with the server, step by step."""

    def __init__(self, worker: Worker, job: str, tracker: Tracker, done: Trace | None) -> None:
        self._worker, self._job, self._tracker, self._done = worker, job, tracker, done
        self._told = set() if done is None else set(done.covered_steps)
        self._before = len(self._told)
        self._began = time.monotonic()
        self._drafted = 0.0

    def kept(self, wanted: Procedure, /) -> Trace | None:  # noqa: ARG002 - there is one only
        return self._done

    def keep_steps(self, trace: Trace, /) -> None:
        """The steps that are new."""
        finished = getattr(self._tracker, "finished", lambda whole: whole)(trace)
        for step in trace.covered_steps:
            if step in self._told:
                continue
            self._told.add(step)
            changes, shown = trace.at(step), finished.at(step)
            self._worker.report(
                "step",
                job=self._job,
                step=step,
                changes=[change.model_dump(mode="json", exclude_defaults=True) for change in changes],
                shown=[place for place, change in enumerate(changes) if any(change is one for one in shown)],
                rejects=[
                    reject.model_dump(mode="json", exclude_defaults=True)
                    for reject in trace.rejects
                    if reject.step == step
                ],
                seconds_left=self._seconds_left(len(trace.procedure.steps), len(self._told)),
            )

    def add(self, trace: Trace, /) -> None:
        """Told as the result."""

    def on_progress(self, procedure: Procedure, steps: float) -> None:
        total = len(procedure.steps)
        left = self._seconds_left(total, steps)
        self._worker.report("progress", job=self._job, done=steps, total=total, seconds_left=left)

    def on_draft(self, line: str) -> None:
        if time.monotonic() - self._drafted > 0.2:  # a fast model would flood the page
            self._drafted = time.monotonic()
            self._worker.report("draft", job=self._job, line=line[:200])

    def _seconds_left(self, total: int, done: float) -> float | None:
        new = done - self._before
        return round((time.monotonic() - self._began) / new * (total - done), 1) if new > 0 else None


def _limit_memory(limit: int) -> None:
    """Of what the process writes to: weights that are mapped from a file do not count, nor addresses set aside.

    Where the system knows no such limit, there is none.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def main() -> None:
    """Take the streams for ourselves: libraries may print, and must not be taken for reports."""
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if len(sys.argv) > 1:
        _limit_memory(int(sys.argv[1]) << 20)
    worker = Worker(sys.stdin, reports)
    import fluents.canonicalisation
    import fluents.salience
    import fluents.trackers.transcript  # noqa: F401 - before the first job, which need not wait then

    worker.run()


if __name__ == "__main__":
    main()
