"""Batch runs: many procedures through the stages, shard by shard, on this machine or on Ray.

A run can die at any moment and be started again: a shard whose file is there is done, all others are not.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, Unpack

from fluents.batches.documents import InputFile, cut, find_files
from fluents.batches.stages import STAGES, BatchSettings, ShardTask, in_order
from fluents.batches.store import RUNS, Manifest, ShardDamagedError, ShardFile, ShardFormat, ShardStore
from fluents.batches.workers import LocalProcesses, PoolLimits, WorkerPool, WorkerSource
from fluents.errors import InputError
from fluents.scoring import check_choice
from fluents.trackers import TrackerOptions

EngineName: TypeAlias = Literal["local", "ray"]

SHARD_SIZE = 50
"""Procedures. On many workers that often fail, fewer are better (`benchmarks/batch_simulation.py`); but the slots of an
embedded model run empty at the end of each shard."""
TIMEOUT = 600.0
"""Seconds without a sign of life: the longest answers of large models on few cores stay below."""

AT_ONCE = 8
"""Procedures that an embedded model takes side by side (`benchmarks/batch.py`)."""


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
    takes 8 procedures `at_once` unless told otherwise.

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
            raise InputError(f"`{name}` must be positive, not {value}", fix="give a positive number, or leave it out")
    if gpus < 0 or (workers is not None and gpus > workers):
        raise InputError(
            f"`gpu_workers` must be from 0 to `workers`, not {gpus}", fix="lower `gpu_workers`, or raise `workers`"
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
        return LocalProcesses(folder, settings, count, min(gpus, count)), count
    from fluents.batches.ray_workers import RayActors

    actors = RayActors(folder, settings, address=address, gpus=gpus)
    stack.callback(actors.close)
    actors.workers = min(workers or actors.room, most)
    return actors, actors.workers


def runs_model(settings: BatchSettings) -> bool:
    """Whether workers run a model themselves, and do not ask an endpoint or a file."""
    if "track" not in settings.stages or settings.tracker.get("replay"):
        return False
    model = settings.tracker.get("model")
    from fluents.weights.base_weights import is_embedded

    return model is None or is_embedded(str(model))


# The plan: which shards there are, and which of them are done


@dataclass
class PlannedShard:
    """A shard of the input, and its file if it is there."""

    file: str
    count: int
    done: ShardFile | None = None
    retry: bool = False


@dataclass
class BatchPlan:
    """A run before it begins."""

    store: ShardStore
    settings: BatchSettings
    signed: Mapping[str, Any]
    """What of the settings the manifest records."""
    files: list[InputFile]
    shard_size: int
    shards: list[PlannedShard]
    part: tuple[int, int] | None = None
    notices: list[str] = field(default_factory=list)

    @property
    def ours(self) -> list[PlannedShard]:
        """The shards of this part, or all."""
        return self.shards if self.part is None else self.shards[self.part[0] - 1 :: self.part[1]]

    @property
    def left(self) -> list[PlannedShard]:
        """The shards of this part that are to be done."""
        return [shard for shard in self.ours if shard.done is None or shard.retry]

    def tasks(self) -> Iterator[ShardTask]:
        """What is to be done, with its documents, read as they are needed."""
        wanted = {shard.file: shard for shard in self.left}
        places = iter(self.shards)
        for shard in cut(self.files, self.shard_size):
            planned = next(places, None)
            file = self.settings.file_name(shard.name, self.signed)
            if planned is None or planned.file != file:
                raise InputError(
                    "the input files changed during the run",
                    where=shard.documents[0].where,
                    fix="run the command again",
                )
            if file in wanted:
                yield ShardTask(file, shard.documents, retry=planned.done is not None)


def plan(
    sources: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    stages: Sequence[str] = STAGES,
    format: ShardFormat = "parquet",
    shard_size: int = SHARD_SIZE,
    max_steps: int = 1000,
    part: tuple[int, int] | None = None,
    retry_failed: bool = False,
    tracker: Mapping[str, Any] | None = None,
    on_notice: Callable[[str], None] | None = None,
    dry: bool = False,
) -> BatchPlan:
    """Read the input once, and see what earlier runs have done. A `dry` plan leaves the folder as it is."""
    check_choice("format", format, ShardFormat)
    for name, value in (("shard_size", shard_size), ("max_steps", max_steps)):
        if value < 1:
            raise InputError(f"`{name}` must be at least 1, not {value}", fix="give a positive number")
    if part is not None and not 1 <= part[0] <= part[1]:
        raise InputError(
            f"`part` must be K/N with K from 1 to N, not {part[0]}/{part[1]}", fix="give, for example, 3/100"
        )
    chosen = _plain(tracker or {})
    if chosen and "track" not in in_order(stages):
        raise InputError(
            f"`{next(iter(chosen))}` has no effect without the stage track",
            fix=f"add track to `stages`, or leave out `{next(iter(chosen))}`",
        )
    settings = BatchSettings(in_order(stages), chosen, max_steps, format)
    if runs_model(settings) and _takes_several(chosen):
        settings = replace(settings, tracker={"at_once": AT_ONCE, **chosen})
    files = find_files([sources] if isinstance(sources, str | Path) else sources, out)
    if not files:
        raise InputError(
            "there are no input files", fix="name files with procedures; files in the folder `out` are not read"
        )
    signed = settings.settings
    store = ShardStore(out)
    if not dry:
        store.create()
    manifest = store.read_manifest()
    _check_same_settings(manifest, signed, store)
    found = BatchPlan(store, settings, signed, files, shard_size, [], part)
    _find_shards(found, manifest, retry_failed, dry)
    if on_notice is not None:
        for notice in found.notices:
            on_notice(notice)
    return found


def _takes_several(tracker: Mapping[str, Any]) -> bool:
    """Whether the tracker can take several procedures side by side."""
    if tracker.get("samples", 1) > 1 or tracker.keys() & {"setting", "checkpoint"}:
        return False
    from fluents.prompts.transcript import VERSION
    from fluents.weights.adapters import open_embedded
    from fluents.weights.base_weights import default_model

    model, adapter = tracker.get("model"), tracker.get("adapter")
    return open_embedded(model or (None if adapter else default_model()), adapter).adapter.facts.prompt == VERSION


def _plain(tracker: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON has them: they go to other processes, and other machines."""
    found = {name: str(value) if isinstance(value, Path) else value for name, value in tracker.items()}
    for name, value in found.items():
        if not isinstance(value, str | int | float | None):
            raise InputError(
                f"`{name}` must be a name or a number, because each worker opens its own model",
                fix=f"give a name or a path as `{name}`",
            )
    for name in ("replay", "checkpoint", "adapter"):  # a file: workers may stand elsewhere
        if found.get(name) and Path(str(found[name])).exists():
            found[name] = str(Path(str(found[name])).resolve())
    return {name: value for name, value in found.items() if value is not None}


