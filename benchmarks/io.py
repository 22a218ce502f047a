"""How fast the format is: our reading and writing against bare json on the same lines, in one run.

    python benchmarks/io.py

Uses OpenPI's training set where it can be had, else traces made up here. Also: the time of `import fluents`, and
whether memory stays flat while a file grows tenfold.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fluents import jsonl
from fluents.data.datasets import load_traces
from fluents.errors import DataMissingError
from fluents.records import Procedure, StateChange, Trace

RUNS = 7


def main() -> None:
    traces, what = _traces()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        jsonl.write(traces, path)
        lines = path.read_bytes().splitlines(keepends=True)
        values = [json.loads(line) for line in lines]
        gc.freeze()  # what this script itself holds must not be gone through again and again while others are timed
        changes = sum(len(trace.changes) for trace in traces)
        print(f"{what}: {len(lines)} traces, {changes} changes, {path.stat().st_size / 2**20:.1f} MB")
        _compare("read", lambda: list(jsonl.read(path)), lambda: [json.loads(line) for line in path.open("rb")])
        _compare("write", lambda: jsonl.write(traces, path), lambda: _dump(values, Path(folder) / "bare.jsonl"))
        for times in (1, 10):
            _memory(lines, times, Path(folder) / "grown.jsonl")
    _import_time()


def _traces() -> tuple[list[Trace], str]:
    try:
        return list(load_traces("openpi:train")), "OpenPI train"
    except DataMissingError:
        steps = tuple(f"Do the thing number {n} with great care and a spoon." for n in range(5))
        changes = tuple(
            StateChange(step=n % 5 + 1, entity=f"thing {n}", attribute="state", before="undone", after="done")
            for n in range(37)
        )
        procedures = (Procedure(id=f"p{n}", goal="Do things", steps=steps) for n in range(644))
        return [Trace(procedure=procedure, changes=changes) for procedure in procedures], "made-up traces"


def _dump(values: list[object], path: Path) -> None:
    with path.open("w") as stream:
        for value in values:
            stream.write(json.dumps(value) + "\n")


def _compare(what: str, ours: Callable[[], object], bare: Callable[[], object]) -> None:
    """Best of several runs each, taken in turns, so that a busy machine slows both."""
    best = [float("inf"), float("inf")]
    for _ in range(RUNS):
        for index, function in enumerate((ours, bare)):
            start = time.process_time()  # of the processor: what else the machine does stays out of it
            function()
            best[index] = min(best[index], time.process_time() - start)
    print(f"{what}: fluents {best[0] * 1e3:.0f} ms, json {best[1] * 1e3:.0f} ms: {best[0] / best[1]:.2f}x (target: 6x)")


def _memory(lines: list[bytes], times: int, path: Path) -> None:
    """Peak memory of a process that reads a file of so many times the lines, ids made unique."""
    with path.open("wb") as stream:
        for copy in range(times):
            for line in lines:
                stream.write(line.replace(b'"id":"', b'"id":"%d-' % copy, 1))
    code = (
        "import sys, pathlib, resource; from fluents import jsonl; n = sum(1 for _ in jsonl.read(sys.argv[1]))\n"
        "status = pathlib.Path('/proc/self/status')\n"  # ru_maxrss counts the parent's memory too on Linux
        "peak = [int(l.split()[1]) for l in status.open() if l.startswith('VmHWM')][0] * 1024 if status.exists()"
        " else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(n, peak)"
    )
    out = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    count, peak = out.stdout.split()
    print(f"peak memory reading {count} traces: {int(peak) / 2**20:.0f} MB")


def _import_time() -> None:
    code = "import time; t = time.perf_counter(); import fluents; print(time.perf_counter() - t)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(RUNS)
    ]
    print(f"import fluents: {min(times):.3f} s (target: under 0.3 s)")


if __name__ == "__main__":
    main()
