"""Train an adapter for the embedded model: LoRA on the base model's seven projections, one readable loop."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from fluents.data.datasets import DATASETS
from fluents.data.file_formats import read_traces
from fluents.download import sha256_of
from fluents.errors import InputError, UnknownNameError, needs_extra
from fluents.jsonl import atomic_output
from fluents.neural.network import best_device
from fluents.training.adapter_file import PROJECTIONS, write_adapter
from fluents.training.base_model import encode, end_token, load_model, load_tokenizer
from fluents.training.checkpoint_state import finite, load_state, log_so_far, save_state
from fluents.training.examples import (
    VERSIONS,
    Piece,
    PromptForm,
    TrainingExample,
    digest,
    drawn,
    examples,
    style_of,
    taught_styles,
)
from fluents.weights import BASES
from fluents.weights.adapters import AdapterFacts, base_file

with needs_extra("train"):
    import torch
    from peft import LoraConfig, get_peft_model


@dataclass(frozen=True)
class AdapterSettings:
    """The hyperparameters of a run."""

    epochs: int = 2
    learning_rate: float = 6e-4
    warmup: float = 0.05
    """Share of the updates over which the learning rate rises; then it falls along a cosine."""
    weight_decay: float = 0.01
    batch: int = 8
    rank: int = 16
    scale: float = 2.0
    """LoRA's alpha divided by its rank."""
    dropout: float = 0.0
    unknown_count: float = 0.5
    """Share of prompts for a step that do not give the number of changes."""
    one_pass: float = 0.3
    """Share of prompts for a step that teach sorted answers, for one pass."""
    max_tokens: int = 2048
    seed: int = 1


TRANSCRIPT = {
    "tiny": AdapterSettings(epochs=3, learning_rate=2e-3),
    "small": AdapterSettings(learning_rate=6e-4),
    "base": AdapterSettings(learning_rate=3e-4),
}
"""What was best on `fluents:dev`, by base weights (docs/experiments.md)."""

STEPS = {
    "tiny": AdapterSettings(epochs=3, learning_rate=7e-4, batch=32, rank=32, scale=1.0, max_tokens=1024),
    "base": AdapterSettings(learning_rate=3e-4, batch=32, one_pass=0.15, max_tokens=1024),
}
"""The settings of the shipped adapters for the published metrics, by base weights."""

LOG = "checkpoint.json"
"""The log of an unfinished run."""


@dataclass(frozen=True)
class TaughtTokens:
    """Token ids, and for each whether the model learns to write it."""

    ids: list[int]
    taught: list[bool]


_Tokens = TypeVar("_Tokens", bound=TaughtTokens)

Report = Callable[[dict[str, Any]], None]


def train_adapter(
    data: str | Path | Sequence[str | Path] = ("fluents",),
    out: str | Path = "runs/adapter",
    *,
    model: str | Path = "tiny",
    prompt: PromptForm = "transcript",
    dev: str | Path | Sequence[str | Path] = (),
    epochs: int | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    batch: int | None = None,
    rank: int | None = None,
    dropout: float | None = None,
    unknown_count: float | None = None,
    one_pass: float | None = None,
    seed: int = 1,
    limit: int | None = None,
    report: Report | None = None,
) -> Path:
    """Train an adapter on datasets or files of traces; returns the path of `out`/adapter.gguf, ready to track with.

    A dataset's name ("openpi") means its train split, with its dev split to measure on; `dev` adds files or splits to
    measure on. `model` is the base weights: tiny, small, base or a GGUF file. `prompt` is the form of the examples: one
    transcript of a procedure, as the default tracker reads it, or one prompt for each step, as the settings for the
    published metrics do. What is None is chosen by both. `limit` takes the first examples only. `report` is told of
    every update and epoch. A run that was interrupted goes on after its last whole epoch.

    >>> adapter = fl.train_adapter(data=["fluents", "mine.jsonl"], out="runs/mine")
    >>> trace = fl.track("Boil the water.", adapter=adapter)
    """
    if prompt not in get_args(PromptForm):
        raise UnknownNameError(f"unknown `prompt` {prompt!r}", fix=f"choose one of: {', '.join(get_args(PromptForm))}")
    usual = STEPS.get(str(model), STEPS["tiny"]) if prompt == "steps" else TRANSCRIPT.get(str(model), AdapterSettings())
    settings = replace(usual, seed=seed)
    given: dict[str, Any] = {
        "epochs": epochs,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "batch": batch,
        "rank": rank,
        "dropout": dropout,
        "unknown_count": unknown_count,
        "one_pass": one_pass,
    }
    if prompt == "transcript" and (unused := [name for name in _OF_STEPS if given[name] is not None]):
        raise InputError(
            f"`{unused[0]}` has no effect with `prompt` transcript",
            fix=f"leave out `{unused[0]}`, or set `prompt` to steps",
        )
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
    taught, measured = sources(data, dev)
    several = len(taught) > 1
    return train(
        base_file(model)[0],
        _read_examples(taught, prompt, several)[:limit],
        _read_examples(measured, prompt, several)[:limit],
        Path(out),
        settings,
        report or (lambda _: None),
        data=[Path(source).name for source in taught],
        prompt=prompt,
    )


