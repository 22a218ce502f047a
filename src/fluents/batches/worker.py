"""The process of a worker on this machine: shards in, one line of JSON each, and what becomes of them out.

It ends with whoever started it. Lines out are {"ready"}, {"beat"}, {"done"} and {"fatal"}.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from queue import SimpleQueue
from typing import IO, Any

from fluents.batches.stages import BatchSettings, ShardTask, Stages, memory_used
from fluents.batches.store import ShardStore, encode
from fluents.errors import FluentsError

BEAT_SECONDS = 0.5
"""Beats come no oftener."""


class Heart:
    """Remembers the last sign of life: when it was, in which shard, and how many steps were done."""

    def __init__(self) -> None:
        self.begin("")

    def begin(self, file: str) -> None:
        """A shard is begun."""
        self.moved, self.file, self.steps = time.monotonic(), file, 0

    def __call__(self, rows: Sequence[int], steps: int) -> None:  # noqa: ARG002 - they are noted elsewhere
        self.moved, self.steps = time.monotonic(), steps

    def as_dict(self) -> dict[str, Any]:
        return {"beat": {"file": self.file, "steps": self.steps, "memory": memory_used()}}


class _Speaking(Heart):
    """Says every beat, though not more often than somebody would listen."""

    def __init__(self, say: IO[bytes]) -> None:
        super().__init__()
        self._say, self._said, self._lock = say, 0.0, threading.Lock()

    def __call__(self, rows: Sequence[int], steps: int) -> None:
        super().__call__(rows, steps)
        with self._lock:
            if self.moved - self._said > BEAT_SECONDS:
                self._said = self.moved
                self.say(self.as_dict())

    def say(self, line: dict[str, Any]) -> None:
        self._say.write(json.dumps(line).encode() + b"\n")
        self._say.flush()


def main() -> None:
    """Do what comes in until nothing comes any more."""
    said = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not pass for an answer
    tasks: SimpleQueue[bytes] = SimpleQueue()
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    heart = _Speaking(said)
    if order["cores"] and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, order["cores"])
    try:
        store = ShardStore(order["folder"])
        stages = opened_stages(order["settings"])
        heart.say({"ready": True})
        while True:
            task = ShardTask.of(json.loads(tasks.get()))
            heart.begin(task.file)
            heart.say({"done": asdict(stages.do(task, store, heart))})
    except (FluentsError, OSError) as error:
        heart.say({"fatal": told(error)})


def opened_stages(values: Mapping[str, Any]) -> Stages:
    """The stages, with everything loaded that shards need, so that the first one takes no longer than the others."""
    settings = BatchSettings.of(values)
    stages = Stages(settings)
    encode((), settings.format)
    # What is loaded now lives as long as the worker. Walking through it again and again would only hold up shards.
    gc.collect()
    gc.freeze()
    return stages


def told(error: Exception) -> dict[str, str | None]:
    """An error that ends the run, for whoever started it."""
    if isinstance(error, FluentsError):
        return {"what": error.what, "where": error.where, "fix": error.fix}
    where = getattr(error, "filename", None)
    return {"what": str(getattr(error, "strerror", None) or error), "where": where and str(where), "fix": None}


def _listen(tasks: SimpleQueue[bytes]) -> None:
    while line := sys.stdin.buffer.readline():
        tasks.put(line)
    os._exit(0)  # whoever started it is gone, or wants no more


if __name__ == "__main__":
    main()
