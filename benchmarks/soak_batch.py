"""Kills a local batch run again and again at random moments, resumes it each time, and counts: every procedure once.

    python benchmarks/soak_batch.py              # 20 kills
    python benchmarks/soak_batch.py --kills 3

The run is that of the command line, with the replay tracker and two workers; kill -9 goes to the run, to a worker, or
to both. At the end all shards must be, byte for byte, those of a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fluents import jsonl
from fluents.batches.store import ShardStore
from fluents.records import Procedure, StateChange, Trace

SHARD = 20
PAUSE = 1.5
"""Most seconds from the first new shard to a kill."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fluents-soak-") as folder:
        soak(Path(folder), chosen.kills, random.Random(chosen.seed))


def soak(folder: Path, kills: int, chance: random.Random) -> None:
    count = 2500 * kills  # enough that the run is not over before the last kill, on a fast machine too
    source, recorded = write_input(folder, count)
    calm, out = folder / "calm", folder / "out"
    started = time.monotonic()
    subprocess.run(command(source, recorded, calm), check=True, stderr=subprocess.DEVNULL)
    print(f"{count} procedures, undisturbed: {time.monotonic() - started:.1f} s", flush=True)
    killed: Counter[str] = Counter()
    while killed.total() < kills:
        what = kill_one(command(source, recorded, out), out, chance)
        if what is None:
            break
        killed[what] += 1
        print(f"kill {killed.total()}: {what}, {len(shards(out))} shards there", flush=True)
    subprocess.run(command(source, recorded, out), check=True, stderr=subprocess.DEVNULL)
    ids = Counter(trace.id for trace in rows(out))
    assert ids == Counter(f"p{number}" for number in range(count)), "a procedure is missing, or there twice"
    assert contents(out) == contents(calm), "the shards differ from those of an undisturbed run"
    told = ", ".join(f"{number} × {what}" for what, number in killed.items())
    print(f"{killed.total()} kills ({told}): every procedure once, byte for byte as undisturbed")
    if killed.total() < kills:
        raise SystemExit(f"the run was over after {killed.total()} kills")


def write_input(folder: Path, count: int) -> tuple[Path, Path]:
    """A file of procedures, and traces that answer for their steps."""
    steps = [f"Stir the pot {number} times." for number in range(50)]
    said = [
        Trace(
            procedure=Procedure(id=f"r{number}", steps=(step,)),
            changes=(StateChange(step=1, entity="pot", attribute="turns", before="0", after=str(number)),),
        )
        for number, step in enumerate(steps)
    ]
    jsonl.write(said, folder / "recorded.jsonl")
    procedures = (
        Procedure(id=f"p{number}", goal="Stir", steps=tuple(steps[(number + k) % 50] for k in range(6)))
        for number in range(count)
    )
    jsonl.write(procedures, folder / "in.jsonl")
    return folder / "in.jsonl", folder / "recorded.jsonl"


def command(source: Path, recorded: Path, out: Path) -> list[str]:
    run = [sys.executable, "-m", "fluents", "batch", str(source), "--out", str(out), "--replay", str(recorded)]
    return [*run, "--stages", "segment,track", "--shard-size", str(SHARD), "--workers", "2"]


def kill_one(run: Sequence[str], out: Path, chance: random.Random) -> str | None:
    """Start the run, kill it or one of its workers; what was killed, or None if it was over before."""
    before = len(shards(out))
    process = subprocess.Popen(run, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(shards(out)) == before:
        time.sleep(0.005)
    time.sleep(chance.random() * PAUSE * chance.random())
    what = chance.choice(["the run", "a worker", "both"])
    workers = workers_of(process.pid)
    if (status := process.poll()) is not None:
        assert status == 0, f"the run ended by itself, with status {status}"
        return None
    if not workers:
        what = "the run"
    if what in ("a worker", "both"):
        with suppress(ProcessLookupError):
            os.kill(chance.choice(workers), signal.SIGKILL)
    if what == "a worker":  # the run goes on; it is ended later, or the next kill would find nothing
        time.sleep(chance.random())
    process.kill()
    process.wait()
    return what


def workers_of(parent: int) -> list[int]:
    """The processes that a process started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(status.parent.name))
    return found


def shards(out: Path) -> list[Path]:
    return list(out.glob("*.parquet"))


def rows(out: Path) -> list[Trace]:
    store = ShardStore(out)
    manifest = store.read_manifest()
    assert manifest is not None
    assert manifest.complete
    return [trace for shard in manifest.shards for trace in store.read_shard(shard.file)]


def contents(out: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in shards(out)}
    return found | {"manifest": json.dumps(json.loads((out / "manifest.json").read_text())).encode()}


if __name__ == "__main__":
    main()
