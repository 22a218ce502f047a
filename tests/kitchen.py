"""A small kitchen for batch runs: procedures, recorded traces that answer for them, and workers that misbehave."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from fluents import jsonl
from fluents.batches.store import Manifest, ShardStore
from fluents.records import Procedure, StateChange, Trace

DISHES = ("soup", "bread", "omelette", "tea", "salad", "jam", "rice")


def dish(number: int, goal: str | None = None) -> Procedure:
    """A procedure; every seventh has the same steps."""
    name = DISHES[number % len(DISHES)]
    steps = (f"Put the {name} on the stove.", f"Wait until the {name} is hot.")
    return Procedure(id=f"dish-{number}", goal=goal or f"Make {name}", steps=steps, topic="cooking")


def recording(folder: Path) -> Path:
    """A file of traces for all dishes."""
    path = folder / "recorded.jsonl"
    traces = []
    for number, name in enumerate(DISHES):
        placed = StateChange(step=1, entity=name, attribute="location", before="in the cupboard", after="on the stove")
        heated = StateChange(step=2, entity=name, attribute="temperature", before="cold", after="hot")
        traces.append(Trace(procedure=dish(number), changes=(placed, heated)))
    jsonl.write(traces, path)
    return path


def menu(folder: Path, count: int, name: str = "menu.jsonl", goals: dict[int, str] | None = None) -> Path:
    """A file of procedures."""
    path = folder / name
    jsonl.write((dish(number, (goals or {}).get(number)) for number in range(count)), path)
    return path


def served(out: Path) -> list[Trace]:
    """All rows that the manifest lists, in order."""
    store = ShardStore(out)
    return [trace for shard in manifest(out).shards for trace in store.read_shard(shard.file)]


def manifest(out: Path) -> Manifest:
    found = ShardStore(out).read_manifest()
    assert found is not None
    return found


def each_once(out: Path, count: int) -> bool:
    """Whether every dish was served, once."""
    return Counter(trace.id for trace in served(out)) == Counter(f"dish-{number}" for number in range(count))


def files(out: Path) -> dict[str, bytes]:
    """The shards and the manifest, byte for byte."""
    return {path.name: path.read_bytes() for path in out.iterdir() if path.suffix in (".parquet", ".json")}


MISBEHAVIOUR = """
import os, sys, time
if "fluents" not in sys.modules or True:
    from fluents.trackers import replay

    well = replay.ReplayTracker.track

    def track(self, procedure, listener=None, done=None):
        if listener is not None:
            listener.on_start(procedure)
        if procedure.goal == "die":
            os.kill(os.getpid(), 9)
        if procedure.goal == "die once" and not os.path.exists({marker!r}):
            open({marker!r}, "w").close()
            os.kill(os.getpid(), 9)
        if procedure.goal == "hang":
            time.sleep(10_000)
        if procedure.goal == "eat":
            eaten = bytearray(os.urandom(1)) * (600 << 20)
            listener.on_start(procedure.replace(goal="full"))
            time.sleep(1)
            listener.on_step(replay.Trace(procedure=procedure))
            time.sleep(1)
        if procedure.goal == "burn":
            raise ValueError("it burnt")
        if procedure.goal == "slow":
            time.sleep(0.05)
        return well(self, procedure, listener, done)

    replay.ReplayTracker.track = track
"""


def misbehave(folder: Path, monkeypatch: Any) -> None:
    """From now on workers die, hang, eat or burn over procedures with such a goal."""
    place = folder / "misbehaviour"
    place.mkdir()
    (place / "sitecustomize.py").write_text(MISBEHAVIOUR.format(marker=str(folder / "died")))
    source = str(Path(sys.modules["fluents"].__file__ or "").parents[1])
    monkeypatch.setenv("PYTHONPATH", f"{place}:{source}")


def lines(path: Path, *objects: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
    return path
