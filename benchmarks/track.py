"""How fast the embedded tracker is, for each size whose weights are on this machine, in one run.

    python benchmarks/track.py              # all sizes
    python benchmarks/track.py tiny small   # these
    python benchmarks/track.py base --draft # also: whether `small` drafting for `base` pays

For one pass over a procedure of twelve steps: seconds a step, against a bare loop over the engine with the same prompts
and tokens; the first step against the twelfth; eight samples against one pass; the peak memory of a process that
tracks.
Ratios are of the processor's time, so that what else the machine does stays out of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fluents.data import corpus
from fluents.prompts.transcript import Transcript
from fluents.records import Procedure, StateChange
from fluents.trackers.embedded import Engine, Sampling, WrittenAnswer, free_cores
from fluents.trackers.transcript import TranscriptSettings, TranscriptTracker, transcript_engine
from fluents.weights.adapters import EmbeddedModel, open_embedded
from fluents.weights.base_weights import BASES, find, is_here

STEPS = 12
TOKENS = 48
"""Written where the first step is compared with the last."""

TRACK_ONE_STEP = """
import sys
from pathlib import Path
from fluents.records import Procedure
from fluents.trackers import open_tracker

open_tracker(model=sys.argv[1]).track(Procedure(goal="Fry an egg", steps=("Heat the oil in a large pan.",)))
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
print(next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), "unknown"))
"""


class Recorded:
    """The engine, remembering for each procedure the prompts and how many tokens were written."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.asked: list[list[tuple[str, int]]] = []
        self._of: dict[int | None, list[tuple[str, int]]] = {}

    def continue_from(
        self,
        prompt: str,
        sampling: Sampling,
        seed: int,
        *,
        fresh: bool,
        on_line: Callable[[str], None] | None = None,
        slot: int | None = None,
    ) -> list[WrittenAnswer]:
        answers = self.engine.continue_from(prompt, sampling, seed, fresh=fresh, on_line=on_line, slot=slot)
        if fresh:
            self._of[slot] = []
            self.asked.append(self._of[slot])
        self._of[slot].append((prompt, len(answers[0].tokens)))
        return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sizes", nargs="*", default=list(BASES))
    parser.add_argument("--draft", action="store_true", help="try `small` as a draft model for `base`")
    chosen = parser.parse_args()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
    print(f"{os.cpu_count()} processors, {free_cores()} of them idle, load average {load}")
    procedure = next(t.procedure for t in corpus.load("train") if len(t.procedure.steps) >= STEPS)
    procedure = procedure.replace(steps=procedure.steps[:STEPS])
    for size in chosen.sizes:
        if is_here(find(size)):
            measure(size, procedure)
        else:
            print(f"\n{size}: its weights are not on this machine")
    if chosen.draft:
        draft(procedure)


def measure(size: str, procedure: Procedure) -> None:
    embedded = open_embedded(size)
    print(f"\n{size}")
    with transcript_engine(embedded.base_path(), embedded.adapter.path) as engine:
        bare(engine, [("\n", 1)])  # warm
        seconds, ours, theirs, asked, changes = _best_of(size, engine, procedure)
        written = sum(tokens for _, tokens in asked)
        print(f"  a step: {seconds / STEPS:.2f} s, {written / STEPS:.0f} tokens written")
        print(f"  against a bare loop over the engine: {ours / theirs:.2f} times (target: 1.15)")
        first, last = _first_and_last(engine, procedure, changes)
        print(f"  step 1: {first:.2f} s, step {STEPS}: {last:.2f} s: {last / first:.2f} times (target: 1.3)")
    _samples(size, embedded, procedure)
    command = [sys.executable, "-c", TRACK_ONE_STEP, size]
    peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    print(f"  peak memory: {peak} MB (target: {find(size).memory // 10**6})", flush=True)


def _best_of(
    size: str, engine: Engine, procedure: Procedure, runs: int = 2
) -> tuple[float, float, float, list[tuple[str, int]], tuple[StateChange, ...]]:
    """The least seconds of tracking; the least processor time of it and of the bare loop, taken in turns; what was
    asked; and the changes."""
    seconds = ours = theirs = float("inf")
    for _ in range(runs):
        recorded = Recorded(engine)
        tracker = TranscriptTracker(TranscriptSettings(model=size, min_confidence=0), recorded)
        started, busy = time.perf_counter(), time.process_time()
        changes = tracker.track(procedure).changes
        seconds, ours = min(seconds, time.perf_counter() - started), min(ours, time.process_time() - busy)
        [asked] = recorded.asked
        theirs = min(theirs, bare(engine, asked)[0])
    return seconds, ours, theirs, asked, changes


