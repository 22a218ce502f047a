"""Workers as Ray actors: the same work on a laptop, a cluster or a cloud. Nodes need fluents and the same `out`."""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from fluents.batches.stages import BatchSettings, ShardTask
from fluents.batches.store import ShardStore
from fluents.batches.worker import BEAT_SECONDS, Heart, opened_stages, told
from fluents.batches.workers import Event, ShardWorker, WorkerError
from fluents.errors import FluentsError, needs_extra

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere unasked
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray's next release does; silences its notice

with needs_extra("ray"):
    import ray
    from ray.exceptions import RayError, RayTaskError


class ShardActor:
    """What runs on a node: `open`, then `do` for each shard, one after the other; `beat` answers beside them."""

    def __init__(self, folder: str, settings: dict[str, Any]) -> None:
        self._folder, self._settings = folder, settings
        self._heart = Heart()

    def open(self) -> Event:
        """Load what the stages need."""
        try:
            self._store = ShardStore(self._folder)
            self._stages = opened_stages(self._settings)
        except (FluentsError, OSError) as error:
            return {"fatal": told(error)}
        return {"ready": True}

    def do(self, task: dict[str, Any]) -> Event:
        """Do a shard."""
        self._heart.begin(task["file"])
        try:
            return {"done": asdict(self._stages.do(ShardTask.of(task), self._store, self._heart))}
        except (FluentsError, OSError) as error:
            return {"fatal": told(error)}

    def beat(self) -> Event:
        """The last sign of life, and how long ago it was."""
        found = self._heart.as_dict()
        found["beat"]["age"] = time.monotonic() - self._heart.moved
        return found


class RayWorker:
    """A handle on an actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._work: list[Any] = [actor.open.remote()]
        self._beat: Any = None
        self._asked = time.monotonic()

    def begin(self, task: ShardTask) -> None:
        self._work.append(self._actor.do.remote(task.as_dict()))

    @property
    def refs(self) -> list[Any]:
        return [*self._work[:1], *([self._beat] if self._beat is not None else [])]

    def events(self) -> list[Event]:
        found: list[Event] = []
        try:
            while self._work and ray.wait(self._work[:1], timeout=0)[0]:
                found.append(ray.get(self._work.pop(0)))
            if self._beat is not None and ray.wait([self._beat], timeout=0)[0]:
                answered, self._beat = self._beat, None
                found.append(ray.get(answered))
            if self._beat is None and self._work and time.monotonic() - self._asked > BEAT_SECONDS:
                self._beat, self._asked = self._actor.beat.options(concurrency_group="heart").remote(), time.monotonic()
        except RayError as error:  # the actor, its node, or its memory
            said = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
            # Of an error in Python the last line says what it was; of a death the first.
            found.append({"lost": f"died: {said[-1 if isinstance(error, RayTaskError) else 0][:200]}"})
        return found

    def end(self) -> None:
        with suppress(RayError, ValueError):
            ray.kill(self._actor)


def _check_there(address: str | None) -> None:
    """Ray itself would try for minutes."""
    if address and (found := re.fullmatch(r"(?:ray://)?([\w.-]+):(\d{1,5})", address)):
        try:
            socket.create_connection((found[1], int(found[2])), timeout=10).close()
        except (OSError, OverflowError) as error:
            raise _no_cluster(error, address) from None


def _no_cluster(error: Exception, address: str | None) -> WorkerError:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if address is None:
        return WorkerError(f"cannot start Ray on this machine: {first[:200]}", fix="set `engine` to local")
    fix = "correct `address`, start a cluster there with `ray start --head`, or leave out `address`"
    return WorkerError(f"cannot connect to a Ray cluster: {first[:200]}", where=address, fix=fix)


class RayActors:
    """Workers on a Ray cluster: at `address`, or one that is started on this machine and ends with the run.

    Each takes `cpus` of a node; each of the last `gpus` has a GPU of its own.
    """

    def __init__(
        self, folder: str, settings: BatchSettings, *, address: str | None, cpus: float = 1, gpus: int = 0
    ) -> None:
        self._folder, self._settings, self._cpus, self._gpus = folder, settings.as_dict(), cpus, gpus
        self.workers = 0
        self._ours = not ray.is_initialized()
        if self._ours:
            options: dict[str, Any] = {"address": address} if address else {"address": "local"}
            if not address:
                # Ray listens on all interfaces, whatever address one gives it, but obeys nobody without its token.
                options["include_dashboard"] = False
            _check_there(address)
            try:
                ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise _no_cluster(error, address) from None

    @property
    def room(self) -> int:
        """How many workers the cluster has cores for."""
        return max(1, int(ray.cluster_resources().get("CPU", 1) // self._cpus))

    def start(self, place: int) -> RayWorker:
        with_gpu = place >= self.workers - self._gpus
        # max_restarts 0: the pool starts another one, and knows what the lost one was at.
        actor = ray.remote(
            num_cpus=self._cpus,
            num_gpus=1 if with_gpu and self._gpus else 0,
            concurrency_groups={"heart": 1},
            max_restarts=0,
        )(ShardActor)
        return RayWorker(actor.remote(self._folder, self._settings))

    def wait(self, workers: Sequence[ShardWorker], seconds: float) -> None:
        refs = [ref for worker in workers if isinstance(worker, RayWorker) for ref in worker.refs]
        if refs:
            with suppress(RayError):
                ray.wait(refs, num_returns=1, timeout=seconds)
        else:
            time.sleep(seconds)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._ours:
            ray.shutdown()
