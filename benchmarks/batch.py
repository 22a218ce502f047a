"""How fast batch runs are, in one run.

    python benchmarks/batch.py                        # all, with every embedded size whose weights are here
    python benchmarks/batch.py --only query replay    # some of: embedded workers replay ray memory query
    python benchmarks/batch.py --sizes tiny --procedures 24 --steps 4

embedded: procedures side by side against one at a time, and against a bare loop over the engine with the same tokens
and as many slots; workers: one against two; replay and ray: the engines on the same work; memory: the peak of the run
and of its workers at 1,000 and at 100,000 procedures; query: every ready view on a million changes.
Ratios of embedded models are of the processor's time, so that what else the machine does stays out of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import runpy
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from fluents import jsonl
from fluents.batches.query import VIEWS, query
from fluents.batches.store import Manifest, ShardFile, ShardStore
from fluents.data import corpus
from fluents.metrics import score
from fluents.records import Procedure, Trace
from fluents.trackers.embedded import Engine, free_cores
from fluents.trackers.transcript import TranscriptSettings, TranscriptTracker, embedded_engine
from fluents.weights.adapters import open_embedded
from fluents.weights.base_weights import BASES, find, is_here

Recorded = runpy.run_path(str(Path(__file__).with_name("track.py")))["Recorded"]  # a script too: it cannot be imported
PARTS = ("embedded", "workers", "replay", "ray", "memory", "query")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sizes", nargs="+", default=list(BASES))
    parser.add_argument("--procedures", type=int, default=48)
    parser.add_argument("--steps", type=int, default=4, help="of each procedure")
    parser.add_argument("--at-once", type=int, help="procedures side by side; default: as batch runs do")
    parser.add_argument("--threads", type=int, help="of the engine; default: as many as there are idle processors")
    parser.add_argument("--many", type=int, default=100_000, help="procedures of the larger run for memory")
    chosen = parser.parse_args()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} processors, {free_cores()} of them idle, load average {load}", flush=True)
    sizes = [size for size in chosen.sizes if is_here(find(size))]
    with tempfile.TemporaryDirectory(prefix="fluents-batch-") as name:
        folder = Path(name)
        for size in sizes if "embedded" in chosen.only else ():
            embedded(size, chosen.procedures, chosen.steps, chosen.at_once or find(size).at_once, chosen.threads)
        for size in sizes if "workers" in chosen.only else ():
            workers(folder, size, chosen.procedures, chosen.steps)
        if "replay" in chosen.only or "ray" in chosen.only:
            engines(folder, with_ray="ray" in chosen.only)
        if "memory" in chosen.only:
            memory(folder, (1_000, chosen.many))
        if "query" in chosen.only:
            views(folder)


# Embedded models


def gold(count: int, steps: int) -> list[Trace]:
    """Traces of our own corpus, cut after so many steps; where it has too few, it begins again."""
    found = []
    for number, trace in enumerate(islice(cycle(corpus.load("dev")), count)):
        few = trace.procedure.replace(id=f"p{number}", steps=trace.procedure.steps[:steps])
        changes = tuple(change for change in trace.changes if change.step <= steps)
        found.append(Trace(procedure=few, changes=changes))
    return found


def embedded(size: str, count: int, steps: int, at_once: int, threads: int | None) -> None:
    wanted = gold(count, steps)
    total = sum(len(trace.procedure.steps) for trace in wanted)
    print(f"\n{size}: {len(wanted)} procedures, {total} steps", flush=True)
    found: dict[int, tuple[float, float]] = {}
    for slots in (1, at_once):
        model = open_embedded(size)
        with embedded_engine(model, at_once=slots, threads=threads) as engine:
            recorded = Recorded(engine)
            tracker = TranscriptTracker(TranscriptSettings(model=size, at_once=slots), recorded)
            started, busy = time.perf_counter(), time.process_time()
            traces = list(tracker.track_many([trace.procedure for trace in wanted]))
            wall, cpu = time.perf_counter() - started, time.process_time() - busy
            found[slots] = wall, cpu
            tokens = sum(written for asked in recorded.asked for _, written in asked)
            points = score("readers", wanted, traces)["soft"]["f1"]
            print(
                f"  {slots} at once: {total / wall:.2f} steps a second, {cpu / total:.2f} s of processor a step, "
                f"{tokens} tokens, soft F1 {points:.1f}, peak memory {peak(os.getpid())} MB",
                flush=True,
            )
            if slots > 1:
                bare_wall, bare_cpu = bare(engine, recorded.asked, slots)
                print(
                    f"  throughput against a bare loop with {slots} slots: {bare_cpu / cpu:.0%} by processor time, ",
                    end="",
                )
                print(f"{bare_wall / wall:.0%} by the clock (target: at least 85 %)", flush=True)
    ratio = found[1][1] / found[at_once][1]
    print(f"  side by side: {ratio:.2f} times as fast by processor time (target: 1.5), ", end="")
    print(f"{found[1][0] / found[at_once][0]:.2f} times by the clock", flush=True)


def bare(engine: Engine, asked: list[list[tuple[str, int]]], slots: int) -> tuple[float, float]:
    """Seconds, by the clock and of the processor, that llama.cpp alone takes for these prompts and tokens."""
    server: Any = engine._server
    left: SimpleQueue[list[tuple[str, int]]] = SimpleQueue()
    for procedure in asked:
        left.put(procedure)

    def work(slot: int) -> None:
        while True:
            try:
                procedure = left.get_nowait()
            except Empty:
                return
            for number, (prompt, tokens) in enumerate(procedure):
                request = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "id_slot": slot}
                server.handle_completions(request | {"cache_prompt": number > 0}, lambda _: False)

    started, busy = time.perf_counter(), time.process_time()
    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(slots)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, time.process_time() - busy


def workers(folder: Path, size: str, count: int, steps: int) -> None:
    """One worker against two, each with its share of the cores."""
    source = folder / f"{size}.jsonl"
    jsonl.write((trace.procedure for trace in gold(count, steps)), source)
    total = sum(len(trace.procedure.steps) for trace in gold(count, steps))
    print()
    for number in (1, 2):
        out = folder / f"{size}-{number}"
        took, used = run([str(source), "--out", str(out), "--stages", "segment,track", "--model", size,
                          "--workers", str(number), "--shard-size", str(max(1, count // 2))])  # fmt: skip
        print(f"{size}, {number} workers: {total / took:.2f} steps a second, {used} MB in all", flush=True)


# Engines


def engines(folder: Path, *, with_ray: bool, count: int = 1_000) -> None:
    """The same work with the replay tracker, without the time that starting takes; of three runs each the fastest."""
    source, recorded = replayed(folder, count)
    common = [str(source), "--stages", "segment,track", "--replay", str(recorded), "--workers", "2"]
    best: dict[str, float] = {}
    print()
    for engine in ("local", "ray") if with_ray else ("local",):
        for attempt in range(3):
            out = folder / f"{engine}-{attempt}"
            whole, _ = run([*common, "--out", str(out), "--engine", engine])
            line = json.loads((out / "runs.jsonl").read_text().splitlines()[-1])
            best[engine] = min(best.get(engine, 1e9), line["working"])
        told = f"{count} procedures in {best[engine]:.2f} s from the first worker that was ready to the end"
        print(f"{engine}: {told}; the whole command took {whole:.1f} s", flush=True)
    if with_ray:
        over = best["ray"] / best["local"] - 1
        print(f"Ray against the local engine: {over:+.0%} (target: at most 15 %)", flush=True)


def replayed(folder: Path, count: int) -> tuple[Path, Path]:
    """So many procedures, and a recording that answers for them."""
    source, recorded = folder / f"replay-{count}.jsonl", folder / "recorded.jsonl"
    traces = list(corpus.load("dev"))
    jsonl.write(traces, recorded)
    with source.open("wb") as stream:
        for number in range(count):
            procedure = traces[number % len(traces)].procedure
            stream.write(jsonl.dumps(procedure.replace(id=f"p{number}")) + b"\n")
    return source, recorded


def memory(folder: Path, counts: tuple[int, ...]) -> None:
    print()
    for count in counts:
        source, recorded = replayed(folder, count)
        common = [str(source), "--stages", "segment,track", "--replay", str(recorded), "--workers", "2"]
        took, used = run([*common, "--out", str(folder / f"memory-{count}")], largest=True)
        print(f"{count} procedures: {took:.0f} s, peak memory of the largest process {used} MB", flush=True)


def run(arguments: list[str], *, largest: bool = False) -> tuple[float, int]:
    """Seconds of a batch run, and its peak memory in MB with that of its workers: in all, or of the largest of them."""
    with peaks() as (start, used):
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "fluents", "batch", *arguments], stderr=subprocess.DEVNULL)
        start(process.pid)
        if process.wait():
            raise SystemExit(f"the run failed: {' '.join(arguments)}")
        took = time.perf_counter() - started
    return took, max(used.values()) if largest else sum(used.values())


@contextmanager
def peaks() -> Iterator[tuple[Callable[[int], None], dict[int, int]]]:
    """Watches a process and those it starts: the peak memory of each."""
    found: dict[int, int] = {}
    ended = threading.Event()

    def watch(pid: int) -> None:
        while not ended.wait(0.1):
            for one in (pid, *children(pid)):
                found[one] = max(found.get(one, 0), peak(one))

    def start(pid: int) -> None:
        threading.Thread(target=watch, args=(pid,), daemon=True).start()

    yield start, found
    ended.set()


def peak(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


def children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(status.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(status.parent.name))
        except OSError:
            continue
    return found


# Queries


def views(folder: Path, changes: int = 1_000_000) -> None:
    """Every ready view, the first 20 rows as the command shows them. The first query makes the table of changes."""
    store = ShardStore(folder / "million")
    store.create()
    chance, traces, made = random.Random(1), list(corpus.load("dev")), 0
    shards: list[ShardFile] = []
    while made < changes:
        rows: list[Trace] = []
        for _ in range(50):
            trace = chance.choice(traces)
            few = Procedure(id=f"p{made}-{len(rows)}", goal=trace.procedure.goal, steps=trace.procedure.steps,
                            topic=f"topic {chance.randrange(40)}")  # fmt: skip
            said = tuple(
                change.model_copy(update={"entity": f"{change.entity} {chance.randrange(2000)}"})
                if chance.random() < 0.2
                else change
                for change in trace.changes
            )
            rows.append(trace.model_copy(update={"procedure": few, "changes": said}))
        shards.append(store.write_shard(f"{len(shards):06}-0.parquet", rows))
        made += shards[-1].changes
    store.write_manifest(Manifest({"format": "parquet"}, tuple(shards), True))
    print(f"\n{made} changes in {len(shards)} shards")
    started = time.perf_counter()
    query(store.folder).limit(1).fetchall()
    print(f"  the first query: {time.perf_counter() - started:.2f} s")
    for view in (*VIEWS, "becomes hot"):
        best = 1e9
        for _ in range(3):
            started = time.perf_counter()
            query(store.folder, view).limit(20).fetchall()
            best = min(best, time.perf_counter() - started)
        print(f"  {view}: {best:.2f} s (target: under 1)", flush=True)


if __name__ == "__main__":
    main()
