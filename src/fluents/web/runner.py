"""Runs the jobs of a store one after the other, in a process of their own that may fail without harm."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from fluents import jsonl
from fluents.records import Provenance, Reject, StateChange
from fluents.web.archive import trace_of
from fluents.web.jobs import Jobs, StepResult, TakenJob
from fluents.web.resources import JobProgress
from fluents.web.store import NotFoundError
from fluents.web.worker import Order, TrackerChoice

CANCEL_PATIENCE = 1.0
"""Seconds in which a worker may stop by itself and keep its model; then it is killed."""
RETRY = 5.0
"""Seconds after which jobs are taken again when the store, for instance, reported an error."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerLimits:
    """What a worker may take."""

    seconds: float = 3600.0
    """For one job."""
    memory: int = 8192
    """MiB, or 0 for no limit."""
    idle: float = 600.0
    """Seconds without a job after which it ends, and frees the model's memory."""


class Broadcast:
    """Tells whoever listens to a job that something happened. Tellers are threads, listeners are coroutines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[str, set[Listening]] = {}
        self._closed = False

    def listen(self, job_id: str) -> Listening:
        """Listen from now on, in the loop that runs; call `stop` at the end."""
        one = Listening(job_id, self)
        with self._lock:
            self._listeners.setdefault(job_id, set()).add(one)
        if self._closed:
            one.tell(None)
        return one

    def stop(self, one: Listening) -> None:
        with self._lock:
            listening = self._listeners.get(one.job_id, set())
            listening.discard(one)
            if not listening:
                self._listeners.pop(one.job_id, None)

    def tell(self, job_id: str, progress: JobProgress | None = None) -> None:
        """Something happened that the store knows, or how far the job is."""
        with self._lock:
            listening = list(self._listeners.get(job_id, ()))
        for one in listening:
            one.tell(progress or "changed")

    def close(self) -> None:
        """The server ends: so do all streams."""
        self._closed = True
        with self._lock:
            everybody = [one for listening in self._listeners.values() for one in listening]
        for one in everybody:
            one.tell(None)


class Listening:
    """One who listens. Whoever is slow misses progress, never an event: those are read from the store."""

    def __init__(self, job_id: str, broadcast: Broadcast) -> None:
        self.job_id = job_id
        self._broadcast = broadcast
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Queue[JobProgress | str | None] = asyncio.Queue(maxsize=8)

    def tell(self, news: JobProgress | str | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._put, news)

    def _put(self, news: JobProgress | str | None) -> None:
        if self._news.full():
            self._news.get_nowait()
            news = None if news is None else "changed"
        self._news.put_nowait(news)

    async def wait(self, seconds: float) -> JobProgress | str | None:
        """Progress, or "changed"; also "changed" when nothing happened for so long; None at the end of the server."""
        try:
            return await asyncio.wait_for(self._news.get(), seconds)
        except TimeoutError:
            return "changed"

    def stop(self) -> None:
        self._broadcast.stop(self)


class _Process:
    """A worker process, and a thread that reads what it reports."""

    def __init__(self, memory: int) -> None:
        command = [sys.executable, "-m", "fluents.web.worker", *([str(memory)] if memory else [])]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", start_new_session=True
        )
        self.pid = self._process.pid
        self.reports: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(OSError, ValueError):
            for line in self._process.stdout:
                self.reports.put(json.loads(line))
        self.reports.put(None)

    def send(self, order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended, as the reports will tell
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()

    def end(self) -> str:
        """End it if it has not ended; returns how it ended, for people."""
        self._process.kill()
        code = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"

    def is_alive(self) -> bool:
        return self._process.poll() is None


class JobRunner:
    """One thread that takes the jobs in turn. `choices` are the trackers that jobs may name."""

    def __init__(
        self, jobs: Jobs, broadcast: Broadcast, choices: Mapping[str, TrackerChoice], limits: WorkerLimits
    ) -> None:
        self._jobs, self._broadcast, self._choices, self._limits = jobs, broadcast, choices, limits
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._process: _Process | None = None
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._current: str | None = None
        self._ended, self._cancelled = threading.Event(), threading.Event()
        self._unkept: str | None = None
        self._trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Jobs that an earlier server left unfinished go on."""
        self._jobs.recover()
        self._thread.start()

    def close(self) -> None:
        """End the worker. The job that runs goes on when the store is served again."""
        self._ending.set()
        self.wake()
        self._thread.join()

    @property
    def trouble(self) -> str | None:
        """The kind of error that keeps jobs from running; None while they run or wait for their turn."""
        if self._trouble is None and not self._thread.is_alive():
            return "the thread that runs jobs has ended"
        return self._trouble

    @property
    def worker_pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.is_alive() else None

    def wake(self) -> None:
        """There is a new job."""
        self._news.put("job")

    def cancel(self, job_id: str, patience: float = 2.0) -> None:
        """Take a job out of the queue, or stop it; returns when it has stopped, or after some seconds."""
        if self._jobs.cancel_queued(job_id):
            self._broadcast.tell(job_id)
            return
        with self._lock:
            if self._current != job_id:
                return
            self._cancelled.set()
            ended = self._ended
        ended.wait(patience)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._take_turns()
            except Exception as error:  # as when the database is restarted: later jobs must not wait for a new server
                if self._trouble is None:  # else the log has it
                    _log.exception("jobs cannot run; the server tries again every %g seconds", RETRY)
                self._trouble = type(error).__name__  # its words may repeat what somebody sent
                self._end_process()
                self._ending.wait(RETRY)
        self._end_process()

    def _take_turns(self) -> None:
        """Run the jobs one after the other, until the server ends."""
        if self._trouble is not None:
            self._jobs.recover()  # the job whose end could not be kept
            if self._unkept is not None:
                self._keep_cancelled(self._unkept)
        self._running_process()  # at once: it takes seconds to import what it needs
        while not self._ending.is_set():
            if (job := self._next()) is None:
                self._rest()
                continue
            self._broadcast.tell(job.id)
            try:
                self._run_one(job)
            finally:
                with self._lock:
                    self._current = None
                self._ended.set()
                self._broadcast.tell(job.id)

    def _next(self) -> TakenJob | None:
        """The job whose turn it is. Who cancels it meanwhile waits, and then finds it here."""
        with self._lock:
            job = self._jobs.take()
            self._trouble = None
            if job is not None:
                self._current = job.id
                self._ended, self._cancelled = threading.Event(), threading.Event()
            return job

    def _run_one(self, job: TakenJob) -> None:
        try:
            self._track(job)
        except NotFoundError:  # its document was deleted
            self._end_process()
        except SQLAlchemyError as error:  # it may go on, unless it is what the store cannot keep
            self._end_process()
            self._interrupted(job, f"the store reported an error ({type(error).__name__})")
        except Exception as error:  # the next job may do better
            self._end_process()
            self._jobs.end(job.id, "failed", f"{type(error).__name__}: {error}"[:500])

    def _rest(self) -> None:
        """Wait for a job; end a worker that has nothing to do for long."""
        try:
            self._news.get(timeout=self._limits.idle if self._process is not None else None)
        except queue.Empty:
            self._end_process()

    def _track(self, job: TakenJob) -> None:
        if (choice := self._choices.get(job.tracker)) is None:
            self._jobs.end(job.id, "failed", f"this server has no tracker {job.tracker!r}")
            return
        process = self._running_process()
        order = Order(
            id=job.id,
            choice=choice,
            options=job.options,
            procedure=jsonl.dumps(job.procedure).decode(),
            done=None if job.done is None else jsonl.dumps(job.done).decode(),
        )
        process.send({"job": order.model_dump(mode="json")})
        self._follow(job, process)

    def _interrupted(self, job: TakenJob, reason: str) -> None:
        """The job goes back into the queue, unless somebody has cancelled it."""
        if self._cancelled.is_set():
            self._keep_cancelled(job.id)
        else:
            self._jobs.worker_ended(job.id, reason)

    def _keep_cancelled(self, job_id: str) -> None:
        self._unkept = job_id  # until the store has it
        self._jobs.end(job_id, "cancelled")
        self._broadcast.tell(job_id)
        self._unkept = None

    def _running_process(self) -> _Process:
        """The worker, started if there is none."""
        if self._process is None or not self._process.is_alive():
            self._end_process()
            self._process = _Process(self._limits.memory)
        return self._process

    def _follow(self, job: TakenJob, process: _Process) -> None:
        """What the worker reports of a job, until that ends, is cancelled or takes too long."""
        deadline = time.monotonic() + self._limits.seconds
        stop_at: float | None = None
        state = _Progress(total=len(job.procedure.steps), done=0 if job.done is None else len(job.done.covered_steps))
        self._broadcast.tell(job.id, state.told("starting"))
        while True:
            if self._ending.is_set():
                self._end_process()  # the job stays as it is, and goes on when the store is opened again
                return
            if self._cancelled.is_set() and stop_at is None:
                process.send({"cancel": job.id})
                stop_at = time.monotonic() + CANCEL_PATIENCE
            now = time.monotonic()
            if stop_at is not None and now > stop_at:
                self._end_process()
                self._jobs.end(job.id, "cancelled")
                return
            if now > deadline:
                self._end_process()
                self._jobs.end(job.id, "failed", f"the job took more than {self._limits.seconds:g} seconds")
                return
            try:
                report = process.reports.get(timeout=0.05)
            except queue.Empty:
                continue
            if report is None:
                self._interrupted(job, f"the process that ran this job ended unexpectedly ({self._end_process()})")
                return
            if report.get("job") == job.id and self._heed(job, report, state):
                return

    def _heed(self, job: TakenJob, report: dict[str, Any], state: _Progress) -> bool:
        """Act upon a report; True when the job has ended."""
        event = report["event"]
        if event == "step":
            result = StepResult(
                report["step"],
                [StateChange(**change) for change in report["changes"]],
                report["shown"],
                [Reject(**reject) for reject in report["rejects"]],
                report["seconds_left"],
            )
            self._jobs.add_step(job.id, result)
            state.done, state.seconds_left, state.draft = state.done + 1, report["seconds_left"], None
            self._broadcast.tell(job.id)
        elif event == "begin":
            self._jobs.begin(job.id, Provenance(**json.loads(report["provenance"])))
            self._broadcast.tell(job.id, state.told("tracking"))
        elif event == "warning":
            self._jobs.warn(job.id, report["message"])
            self._broadcast.tell(job.id)
        elif event == "fetching":
            fetched = JobProgress(phase="fetching", done=report["done"], total=report["total"], seconds_left=None)
            self._broadcast.tell(job.id, fetched)
        elif event == "progress":
            state.seconds_left = report["seconds_left"]
            self._broadcast.tell(job.id, state.told("tracking", report["done"]))
        elif event == "draft":
            state.draft = report["line"]
            self._broadcast.tell(job.id, state.told("tracking"))
        elif event == "done":
            self._jobs.finish(job.id, trace_of(report["trace"]))
            return True
        elif event in ("cancelled", "failed"):
            self._jobs.end(job.id, event, report.get("error"))
            return True
        return False

    def _end_process(self) -> str:
        process, self._process = self._process, None
        return "" if process is None else process.end()


@dataclass
class _Progress:
    """How far a job is, as far as nobody needs to keep it."""

    total: int
    done: int
    seconds_left: float | None = None
    draft: str | None = None

    def told(self, phase: Any, done: float | None = None) -> JobProgress:
        return JobProgress(
            phase=phase,
            done=self.done if done is None else done,
            total=self.total,
            seconds_left=self.seconds_left,
            draft=self.draft,
        )
