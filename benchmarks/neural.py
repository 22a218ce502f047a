"""What entity memory costs: a training step and decoding, with and without it, side by side in one run.

    python benchmarks/neural.py

A BART of random weights (smaller on a processor than on a GPU), one batch, the same questions and answers for both; the
memory holds 32 slots. Both draw the same number of tokens: no answer ends early. The two run in turns, and what is told
is the median of the ratios of neighbours, so that what else the machine does falls on both alike. Encoding the history,
which only memory needs, is counted apart: in training it is no extra work, as a step's own pass gives the states of the
next one's memory. Needs the extra `train`.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from fluents.errors import MissingExtraError
from fluents.neural.encoding import EncodedRow, Span
from fluents.neural.inputs import Decoding

BATCH, QUESTION, ANSWER, SLOTS, HISTORY, DRAWN = 8, 128, 96, 32, 4, 48
REPEATS, WARM_UP = 11, 2
VOCABULARY = 8000
TARGET = 1.5


def main() -> None:
    try:
        from fluents.neural.network import best_device
    except MissingExtraError as error:
        print(f"nothing to measure: {error}")
        return
    torch: Any = import_module("torch")
    device = best_device()
    plain, remembering = (_network(device, memory=memory) for memory in (False, True))
    rows = _rows(SLOTS)
    memory = _memory(remembering)
    size = sum(parameter.numel() for parameter in plain.parameters()) / 1e6
    lengths = f"{QUESTION} tokens asked, {ANSWER} answered, {DRAWN} drawn"
    told = f"{size:.0f} M parameters on {device}, batch {BATCH}, {lengths}, {SLOTS} slots, {REPEATS} repeats"
    print(f"{told}\n\n{'':34}{'baseline':>10}{'emem':>10}{'times':>8}{'target':>8}")

    def step(network: Any, held: Any) -> Callable[[], None]:
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5)

        def run() -> None:
            network.train()
            network.read(rows, held)[0].backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return run

    def draw(network: Any, held: Any, beams: int) -> Callable[[], None]:
        return lambda: network.eval().generate(rows, held, Decoding(beams=beams), DRAWN)

    _compare("training step", step(plain, None), step(remembering, memory))
    _compare("decoding, greedy", draw(plain, None, 1), draw(remembering, memory, 1))
    _compare("decoding, beam 4", draw(plain, None, 4), draw(remembering, memory, 4))
    with torch.no_grad():
        seconds = statistics.median(_seconds(lambda: _memory(remembering))[0])
    print(f"{f'history of {HISTORY} steps, at decoding':34}{'–':>10}{seconds * 1000:7.0f} ms")


def _compare(what: str, plain: Callable[[], None], remembering: Callable[[], None]) -> None:
    taken = _seconds(plain, remembering)
    times = statistics.median(with_memory / without for without, with_memory in zip(*taken, strict=True))
    ours = [statistics.median(seconds) * 1000 for seconds in taken]
    verdict = "met" if times <= TARGET else "missed"
    print(f"{what:34}{ours[0]:7.0f} ms{ours[1]:7.0f} ms{times:8.2f}{verdict:>8}")


def _seconds(*functions: Callable[[], object]) -> list[list[float]]:
    """What each repetition of each function takes, in turns; who is first changes from turn to turn."""
    torch: Any = import_module("torch")
    seconds: list[list[float]] = [[] for _ in functions]
    for repeat in range(WARM_UP + REPEATS):
        in_order = list(zip(seconds, functions, strict=True))
        for taken, function in in_order if repeat % 2 else reversed(in_order):
            started = time.perf_counter()
            function()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if repeat >= WARM_UP:
                taken.append(time.perf_counter() - started)
    return seconds


def _network(device: str, *, memory: bool) -> Any:
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    from fluents.neural.network import Network

    torch.manual_seed(1)
    size, layers = (1024, 12) if device == "cuda" else (256, 4)
    shape = {f"{side}_{what}": value for side in ("encoder", "decoder") for what, value in _side(size, layers).items()}
    config = transformers.BartConfig(vocab_size=VOCABULARY, d_model=size, max_position_embeddings=256, **shape)
    config.eos_token_id = None  # so that every answer is as long as it may be
    return Network(transformers.BartForConditionalGeneration(config), memory=memory).to(device)


def _side(size: int, layers: int) -> dict[str, int]:
    return {"layers": layers, "attention_heads": size // 64, "ffn_dim": size * 4}


def _rows(slots: int, first: int = 0) -> list[EncodedRow]:
    """A row for each procedure of the batch, whose answer changes slots `first` to `slots`."""
    rng = random.Random(1)
    told = slots - first
    spans = [
        Span((f"entity {first + number}", "state"), number * ANSWER // told, (number + 1) * ANSWER // told)
        for number in range(told)
    ]
    return [EncodedRow(owner, _ids(rng, QUESTION), _ids(rng, ANSWER), tuple(spans)) for owner in range(BATCH)]


def _ids(rng: random.Random, count: int) -> tuple[int, ...]:
    return tuple(rng.randrange(4, VOCABULARY) for _ in range(count))


def _memory(network: Any) -> Any:
    """A full memory, from as many steps of history as are said above."""
    torch: Any = import_module("torch")
    memory = network.eval().empty_memory(BATCH)
    each = SLOTS // HISTORY
    with torch.no_grad():
        for step in range(HISTORY):
            rows = _rows((step + 1) * each, step * each)
            memory.update(rows, network.read(rows, memory)[1], network.compress)
    return memory


if __name__ == "__main__":
    main()