def bare(engine: Engine, asked: list[tuple[str, int]]) -> tuple[float, dict[str, float]]:
    """Seconds of the processor that llama.cpp alone takes for these prompts and numbers of tokens; and its own timings,
    added up."""
    server: Any = engine._server
    timings: dict[str, float] = {}

    def receive(answer: Any) -> bool:
        for name, value in ((answer[0] if isinstance(answer, list) else answer).get("timings") or {}).items():
            timings[name] = timings.get(name, 0) + value
        return False

    started = time.process_time()
    for number, (prompt, tokens) in enumerate(asked):
        request = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": False, "id_slot": 0}
        server.handle_completions(request | {"cache_prompt": number > 0}, receive)
    return time.process_time() - started, timings


def _first_and_last(engine: Engine, procedure: Procedure, changes: tuple[StateChange, ...]) -> tuple[float, float]:
    """Seconds of the processor to read a step and to write so many tokens, as the first step and as the last.

    The step has the same text in both places, and what stands before it was read already.
    """
    seconds = []
    for place in (1, STEPS):
        steps = (*procedure.steps[: place - 1], procedure.steps[0])
        transcript = Transcript(procedure.replace(steps=steps))
        for step in range(1, place):
            transcript.answer(change for change in changes if change.step == step)
        before = transcript.prompt.removesuffix(f"Step {place}: {procedure.steps[0]}\n")
        bare(engine, [(before, 1)])
        started = time.process_time()
        request = {"prompt": transcript.prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
        engine._server.handle_completions(request | {"id_slot": 0, "cache_prompt": True}, lambda _: False)
        seconds.append(time.process_time() - started)
    return seconds[0], seconds[1]


def _samples(size: str, embedded: EmbeddedModel, procedure: Procedure, count: int = 8) -> None:
    """Eight samples against one pass, over the first steps."""
    few = procedure.replace(steps=procedure.steps[:3])
    seconds: list[float] = []
    busy: list[float] = []
    for samples in (1, count):
        with transcript_engine(embedded.base_path(), embedded.adapter.path, samples) as engine:
            tracker = TranscriptTracker(TranscriptSettings(model=size, samples=samples), engine)
            started, before = time.perf_counter(), time.process_time()
            tracker.track(few)
            seconds.append(time.perf_counter() - started)
            busy.append(time.process_time() - before)
    print(f"  {count} samples: {seconds[1] / len(few.steps):.2f} s a step, {busy[1] / busy[0]:.1f} times one pass")


def draft(procedure: Procedure) -> None:
    """Whether the bare loop for `base` is faster where `small`, without an adapter, drafts tokens for it."""
    import xllamacpp

    if not (is_here(find("base")) and is_here(find("small"))):
        print("\ndrafting needs the weights of base and small on this machine")
        return
    embedded = open_embedded("base")
    few = procedure.replace(steps=procedure.steps[:4])
    with transcript_engine(embedded.base_path(), embedded.adapter.path) as engine:
        recorded = Recorded(engine)
        TranscriptTracker(TranscriptSettings(model="base"), recorded).track(few)
        [asked] = recorded.asked
        plain, _ = bare(engine, asked)
    kinds = xllamacpp.common_speculative_type
    params = xllamacpp.CommonParams()
    params.model.path = str(embedded.base_path())
    params.verbosity = -1
    params.n_parallel = 1
    params.n_ctx = 2048
    params.cache_ram_mib = 0
    params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(embedded.adapter.path), 1.0)]
    params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
    params.speculative.draft.mparams.path = str(Path(find("small").path))
    for threads in (params.cpuparams, params.cpuparams_batch, params.speculative.draft.cpuparams):
        threads.n_threads = free_cores()
    with transcript_engine(embedded.base_path(), embedded.adapter.path) as engine:
        engine._server = xllamacpp.Server(params)
        bare(engine, [("\n", 1)])
        drafted, timings = bare(engine, asked)
    accepted = timings.get("draft_n_accepted", 0) / max(timings.get("draft_n", 0), 1)
    print(f"\nbase with small drafting: {drafted / plain:.2f} times the time, {accepted:.0%} of the drafts accepted")


if __name__ == "__main__":
    main()
