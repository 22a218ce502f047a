"""How fast the embedded tracker is: against transformers' generate with the same weights, in one run.

    python benchmarks/track.py

Both answer the same prompts with the same settings on the same processors: `fast` (the likeliest answer) and `default`
(16 samples a step). Also: the peak memory of a process that tracks, and the time from its start to the first answer.
The comparison needs the extra `train`; the rest does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from fluents.decoding import Sampling
from fluents.errors import MissingExtraError
from fluents.prompts.local import MAX_PROMPT_BYTES, prompt
from fluents.segmentation import read_text, segment
from fluents.trackers import Setting
from fluents.trackers.llama_engine import Engine, free_cores
from fluents.trackers.local import CONTEXT_PER_SLOT, GRAMMAR, SETTINGS
from fluents.weights import ensure
from fluents.weights.adapters import open_adapter
from fluents.weights.gguf_files import merged

SOUP = Path(__file__).parents[1] / "examples" / "tomato_soup.md"
STEPS: dict[Setting, tuple[int, ...]] = {"fast": (1, 2, 3, 4, 5, 6), "default": (2, 3)}
"""Which steps of the example are answered: the slower way, fewer."""

Answering: TypeAlias = Callable[[str, Sampling], list[str]]

TRACK_ONE_STEP = """
import sys
from pathlib import Path
from fluents.segmentation import segment
from fluents.trackers import Listener, open_tracker

class Drafts(Listener):
    def on_draft(self, line):
        print("draft", flush=True)

open_tracker(setting=sys.argv[1]).track(segment(sys.argv[2]), Drafts())
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
print(next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), "unknown"))
"""


def main() -> None:
    model = merged(ensure(), open_adapter("both").path)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
    print(f"{os.cpu_count()} processors, {free_cores()} of them idle, load average {load}\n")
    _processes()
    try:
        reference, count = _transformers(model)
    except MissingExtraError as error:
        print(f"\nno comparison: {error}")
        reference, count = None, None
    print(f"\n{'setting':10}{'':16}{'steps/s':>9}{'tokens/s':>10}")
    for name, steps in STEPS.items():
        ours = _measure(_engine(model, name), name, steps, count)
        print(f"{name:10}{'fluents':16}{ours[0]:9.3f}{_shown(ours[1]):>10}")
        if reference:
            theirs = _measure(reference, name, steps, count)
            print(f"{name:10}{'transformers':16}{theirs[0]:9.3f}{_shown(theirs[1]):>10}")
            times = ours[0] / theirs[0], (ours[1] or 0) / (theirs[1] or 1)
            print(f"{name:10}{'times faster':16}{times[0]:9.1f}{times[1]:10.1f}")


def _processes() -> None:
    """Peak memory, and the time from the start of a process to the first line an answer drafts, and to the first step's
    end, once everything is in the cache."""
    step = "Heat the oil in a large pot."
    print(f"{'setting':10}{'first line':>12}{'first step':>12}{'peak memory':>14}")
    for name in STEPS:
        started = time.perf_counter()
        command = [sys.executable, "-c", TRACK_ONE_STEP, name, step]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            lines = []
            first = 0.0
            for line in process.stdout or ():
                first = first or time.perf_counter() - started
                lines.append(line.strip())
        if process.returncode:
            raise SystemExit(f"tracking with the setting {name} failed")
        print(f"{name:10}{first:10.1f} s{time.perf_counter() - started:10.1f} s{lines[-1]:>11} MB")


def _engine(model: Path, name: Setting) -> Answering:
    slots = min(SETTINGS[name].sampling.samples, 16)
    engine = Engine(model, slots=slots, context=MAX_PROMPT_BYTES + slots * CONTEXT_PER_SLOT)
    return lambda text, sampling: engine.sample(text, sampling, seed=1, grammar=GRAMMAR)


def _measure(
    answer: Answering, name: Setting, steps: tuple[int, ...], count: Callable[[str], int] | None
) -> tuple[float, float | None]:
    """Steps and tokens a second."""
    settings = SETTINGS[name]
    procedure = segment(read_text(SOUP))
    style = settings.voters[0].style
    answer(prompt(procedure, 1, style=style), Sampling(samples=1, temperature=0, max_tokens=2))  # warm
    answers: list[str] = []
    started = time.perf_counter()
    for step in steps:
        answers += answer(prompt(procedure, step, style=style), settings.sampling)
    seconds = time.perf_counter() - started
    return len(steps) / seconds, sum(map(count, answers)) / seconds if count else None


def _shown(tokens: float | None) -> str:
    return "–" if tokens is None else f"{tokens:.0f}"


def _transformers(model: Path) -> tuple[Answering, Callable[[str], int]]:
    """The same weights in torch, 32 bits; and how many tokens a text has."""
    from fluents.training.base_model import END, encode, load_model, load_tokenizer  # says what to install if it must

    torch: Any = import_module("torch")
    torch.set_num_threads(free_cores())
    tokenizer: Any = load_tokenizer(model)
    network: Any = load_model(model, "cpu").eval()

    def answer(text: str, sampling: Sampling) -> list[str]:
        ids = torch.tensor([encode(tokenizer, text)])
        how = {"do_sample": False}
        if sampling.temperature:
            how = {"do_sample": True} | {key: getattr(sampling, key) for key in ("temperature", "top_k", "top_p")}
        with torch.inference_mode():
            made = network.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=sampling.max_tokens,
                num_return_sequences=sampling.samples,
                pad_token_id=END,
                eos_token_id=END,
                **how,
            )
        return [
            str(tokenizer.decode(row[ids.shape[1] :], skip_special_tokens=True, clean_up_tokenization_spaces=False))
            for row in made
        ]

    return answer, lambda text: len(encode(tokenizer, text))


if __name__ == "__main__":
    main()