_OF_STEPS = ("unknown_count", "one_pass")


def sources(data: str | Path | Sequence[str | Path], dev: str | Path | Sequence[str | Path]) -> tuple[list[str], ...]:
    """(what to train on, what to measure on): the splits of datasets, or files."""
    taught, measured = [], [str(source) for source in ([dev] if isinstance(dev, str | Path) else dev)]
    for name in map(str, [data] if isinstance(data, str | Path) else data):
        if name in DATASETS and not Path(name).exists():
            taught.append(f"{name}:train")
            measured += [f"{name}:dev"] if "dev" in DATASETS[name].splits else []
        else:
            taught.append(name)
    return taught, measured


def _read_examples(sources: Sequence[str], form: PromptForm, several: bool) -> list[TrainingExample]:
    """With one source there is one style of annotation, and it needs no name."""
    return [
        example
        for source in sources
        for example in examples(read_traces(source), form, style_of(source) if several else "plain")
    ]


def train(
    base: Path,
    train_examples: Sequence[TrainingExample],
    dev_examples: Sequence[TrainingExample],
    out: Path,
    settings: AdapterSettings,
    report: Report = lambda _: None,
    data: Sequence[str] = (),
    prompt: PromptForm = "transcript",
) -> Path:
    """Train and write `out`/adapter.gguf and `out`/train.json (settings and dev curve). Resumes after the last epoch
    whose checkpoint is there; a finished run is left as it is, one of other settings, base or data is refused.
    `data` names what the examples are from, `prompt` the form they have."""
    if not train_examples:
        raise InputError("the training data contains no changes", fix="give annotated traces as `data`")
    about = {
        "settings": asdict(settings),
        "base": sha256_of(base),
        "data": digest(train_examples),
        "dev": digest(dev_examples),
    }
    log = log_so_far(out / LOG, about)
    run = AdapterRun(base, out, settings)
    run.resume(len(log))
    dev = run.taught(example.pieces() for example in dev_examples)
    per_epoch = math.ceil(len(train_examples) / settings.batch)
    for epoch in range(len(log) + 1, settings.epochs + 1):
        rng = random.Random(f"{settings.seed}-{epoch}")  # of the epoch alone, so that a resumed run draws the same
        torch.manual_seed(settings.seed * 1000 + epoch)
        items = run.taught(
            drawn(example, rng, unknown_count=settings.unknown_count, one_pass=settings.one_pass)
            for example in train_examples
        )
        if not items:
            raise InputError(
                f"every training example is longer than {settings.max_tokens} tokens",
                fix="give shorter procedures as `data`",
            )
        losses, began = [], time.monotonic()
        for number, batch in enumerate(batches(items, settings.batch, rng), start=1):
            losses.append(run.step(batch, (epoch - 1) * per_epoch + number, per_epoch * settings.epochs))
            report(
                {
                    "epoch": epoch,
                    "epochs": settings.epochs,
                    "step": number,
                    "steps": per_epoch,
                    "loss": losses[-1],
                }
            )
        entry = {
            "epoch": epoch,
            "train_loss": round(sum(losses) / len(losses), 4),
            "dev_loss": round(run.dev_loss(dev), 4) if dev else None,
            "seconds": round(time.monotonic() - began, 1),
        }
        log.append(finite(entry))
        report(log[-1])
        run.checkpoint(log, about)
    facts = AdapterFacts(
        base=next((known.release for known in BASES.values() if known.sha256 == about["base"]), base.stem),
        base_sha256=sha256_of(base),
        prompt=VERSIONS[prompt],
        styles=taught_styles(train_examples, settings.one_pass),
        data=tuple(data) or ("unnamed",),
        data_sha256=digest(train_examples),
    )
    return run.finish(facts, {"settings": asdict(settings), "examples": len(train_examples), "log": log})


