"""How often llama.cpp and PyTorch write the same greedy answers, in lines.

    python benchmarks/parity.py                              # every size whose weights are on this machine
    python benchmarks/parity.py engine --out FILE.jsonl      # llama.cpp tracks the first procedures of fluents:dev
    python benchmarks/parity.py torch --answers FILE.jsonl   # PyTorch answers the same transcripts

Two commands may run on different machines: the second needs no xllamacpp, and takes a GPU where there is one.

Before each step, the transcript holds llama.cpp's answers to the steps before it, for PyTorch as well: one difference
counts once. PyTorch computes in two ways: as it does (`plain`: 32 bits on a processor, bfloat16 on a GPU), and with
llama.cpp's arithmetic (`engine`). Log-probabilities are of llama.cpp's tokens.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

STEPS = 30
SIZES = ("tiny", "small", "base")
WAYS = ("plain", "engine")


@dataclass(frozen=True)
class Answer:
    """What llama.cpp wrote in a step."""

    size: str
    fresh: bool
    """Whether it is the first step of a procedure."""
    prompt: str
    text: str
    pieces: tuple[str, ...]
    """The tokens of the text. A model may write a word in other tokens than its reader takes for it."""
    ended: bool
    logprobs: tuple[float, ...]
    """Of the tokens, and of the one that ends the answer."""
    most: int
    """Tokens that an answer may have."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.set_defaults(command=None, sizes=SIZES, steps=STEPS, ways=WAYS)
    commands = parser.add_subparsers(dest="command")
    engine = commands.add_parser("engine", help="llama.cpp's answers")
    engine.add_argument("--out", type=Path, required=True)
    torch = commands.add_parser("torch", help="PyTorch's, compared with them")
    torch.add_argument("--answers", type=Path, required=True)
    torch.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    for command in (engine, torch):
        command.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
        command.add_argument("--steps", type=int, default=STEPS, help="at least so many, in whole procedures")
    chosen = parser.parse_args()
    if chosen.command == "torch":
        answers = [Answer(**json.loads(line)) for line in chosen.answers.read_text(encoding="utf-8").splitlines()]
    else:
        answers = [answer for size in _here(chosen.sizes) for answer in track(size, chosen.steps)]
    if chosen.command == "engine":
        lines = [json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in answers]
        chosen.out.write_text("".join(lines), encoding="utf-8")
        return
    print("               steps lines    same  answers  tokens  likeliest  log p differs")
    for size in _here(chosen.sizes):
        procedures = list(by_procedure([answer for answer in answers if answer.size == size], chosen.steps))
        if not procedures:
            print(f"{size}: no answers in the file")
            continue
        for way in chosen.ways:
            found = compare(size, way, procedures)
            print(f"{size:6} {way:7}{found}", flush=True)


def _here(sizes: Sequence[str]) -> Iterator[str]:
    from fluents.weights.base_weights import find, is_here

    for size in sizes:
        if is_here(find(size)):
            yield size
        else:
            print(f"{size}: its base weights are not on this machine")


# llama.cpp


class Recorder:
    """Hands prompts on to an engine, and keeps them with the answers."""

    def __init__(self, engine: Any, size: str) -> None:
        self.engine, self.size = engine, size
        self.answers: list[Answer] = []

    def continue_from(
        self,
        prompt: str,
        sampling: Any,
        seed: int,
        *,
        fresh: bool,
        on_line: Callable[[str], None] | None = None,
        slot: int | None = None,
    ) -> list[Any]:
        written: list[Any] = self.engine.continue_from(prompt, sampling, seed, fresh=fresh, on_line=on_line, slot=slot)
        for one in written:
            pieces = tuple(token.text.decode(errors="replace") for token in one.tokens if token.text)
            logprobs = tuple(token.logprob for token in one.tokens)
            most = sampling.max_tokens
            self.answers.append(Answer(self.size, fresh, prompt, one.text, pieces, one.ended, logprobs, most))
        return written


def track(size: str, steps: int) -> list[Answer]:
    """llama.cpp's answers in the first procedures of dev, as the tracker gets them."""
    from fluents.data import corpus
    from fluents.trackers.transcript import TranscriptSettings, TranscriptTracker, transcript_engine
    from fluents.weights.adapters import open_embedded

    embedded = open_embedded(size)
    with transcript_engine(embedded.base_path(), embedded.adapter.path) as engine:
        recorder = Recorder(engine, size)
        tracker = TranscriptTracker(TranscriptSettings(model=size), model=recorder)
        for gold in corpus.load("dev"):
            if len(recorder.answers) >= steps:
                break
            tracker.track(gold.procedure)
    return recorder.answers


def by_procedure(answers: Sequence[Answer], steps: int) -> Iterator[list[Answer]]:
    """The answers of each procedure, until there are so many steps."""
    starts = [number for number, answer in enumerate(answers) if answer.fresh]
    for start, end in zip(starts, [*starts[1:], len(answers)], strict=True):
        if start < steps:
            yield list(answers[start:end])


# PyTorch


