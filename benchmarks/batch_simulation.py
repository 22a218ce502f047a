"""A run on a thousand workers, simulated from measured rates: how long its tail is, and which shard size is best.

    python benchmarks/batch_simulation.py
    python benchmarks/batch_simulation.py --workers 64 --procedures 200000 --seconds-a-step 1.2

Procedures are as long as those of our corpus. Workers fail at random, memorylessly; a failed one loses its shard, which
another does from the beginning, and is back after a while. A shard costs a moment to hand out and to write. Nothing
else is modelled: no network, no disk, and every worker is equally fast, but for the spread of `--uneven`.
"""

from __future__ import annotations

import argparse
import heapq
import random
from dataclasses import dataclass

from fluents.data import corpus

SIZES = (1, 5, 10, 25, 50, 100, 200, 400)


@dataclass(frozen=True)
class Fleet:
    """The workers of a run."""

    workers: int
    seconds_a_step: float
    shard_seconds: float
    """To hand out and write a shard."""
    hours_between_failures: float
    restart_seconds: float
    uneven: float
    """How unequal workers are: 0.2 means up to 20 % faster or slower."""


@dataclass(frozen=True)
class Simulated:
    """What became of a run, in hours; shares of the work of all workers."""

    hours: float
    ideal: float
    tail: float
    """From the moment when no shard is left to hand out to the end."""
    lost: float
    failures: int


def simulate(lengths: list[int], procedures: int, size: int, fleet: Fleet, seed: int = 1) -> Simulated:
    """A run with shards of `size`: a worker that is free takes the next one."""
    chance = random.Random(seed)
    shards = [sum(chance.choices(lengths, k=min(size, procedures - start))) for start in range(0, procedures, size)]
    work = sum(shards) * fleet.seconds_a_step
    shards.reverse()
    speeds = [1 + fleet.uneven * (2 * chance.random() - 1) for _ in range(fleet.workers)]
    free = [(0.0, worker) for worker in range(fleet.workers)]
    failure = fleet.hours_between_failures * 3600
    fails = [chance.expovariate(1 / failure) for _ in range(fleet.workers)]
    underway: list[tuple[float, int, int]] = []
    handed_out = end = lost = 0.0
    failures = 0
    while shards or underway:
        if shards and free and (not underway or free[0][0] <= underway[0][0]):
            now, worker = heapq.heappop(free)
            steps = shards.pop()
            takes = fleet.shard_seconds + steps * fleet.seconds_a_step / speeds[worker]
            heapq.heappush(underway, (now + takes if now + takes <= fails[worker] else fails[worker], worker, steps))
            began = now
            if now + takes > fails[worker]:
                lost += max(0.0, fails[worker] - began)
            handed_out = max(handed_out, now)
            continue
        now, worker, steps = heapq.heappop(underway)
        if now >= fails[worker]:
            failures += 1
            shards.append(steps)
            back = now + fleet.restart_seconds
            fails[worker] = back + chance.expovariate(1 / failure)
            heapq.heappush(free, (back, worker))
        else:
            end = max(end, now)
            heapq.heappush(free, (now, worker))
    in_all = end * fleet.workers or 1.0
    return Simulated(end / 3600, work / fleet.workers / 3600, (end - handed_out) / 3600, lost / in_all, failures)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--procedures", type=int, default=2_000_000)
    parser.add_argument("--seconds-a-step", type=float, default=1.0)
    parser.add_argument("--shard-seconds", type=float, default=0.5)
    parser.add_argument("--hours-between-failures", type=float, default=24.0, help="of one worker, on average")
    parser.add_argument("--restart-seconds", type=float, default=120.0)
    parser.add_argument("--uneven", type=float, default=0.2)
    chosen = parser.parse_args()
    lengths = [len(trace.procedure.steps) for split in ("train", "dev") for trace in corpus.load(split)]
    fleet = Fleet(
        chosen.workers, chosen.seconds_a_step, chosen.shard_seconds, chosen.hours_between_failures,
        chosen.restart_seconds, chosen.uneven,
    )  # fmt: skip
    mean = sum(lengths) / len(lengths)
    print(f"{chosen.procedures:,} procedures of {mean:.1f} steps on {chosen.workers:,} workers, {fleet}")
    print("shard size    hours   over ideal   tail, minutes   lost work   failures")
    for size in SIZES:
        found = simulate(lengths, chosen.procedures, size, fleet)
        over = found.hours / found.ideal - 1
        row = f"{size:10}  {found.hours:7.2f}  {over:10.1%}  {found.tail * 60:14.1f}  {found.lost:10.2%}"
        print(f"{row}  {found.failures:9}", flush=True)


if __name__ == "__main__":
    main()