class AdapterRun:
    """The model, its optimiser and their checkpoints.

    There is a checkpoint after each `unit` of the run, named for it; the last ones are kept, as many as `kept`.
    """

    def __init__(self, base: Path, out: Path, settings: AdapterSettings, *, unit: str = "epoch", kept: int = 1) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.settings, self.out, self._unit, self._kept = settings, out, unit, kept
        self.device = best_device()
        self.device_name = torch.cuda.get_device_name() if self.device == "cuda" else "CPU"
        torch.manual_seed(settings.seed)
        torch.set_float32_matmul_precision("high")
        self.tokenizer = load_tokenizer(base)
        self.end = end_token(self.tokenizer)
        lora = LoraConfig(
            r=settings.rank,
            lora_alpha=round(settings.rank * settings.scale),
            lora_dropout=settings.dropout,
            target_modules=[name.partition(".")[2] for name in PROJECTIONS],
        )
        self.model = get_peft_model(load_model(base, self.device), lora)
        self.model.train()
        self.trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.trained.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    def taught(self, rendered: Iterable[Sequence[Piece]]) -> list[TaughtTokens]:
        """Examples in tokens, without those that are cut before the first that is taught."""
        return [tokens for tokens in map(self.tokens, rendered) if any(tokens.taught)]

    def tokens(self, pieces: Sequence[Piece]) -> TaughtTokens:
        ids: list[int] = []
        taught: list[bool] = []
        for piece in pieces:
            more = encode(self.tokenizer, piece.text) + ([self.end] if piece.taught else [])
            ids += more
            taught += [piece.taught] * len(more)
        return TaughtTokens(ids[: self.settings.max_tokens], taught[: self.settings.max_tokens])

    def step(self, batch: Sequence[TaughtTokens], number: int, total: int) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * _schedule(number, total, self.settings.warmup)
        loss, _ = self._loss(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained.values(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def dev_loss(self, items: Sequence[TaughtTokens]) -> float:
        """Mean loss per target token."""
        self.model.eval()
        near = sorted(items, key=lambda item: len(item.ids))
        total, count = 0.0, 0
        with torch.no_grad():
            for start in range(0, len(near), self.settings.batch):
                loss, tokens = self._loss(near[start : start + self.settings.batch])
                total, count = total + float(loss) * tokens, count + tokens
        self.model.train()
        return total / count

    def _loss(self, batch: Sequence[TaughtTokens]) -> tuple[Any, int]:
        """(mean loss over the target tokens, their number)."""
        found = self.log_probabilities(batch)
        return -found.mean(), len(found)

    def log_probabilities(self, batch: Sequence[TaughtTokens]) -> Any:
        """Of the target tokens of a batch, one after the other; logits are computed for their positions only."""
        width = max(len(tokens.ids) for tokens in batch)
        ids = torch.full((len(batch), width), self.end)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        wanted = torch.zeros((len(batch), width), dtype=torch.bool)
        for row, tokens in enumerate(batch):
            length = len(tokens.ids)
            ids[row, :length] = torch.tensor(tokens.ids)
            mask[row, :length] = 1
            wanted[row, :length] = torch.tensor(tokens.taught)
        ids, mask, wanted = (tensor.to(self.device) for tensor in (ids, mask, wanted))
        causal = self.model.get_base_model()
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            hidden = causal.model(input_ids=ids, attention_mask=mask).last_hidden_state
            logits = causal.lm_head(hidden[:, :-1][wanted[:, 1:]])
        gold = ids[:, 1:][wanted[:, 1:]]
        return -torch.nn.functional.cross_entropy(logits.float(), gold, reduction="none")

    def checkpoint(self, log: Sequence[dict[str, Any]], about: dict[str, Any]) -> None:
        """Save weights and optimiser; the log, written last, says that they are complete."""
        save_state(self.checkpoint_file(len(log)), self.trained, self.optimizer)
        with atomic_output(self.out / LOG) as stream:
            stream.write(json.dumps(about | {"log": list(log)}).encode())
        self.checkpoint_file(len(log) - self._kept).unlink(missing_ok=True)

    def resume(self, number: int) -> None:
        """Load the checkpoint after so many units; nothing for a new run."""
        if number:
            load_state(self.checkpoint_file(number), self.trained, self.optimizer)

    def checkpoint_file(self, number: int) -> Path:
        return self.out / f"{self._unit}-{number}.safetensors"

    def finish(self, facts: AdapterFacts, summary: dict[str, Any]) -> Path:
        """Write adapter.gguf, with these facts, and train.json."""
        adapter = self.out / "adapter.gguf"
        write_adapter(self.model, adapter, self.settings.rank * self.settings.scale, self.out.resolve().name, facts)
        with atomic_output(self.out / "train.json") as stream:
            stream.write((json.dumps(summary | {"device": self.device_name}, indent=1) + "\n").encode())
        return adapter


def batches(items: Sequence[_Tokens], size: int, rng: random.Random) -> Iterator[list[_Tokens]]:
    """Batches of similar length in random order: random enough, with little padding."""
    shuffled = rng.sample(items, len(items))
    pool = size * 40
    cut = []
    for start in range(0, len(shuffled), pool):
        near = sorted(shuffled[start : start + pool], key=lambda item: len(item.ids))
        cut += [near[i : i + size] for i in range(0, len(near), size)]
    yield from rng.sample(cut, len(cut))


def _schedule(step: int, total: int, warmup: float) -> float:
    """The factor of the learning rate at an update, counted from 1."""
    rising = warmup * total
    if step <= rising:
        return step / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1.0, total - rising)))