@dataclass
class Comparison:
    """Counts over steps."""

    steps: int = 0
    lines: int = 0
    same_lines: int = 0
    same_answers: int = 0
    tokens: int = 0
    likeliest: int = 0
    differences: list[float] = field(default_factory=list)

    def add(self, answer: Answer, text: str, likeliest: Sequence[bool], logprobs: Sequence[float]) -> None:
        theirs, ours = Counter(answer.text.splitlines()), Counter(text.splitlines())
        self.steps += 1
        self.lines += theirs.total()
        self.same_lines += (theirs & ours).total()
        self.same_answers += answer.text == text
        self.tokens += len(likeliest)
        self.likeliest += sum(likeliest)
        self.differences += [abs(a - b) for a, b in zip(logprobs, answer.logprobs, strict=True)]

    def __str__(self) -> str:
        mean = sum(self.differences) / max(len(self.differences), 1)
        return (
            f"{self.steps:6}{self.lines:6}{self.same_lines / self.lines:8.1%}{self.same_answers / self.steps:9.1%}"
            f"{self.tokens:8}{self.likeliest / self.tokens:11.2%}{mean:15.5f}"
        )


def compare(size: str, way: str, procedures: Sequence[Sequence[Answer]]) -> Comparison:
    """PyTorch's answers to the steps of procedures beside llama.cpp's."""
    import torch

    from fluents.neural.network import best_device
    from fluents.training.base_model import load_engine_model, load_tokenizer
    from fluents.weights.adapters import open_embedded, unpacked

    embedded, device = open_embedded(size), best_device()
    torch.set_float32_matmul_precision("highest")
    if device == "cpu":
        from fluents.trackers.embedded import free_cores

        torch.set_num_threads(free_cores())  # more threads than idle processors wait for each other
    base, adapter = embedded.base_path(), unpacked(embedded.adapter.path)
    tokenizer = load_tokenizer(base)
    model = PlainModel(base, adapter, device) if way == "plain" else load_engine_model(base, adapter, device)
    known = {
        tokenizer.decode([number], skip_special_tokens=False): number for number in range(tokenizer.get_vocab_size())
    }
    found = Comparison()
    with torch.inference_mode():
        for answers in procedures:
            reader = Reader(model, tokenizer, known)
            for answer in answers:
                found.add(answer, *reader.read(answer))
    return found


class PlainModel:
    """The model as PyTorch computes it, with the adapter merged, as for sampling datasets."""

    def __init__(self, base: Path, adapter: Path, device: str) -> None:
        import torch
        from transformers import DynamicCache

        from fluents.training.adapter_file import merge_adapter
        from fluents.training.base_model import load_model

        model = load_model(base, device)
        merge_adapter(model, adapter)
        self.model = model.to(torch.bfloat16 if device == "cuda" else torch.float32).eval()
        self.cache = DynamicCache(config=model.config)
        self.length = 0

    def read(self, tokens: Sequence[int], *, alone: bool = False) -> Any:
        """Read tokens; logits after the last of them, or after each."""
        import torch

        ids = torch.tensor([tokens], device=self.model.device)
        keep = len(tokens) if alone else 1
        found = self.model(input_ids=ids, past_key_values=self.cache, use_cache=True, logits_to_keep=keep)
        self.length += len(tokens)
        return found.logits[0].float()

    def crop(self, length: int) -> None:
        """Forget all but the first tokens."""
        if length < self.length:
            self.cache.crop(length - self.length)
            self.length = length


class Reader:
    """A model that reads what llama.cpp read of a procedure: prompts together, without what was read before, and what
    llama.cpp wrote token by token. As long as llama.cpp's tokens are the likeliest, it would write the same."""

    def __init__(self, model: Any, tokenizer: Any, known: Mapping[str, int]) -> None:
        """`known` are the tokens by their text."""
        from fluents.training.base_model import end_token

        self.model, self.tokenizer, self.known, self.end = model, tokenizer, known, end_token(tokenizer)
        self.held: list[int] = []
        """The tokens that the model has read."""
        model.crop(0)

    def read(self, answer: Answer) -> tuple[str, list[bool], list[float]]:
        """PyTorch's answer to a prompt; of each token of llama.cpp's, whether it is the likeliest, and log p."""
        import torch

        from fluents.training.base_model import encode

        prompt = encode(self.tokenizer, answer.prompt)
        written = [self.known[piece] for piece in answer.pieces]
        expected = [*written, *([self.end] if answer.ended else [])]
        self._keep(prompt)
        rows = [self._read(prompt[len(self.held) :])]
        if len(expected) > 1:
            rows.append(self._read(expected[:-1], alone=True))
        chances = torch.cat(rows).log_softmax(-1).cpu()
        likeliest = chances.argmax(-1).tolist()
        same = [ours == theirs for ours, theirs in zip(likeliest, expected, strict=True)]
        logprobs = [float(chances[number, token]) for number, token in enumerate(expected)]
        if all(same):
            return answer.text, same, logprobs
        number = same.index(False)
        self._keep([*prompt, *expected[: number + 1]])
        ours = self._finish([*expected[:number], likeliest[number]], answer.most)
        self._keep([*prompt, *expected])
        self._read([*prompt, *expected[:-1]][len(self.held) :], alone=True)
        return self.tokenizer.decode(ours, skip_special_tokens=True), same, logprobs

    def _finish(self, ids: list[int], most: int) -> list[int]:
        """The rest of an answer that goes another way than llama.cpp's."""
        while ids[-1] != self.end and len(ids) < most:
            ids.append(int(self._read(ids[-1:]).argmax()))
        return ids

    def _keep(self, ids: Sequence[int]) -> None:
        """Forget what does not begin these tokens, and the last of them in any case."""
        same = 0
        while same < min(len(ids) - 1, len(self.held)) and ids[same] == self.held[same]:
            same += 1
        self.held = self.held[:same]
        self.model.crop(same)

    def _read(self, ids: Sequence[int], *, alone: bool = False) -> Any:
        if not ids:
            return None
        self.held += ids
        return self.model.read(ids, alone=alone)


if __name__ == "__main__":
    main()
