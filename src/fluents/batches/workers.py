"""Workers that take shards, and the pool that sees to it that every shard is done, whatever dies.

The pool knows workers only as `ShardWorker`: processes on this machine here, Ray's actors in `ray_workers.py`.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from fluents.batches.stages import BatchSettings, ShardTask
from fluents.batches.store import ShardFile, ShardStore
from fluents.errors import FluentsError

Event: TypeAlias = Mapping[str, Any]
"""What a worker says: {"ready"}, {"beat": …}, {"done": …}, {"fatal": …} or {"lost": why}."""

WAIT_SECONDS = 0.25
START_SECONDS = 900.0
"""So long a run waits for a first worker: a cloud may have to start a machine."""
MAX_UNREADY = 3
"""So many workers in a row may die before they are ready; then the next would too."""
MAX_LOSSES = 10
"""So many workers may die over a shard without a row that was in progress; then something else is wrong."""


class WorkerError(FluentsError):
    """Workers cannot do their work."""


class ShardWorker(Protocol):
    """Somebody who does one shard at a time."""

    def begin(self, task: ShardTask) -> None: ...

    def events(self) -> list[Event]:
        """What it said since it was last asked; does not wait."""
        ...

    def end(self) -> None:
        """End it at once, whatever it does."""
        ...


class WorkerSource(Protocol):
    """Where workers come from."""

    def start(self, place: int) -> ShardWorker:
        """Start the worker of this place in the pool."""
        ...

    def wait(self, workers: Sequence[ShardWorker], seconds: float) -> None:
        """Wait until one of the workers says something, or so long."""
        ...


@dataclass(frozen=True)
class PoolLimits:
    """What workers may take."""

    workers: int
    timeout: float
    """Seconds without a sign of life after which a worker counts as hung."""
    memory: int | None
    """Bytes that a worker may hold."""


@dataclass
class _Seat:
    place: int
    worker: ShardWorker
    task: ShardTask | None = None
    is_ready: bool = False
    moved: float = field(default_factory=time.monotonic)
    steps: int = 0


OnShard: TypeAlias = Callable[[ShardFile], None]
OnSteps: TypeAlias = Callable[[int], None]


class WorkerPool:
    """Hands shards to workers, one each, and to another one where a worker is lost.

    A worker is lost when its process or its machine dies, when it hangs, or when it takes more memory than it may. One
    loss may be nobody's fault. Where it happens over the same shard again, its rows are done one by one; then the row
    that was underway is given up, becomes a failure, and the others go on.
    """

    def __init__(self, source: WorkerSource, limits: PoolLimits, store: ShardStore) -> None:
        self._source, self._limits, self._store = source, limits, store
        self._idle_since = time.monotonic()
        self._first_ready: float | None = None
        self._losses: Counter[str] = Counter()
        self._again: deque[ShardTask] = deque()
        self._unready = 0
        self._steps = 0
        self.working = 0.0
        """Seconds from the moment when the first worker was ready to the end."""
        self.lost: list[str] = []
        """Why workers were lost."""

    def run(self, tasks: Iterator[ShardTask], on_shard: OnShard, on_steps: OnSteps) -> None:
        """Do all tasks; no more of them are read than workers can begin."""
        seats: list[_Seat] = []
        try:
            waiting = next(tasks, None)
            while waiting or self._again or any(seat.task for seat in seats):
                if waiting or self._again:
                    taken = {seat.place for seat in seats}
                    free = [place for place in range(self._limits.workers) if place not in taken]
                    seats += [_Seat(place, self._source.start(place)) for place in free]
                for seat in seats:
                    # Not before it is ready: on a cluster it may have to wait for a machine that never comes.
                    if seat.is_ready and seat.task is None and (self._again or waiting):
                        if self._again:
                            seat.task = self._again.popleft()
                        else:
                            seat.task, waiting = waiting, next(tasks, None)
                        assert seat.task is not None
                        seat.moved, seat.steps = time.monotonic(), 0
                        seat.worker.begin(seat.task)
                self._source.wait([seat.worker for seat in seats], WAIT_SECONDS)
                for seat in list(seats):
                    if not self._heard(seat, on_shard):
                        seats.remove(seat)
                self._check_begun(seats)
                on_steps(self._steps + sum(seat.steps for seat in seats))
        finally:
            self.working = time.monotonic() - (self._first_ready or time.monotonic())
            for seat in seats:
                seat.worker.end()

    def _check_begun(self, seats: Sequence[_Seat]) -> None:
        if any(seat.is_ready for seat in seats) or not seats:
            self._idle_since = time.monotonic()
        elif time.monotonic() - self._idle_since > START_SECONDS:
            raise WorkerError(
                f"no worker could start within {START_SECONDS:g} seconds",
                fix="check that there is enough free memory (a lower `at_once` needs less), and one GPU for each GPU "
                "worker (`gpu_workers`). If you use Ray, run `ray status` to see whether the cluster has a free CPU",
            )

    def _heard(self, seat: _Seat, on_shard: OnShard) -> bool:
        """Take in what a worker said; whether it is still there."""
        for event in seat.worker.events():
            if "ready" in event:
                seat.is_ready, seat.moved, self._unready = True, time.monotonic(), 0
                self._first_ready = self._first_ready or time.monotonic()
            elif "beat" in event:
                beat = event["beat"]
                seat.moved = max(seat.moved, time.monotonic() - beat.get("age", 0.0))
                if seat.task is not None and beat["file"] == seat.task.file:  # it may be about the one before
                    seat.steps = beat["steps"]
                if self._limits.memory and beat["memory"] > self._limits.memory:
                    used, most = (f"{size / 2**20:,.0f} MB" for size in (beat["memory"], self._limits.memory))
                    return self._lose(seat, f"used {used} of memory, but the limit is {most}", at_fault=True)
            elif "done" in event:
                done = ShardFile(**event["done"])
                self._steps += done.steps
                seat.task, seat.steps, seat.moved = None, 0, time.monotonic()
                on_shard(done)
            elif "fatal" in event:
                fatal = event["fatal"]
                raise WorkerError(fatal["what"], where=fatal["where"], fix=fatal["fix"])
            elif "lost" in event:
                return self._lose(seat, event["lost"], at_fault=False)
        if seat.task is not None and seat.is_ready and time.monotonic() - seat.moved > self._limits.timeout:
            return self._lose(seat, f"hung: it made no progress for {self._limits.timeout:g} seconds", at_fault=True)
        return True

    def _lose(self, seat: _Seat, why: str, *, at_fault: bool) -> bool:
        seat.worker.end()
        self.lost.append(why)
        if not seat.is_ready:
            self._unready += 1
            if self._unready >= MAX_UNREADY:
                raise WorkerError(
                    f"{self._unready} workers in a row failed to start. The last worker {why}",
                    fix="if workers are killed, there may be too little memory: lower `workers` or `at_once`; if they "
                    "use more memory than `memory` allows, raise `memory`",
                )
        if seat.task is not None:
            self._again.append(self._learnt(seat.task, why, at_fault))
        return False

    def _learnt(self, task: ShardTask, why: str, at_fault: bool) -> ShardTask:
        self._losses[task.file] += 1
        if self._losses[task.file] - len(task.given_up) > MAX_LOSSES:
            raise WorkerError(
                f"more than {MAX_LOSSES} workers died or hung on the same shard. The last worker {why}",
                where=task.file,
                fix="if workers are killed, there may be too little memory: lower `workers` or `at_once`; if they "
                "use more memory than `memory` allows, raise `memory`; if they hang, raise `timeout`",
            )
        row = self._store.read_row(task.file) if task.alone else None
        if row is not None:
            return replace(task, given_up={**task.given_up, row: f"the worker {why}"})
        return replace(task, alone=at_fault or self._losses[task.file] > 1)


# Processes on this machine


class LocalProcess:
    """A worker in a process of its own, which ends with this one."""

    def __init__(self, store: ShardStore, order: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._store = store
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fluents.batches.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._noise,
            env={**os.environ, **environment},
            start_new_session=True,  # Ctrl-C is for us: we end them
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self.said = self._process.stdout
        os.set_blocking(self.said.fileno(), False)
        self._heard = b""
        self._send(order)

    def begin(self, task: ShardTask) -> None:
        self._send(task.as_dict())

    def _send(self, value: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died: told when it is listened to
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()

    def events(self) -> list[Event]:
        ended = False
        with suppress(BlockingIOError):
            while True:
                part = os.read(self.said.fileno(), 2**16)
                if not part:
                    ended = True
                    break
                self._heard += part
        *lines, self._heard = self._heard.split(b"\n")
        found: list[Event] = [json.loads(line) for line in lines]
        if ended and not any("fatal" in event for event in found):
            found.append({"lost": self._last_words()})
        return found

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.returncode
        if status is not None and status < 0:
            name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
            return f"was killed ({name})"
        self._noise.seek(0)
        lines = self._noise.read().decode(errors="replace").strip().splitlines()
        return f"died: {lines[-1][:300]}" if lines else f"died with status {status}"

    def end(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._store.remove_unfinished(self.pid)
        for stream in (self._process.stdin, self.said, self._noise):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


class LocalProcesses:
    """Workers on this machine. They share its cores; each of the last `gpus` has a GPU of its own."""

    def __init__(self, folder: str, settings: BatchSettings, workers: int, gpus: int = 0) -> None:
        self._store, self._settings, self._workers, self._gpus = ShardStore(folder), settings, workers, gpus

    def start(self, place: int) -> LocalProcess:
        environment = {}
        if self._gpus:
            gpu = place - (self._workers - self._gpus)
            environment["CUDA_VISIBLE_DEVICES"] = str(gpu) if gpu >= 0 else ""
        order = {"folder": self._store.folder, "settings": self._settings.as_dict(), "cores": self._cores(place)}
        return LocalProcess(self._store, order, environment)

    def _cores(self, place: int) -> list[int]:
        """The share of a worker: an embedded model runs a thread on each core it may use, and two that share cores
        are slower than one."""
        if self._workers == 1 or not hasattr(os, "sched_getaffinity"):
            return []
        usable = sorted(os.sched_getaffinity(0))
        return usable[place :: self._workers] or [usable[place % len(usable)]]

    def wait(self, workers: Sequence[ShardWorker], seconds: float) -> None:
        with selectors.DefaultSelector() as selector:
            for worker in workers:
                assert isinstance(worker, LocalProcess)
                selector.register(worker.said, selectors.EVENT_READ)
            selector.select(seconds)