def _check_same_settings(manifest: Manifest | None, signed: Mapping[str, Any], store: ShardStore) -> None:
    if manifest is None:
        return
    now = json.loads(json.dumps(signed))
    before = manifest.settings
    for name in dict.fromkeys([*before, *now]):
        if before.get(name) != now.get(name):
            was, is_now = _differing(before.get(name), now.get(name))
            raise InputError(
                f"this folder contains the results of a run with other settings: {name} was {was}, but is now {is_now}",
                where=store.folder,
                fix="use the settings of that run, or choose another folder as `out`",
            )


def _differing(was: Any, now: Any) -> tuple[str, str]:
    if isinstance(was, dict) and isinstance(now, dict):
        key = next(key for key in [*was, *now] if was.get(key) != now.get(key))
        return f"{key} {was.get(key)}"[:100], f"{key} {now.get(key)}"[:100]
    return str(was)[:100], str(now)[:100]


def _find_shards(planned: BatchPlan, manifest: Manifest | None, retry_failed: bool, dry: bool) -> None:
    known = {shard.file: shard for shard in manifest.shards} if manifest else {}
    there = planned.store.names() if planned.store.system.isdir(planned.store.path) else set()
    for shard in cut(planned.files, planned.shard_size):
        file = planned.settings.file_name(shard.name, planned.signed)
        one = PlannedShard(file, len(shard.documents))
        if file in there:
            one.done = _checked(planned, file, known.get(file), dry)
        elif file in known:
            planned.notices.append(f"{file} is in the manifest but not in the folder, so it is created again")
        one.retry = retry_failed and one.done is not None and one.done.failures > 0
        planned.shards.append(one)
    if not planned.shards:
        raise InputError("the input files are empty", where=planned.files[0].name, fix="name files with procedures")
    gone = known.keys() - {shard.file for shard in planned.shards}
    if gone:
        rows = sum(known[file].procedures for file in gone)
        planned.notices.append(
            f"the input or `shard_size` has changed since the last run: {len(gone)} of the {len(known)} shards of "
            "that run "
            f"({rows:,} procedures) are no longer used. Their files are kept, but removed from the manifest"
        )


def _checked(planned: BatchPlan, file: str, known: ShardFile | None, dry: bool) -> ShardFile | None:
    """What is known of a file that is there; None, and a notice, if it is damaged."""
    try:
        return planned.store.check_shard(file, known)
    except ShardDamagedError as error:
        moved = f"{file}.damaged" if dry else planned.store.set_aside(file)
        planned.notices.append(
            f"{error.what} ({file}). The damaged file is kept as {moved}, and the shard is created again"
        )
        return None


# The run


class _Run:
    def __init__(self, planned: BatchPlan, on_progress: OnProgress) -> None:
        self._plan, self._on_progress = planned, on_progress
        self._shards = {shard.file: shard for shard in planned.shards}
        self._skipped = len(planned.ours) - len(planned.left)
        self._before = self._procedures
        self._did: list[str] = []
        self._steps = 0
        self._pool: WorkerPool | None = None
        self._started = datetime.now(UTC)
        self._save()
        self._tell()

    @property
    def _done(self) -> list[ShardFile]:
        return [shard.done for shard in self._plan.ours if shard.done is not None]

    @property
    def _procedures(self) -> int:
        return sum(shard.count for shard in self._plan.ours if shard.done is not None and not shard.retry)

    def work(self, pool: WorkerPool) -> None:
        self._pool = pool
        pool.run(self._plan.tasks(), self._on_shard, self._on_steps)

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

    def _save(self) -> None:
        """Write the manifest. The tasks of an array job write none but the first: who runs last sees all shards."""
        if self._plan.part is not None and self._plan.store.read_manifest() is not None:
            return
        shards = tuple(shard.done for shard in self._plan.shards if shard.done is not None)
        self._plan.store.write_manifest(Manifest(self._plan.signed, shards, len(shards) == len(self._plan.shards)))

    def finish(self, seconds: float, engine: str) -> None:
        """Leave the manifest as true as it can be, also where the run ended early."""
        self._save()
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
