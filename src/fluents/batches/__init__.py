"""Batch runs: many procedures through the stages, shard by shard, on this machine or on Ray.

A run can die at any moment and be started again: a shard whose file is there is done, all others are not.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias, Unpack

from fluents.batches.shard_plan import SHARD_SIZE, BatchPlan, PlannedShard, embedded_model, plan, runs_model
from fluents.batches.stages import STAGES, BatchSettings, ShardTask
from fluents.batches.store import RUNS, Manifest, ShardFile, ShardFormat
from fluents.batches.workers import LocalProcesses, PoolLimits, WorkerPool, WorkerSource
from fluents.errors import InputError
from fluents.scoring import check_choice
from fluents.trackers import TrackerOptions

EngineName: TypeAlias = Literal["local", "ray"]

TIMEOUT = 600.0
"""Seconds without a sign of life: the longest answers of large models on few cores stay below."""


@dataclass(frozen=True)
class BatchProgress:
    """How far a run is."""

    procedures: int
    """Done, those of earlier runs among them."""
    total: int
    before: int
    """Of them, done by earlier runs."""
    steps: int
    """Tracked by this run, those of unfinished shards among them."""
    failures: int


OnProgress: TypeAlias = Callable[[BatchProgress], None]


@dataclass(frozen=True)
class BatchReport:
    """What became of a run."""

    folder: str
    shards: int
    skipped: int
    """Shards that earlier runs had done."""
    procedures: int
    steps: int
    changes: int
    failures: int
    """Procedures with an error, which `retry_failed` tries again."""
    lost: tuple[str, ...]
    """Why workers were lost; what they had begun was done by others."""
    notices: tuple[str, ...]
    """What the user should know: damaged shards, a changed input."""
    seconds: float


def batch(
    sources: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    stages: Sequence[str] = STAGES,
    format: ShardFormat = "parquet",
    shard_size: int = SHARD_SIZE,
    max_steps: int = 1000,
    engine: EngineName = "local",
    address: str | None = None,
    workers: int | None = None,
    gpu_workers: int = 0,
    memory: int | None = None,
    timeout: float = TIMEOUT,
    part: tuple[int, int] | None = None,
    retry_failed: bool = False,
    on_progress: OnProgress | None = None,
    on_notice: Callable[[str], None] | None = None,
    **tracker: Unpack[TrackerOptions],
) -> BatchReport:
    """Take procedures through stages into a folder of shards with a manifest; run it again to go on where it ended.

    `sources` are files, folders, fsspec addresses and datasets; `out` is a folder or an fsspec address. A procedure
    that fails is a row with its error, and `retry_failed` tries it again. `engine` "local" starts processes on this
    machine, "ray" actors on the cluster at `address`. A worker that holds more than `memory` megabytes, or shows no
    sign of life for `timeout` seconds, is replaced. With `part` (k, n) every n-th shard is done, beginning with the
    k-th: for the tasks of an array job, which share `out`. `tracker` is what `open_tracker` takes; an embedded model
    takes 8 procedures `at_once` unless told otherwise, `base` 16.

    >>> report = fl.batch("recipes.jsonl", "out", model="small", workers=2)
    >>> fl.query("out", "entities")
    """
    started = time.monotonic()
    planned = plan(
        sources, out, stages=stages, format=format, shard_size=shard_size, max_steps=max_steps, part=part,
        retry_failed=retry_failed, tracker=tracker, on_notice=on_notice,
    )  # fmt: skip
    _check_limits(engine, address, workers, gpu_workers, memory, timeout)
    run = _Run(planned, on_progress or (lambda _: None))
    try:
        run.begin()
        if planned.left:
            with ExitStack() as stack:
                source, count = _workers(stack, planned, engine, address, workers, gpu_workers)
                limits = PoolLimits(count, timeout, None if memory is None else memory << 20)
                run.work(WorkerPool(source, limits, planned.store))
    finally:
        run.finish(time.monotonic() - started, engine)
    return run.report(time.monotonic() - started)


def _check_limits(
    engine: EngineName, address: str | None, workers: int | None, gpus: int, memory: int | None, timeout: float
) -> None:
    check_choice("engine", engine, EngineName)
    if address is not None and engine != "ray":
        raise InputError("`address` works only with `engine` ray", fix="leave out `address`, or set `engine` to ray")
    for name, value, least in (("workers", workers, 1), ("memory", memory, 1), ("timeout", timeout, 0.001)):
        if value is not None and not value >= least:
            raise InputError(
                f"`{name}` must be positive, not {value}", fix=f"give a positive number, or leave out `{name}`"
            )
    if gpus < 0 or (workers is not None and gpus > workers):
        raise InputError(
            f"`gpu_workers` must be from 0 to the value of `workers`, not {gpus}",
            fix="give a number in this range, or raise `workers`",
        )


def _workers(
    stack: ExitStack, planned: BatchPlan, engine: EngineName, address: str | None, workers: int | None, gpus: int
) -> tuple[WorkerSource, int]:
    """Where the workers come from, and how many there are."""
    folder, settings, most = planned.store.folder, planned.settings, len(planned.left)
    is_model = runs_model(settings)
    if engine == "local":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        # An embedded model takes all cores; of several, each takes the memory of one.
        count = min(workers or max(gpus, 1 if is_model else cores), most)
        if is_model and "at_once" in settings.tracker:  # what workers warn of, nobody sees
            _warn_of_memory(settings, count)
        return LocalProcesses(folder, settings, count, min(gpus, count)), count
    from fluents.batches.ray_workers import RayActors

    actors = RayActors(folder, settings, address=address, gpus=gpus)
    stack.callback(actors.close)
    actors.workers = min(workers or actors.room, most)
    return actors, actors.workers


def _warn_of_memory(settings: BatchSettings, workers: int) -> None:
    from fluents.weights.base_weights import warn_if_memory_is_short

    if size := embedded_model(settings.tracker).size:
        warn_if_memory_is_short(size.name, settings.tracker["at_once"], workers)


class _Run:
    def __init__(self, planned: BatchPlan, on_progress: OnProgress) -> None:
        self._plan, self._on_progress = planned, on_progress
        self._shards = {shard.file: shard for shard in planned.shards}
        self._skipped = len(planned.ours) - len(planned.left)
        self._before = self._procedures
        self._begun: set[str] = set()
        self._did: list[str] = []
        self._steps = 0
        self._pool: WorkerPool | None = None
        self._started = datetime.now(UTC)

    @property
    def _done(self) -> list[ShardFile]:
        return [shard.done for shard in self._plan.ours if shard.done is not None]

    @property
    def _procedures(self) -> int:
        return sum(shard.count for shard in self._plan.ours if shard.is_done)

    def begin(self) -> None:
        self._save_first()
        self._tell()

    def work(self, pool: WorkerPool) -> None:
        self._pool = pool
        pool.run(self._tasks(), self._on_shard, self._on_steps)

    def _tasks(self) -> Iterator[ShardTask]:
        for task in self._plan.tasks():
            yield task
            self._begun.add(task.file)  # the pool asks for the next one when it hands this one out

    def _on_shard(self, done: ShardFile) -> None:
        shard = self._shards[done.file]
        shard.done, shard.retry = done, False
        self._did.append(done.file)
        self._tell()

    def _on_steps(self, steps: int) -> None:
        if steps != self._steps:
            self._steps = steps
            self._tell()

    def _tell(self) -> None:
        total = sum(shard.count for shard in self._plan.ours)
        failures = sum(one.failures for one in self._done)
        self._on_progress(BatchProgress(self._procedures, total, self._before, self._steps, failures))

    def _save(self, is_listed: Callable[[PlannedShard], bool] = lambda shard: shard.is_done) -> None:
        """Write the manifest, at first without the shards that are to be retried: a run that is killed may leave them
        as they were, or done again, and what the manifest lists must not change."""
        shards = tuple(shard.done for shard in self._plan.shards if shard.done is not None and is_listed(shard))
        self._plan.store.write_manifest(Manifest(self._plan.signed, shards, len(shards) == len(self._plan.shards)))

    def _save_first(self) -> None:
        """The tasks of an array job write a manifest only where there is none, or where it lists what they may change:
        who runs last sees all shards."""
        manifest = None if self._plan.part is None else self._plan.store.read_manifest()
        undone = {shard.file for shard in self._plan.shards if not shard.is_done}
        if manifest is None or any(shard.file in undone for shard in manifest.shards):
            self._save()

    def finish(self, seconds: float, engine: str) -> None:
        """Leave the manifest as true as it can be, also where the run ended early: then it lists what was not retried
        any more as it was before."""

        def is_listed(shard: PlannedShard) -> bool:
            if shard.is_done or shard.done is None:
                return shard.is_done
            # The workers have ended. On other machines they are only told to, and may write what they have begun.
            return (engine == "local" or shard.file not in self._begun) and self._plan.store.is_as(shard.done)

        if self._plan.part is None:
            self._save(is_listed)
        did = [self._shards[file].done for file in self._did]
        line = {
            "started": self._started.isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
            "working": round(self._pool.working if self._pool else 0.0, 3),
            "engine": engine,
            "shards": len(did),
            "procedures": sum(one.procedures for one in did if one),
            "steps": sum(one.steps for one in did if one),
            "lost": self._pool.lost if self._pool else [],
        }
        self._plan.store.append(RUNS, json.dumps(line).encode())

    def report(self, seconds: float) -> BatchReport:
        done = self._done
        return BatchReport(
            folder=self._plan.store.folder,
            shards=len(done),
            skipped=self._skipped,
            procedures=sum(one.procedures for one in done),
            steps=sum(one.steps for one in done),
            changes=sum(one.changes for one in done),
            failures=sum(one.failures for one in done),
            lost=tuple(self._pool.lost if self._pool else ()),
            notices=tuple(self._plan.notices),
            seconds=seconds,
        )
