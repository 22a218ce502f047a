"""Train an adapter for the embedded model: LoRA on the base model's seven projections, one readable loop."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fluents.data.datasets import DATASETS
from fluents.data.file_formats import read_traces
from fluents.download import sha256_of
from fluents.errors import InputError, needs_extra
from fluents.jsonl import atomic_output
from fluents.neural.network import best_device
from fluents.prompts.local import VERSION
from fluents.training.adapter_file import PROJECTIONS, write_adapter
from fluents.training.base_model import END, encode, load_model, load_tokenizer
from fluents.training.checkpoint_state import finite, load_state, log_so_far, save_state
from fluents.training.examples import TrainingExample, digest, examples, render, render_fixed, style_of, taught_styles
from fluents.weights import BASES, ensure
from fluents.weights.adapters import AdapterFacts

with needs_extra("train"):
    import torch
    from peft import LoraConfig, get_peft_model


@dataclass(frozen=True)
class AdapterSettings:
    """The hyperparameters of a run. The defaults are those of the shipped adapters."""

    epochs: int = 3
    learning_rate: float = 7e-4
    warmup: float = 0.05
    """Share of the updates over which the learning rate rises; then it falls along a cosine."""
    weight_decay: float = 0.01
    batch: int = 32
    rank: int = 32
    dropout: float = 0.0
    unknown_count: float = 0.5
    """Share of prompts that do not give the number of changes."""
    one_pass: float = 0.3
    """Share of examples that teach sorted answers, for one pass."""
    max_tokens: int = 1024
    seed: int = 1


_LOG = "checkpoint.json"

Tokens = tuple[list[int], int]
"""Token ids, and the index at which the target begins."""

Report = Callable[[dict[str, Any]], None]


def train_adapter(
    data: str | Path | Sequence[str | Path] = ("openpi",),
    out: str | Path = "runs/adapter",
    *,
    dev: str | Path | Sequence[str | Path] = (),
    epochs: int = AdapterSettings.epochs,
    learning_rate: float = AdapterSettings.learning_rate,
    weight_decay: float = AdapterSettings.weight_decay,
    batch: int = AdapterSettings.batch,
    rank: int = AdapterSettings.rank,
    dropout: float = AdapterSettings.dropout,
    unknown_count: float = AdapterSettings.unknown_count,
    one_pass: float = AdapterSettings.one_pass,
    seed: int = AdapterSettings.seed,
    limit: int | None = None,
    report: Report | None = None,
) -> Path:
    """Train an adapter on datasets or files of traces; returns the path of `out`/adapter.gguf, ready to track with.

    A dataset's name ("openpi") means its train split, with its dev split to measure on; `dev` adds files or splits to
    measure on. `limit` takes the first examples only. `report` is told of every update and epoch. A run that was
    interrupted goes on after its last whole epoch.

    >>> adapter = fl.train_adapter(data=["openpi", "mine.jsonl"], out="runs/mine")
    >>> trace = fl.track("Boil the water.", adapter=adapter)
    """
    settings = AdapterSettings(
        epochs=epochs,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        batch=batch,
        rank=rank,
        dropout=dropout,
        unknown_count=unknown_count,
        one_pass=one_pass,
        seed=seed,
    )
    taught, measured = _sources(data, dev)
    several = len(taught) > 1
    return train(
        ensure("tiny"),
        _read_examples(taught, several)[:limit],
        _read_examples(measured, several)[:limit],
        Path(out),
        settings,
        report or (lambda _: None),
        data=[Path(source).name for source in taught],
    )


def _sources(data: str | Path | Sequence[str | Path], dev: str | Path | Sequence[str | Path]) -> tuple[list[str], ...]:
    """(what to train on, what to measure on)."""
    taught, measured = [], [str(source) for source in ([dev] if isinstance(dev, str | Path) else dev)]
    for name in map(str, [data] if isinstance(data, str | Path) else data):
        if name in DATASETS and not Path(name).exists():
            taught.append(f"{name}:train")
            measured += [f"{name}:dev"] if "dev" in DATASETS[name].splits else []
        else:
            taught.append(name)
    return taught, measured


def _read_examples(sources: Sequence[str], several: bool) -> list[TrainingExample]:
    """With one source there is one style of annotation, and it needs no name."""
    return [
        example
        for source in sources
        for example in examples(read_traces(source), style_of(source) if several else "plain")
    ]


def train(
    base: Path,
    train_examples: Sequence[TrainingExample],
    dev_examples: Sequence[TrainingExample],
    out: Path,
    settings: AdapterSettings,
    report: Report = lambda _: None,
    data: Sequence[str] = (),
) -> Path:
    """Train and write `out`/adapter.gguf and `out`/train.json (settings and dev curve). Resumes after the last epoch
    whose checkpoint is there; a finished run is left as it is, one of other settings, base or data is refused.
    `data` names what the examples are from."""
    about = {
        "settings": asdict(settings),
        "base": sha256_of(base),
        "data": digest(train_examples),
        "dev": digest(dev_examples),
    }
    log = log_so_far(out / _LOG, about)
    run = _Run(base, out, settings)
    run.resume(len(log))
    dev = run.taught(map(render_fixed, dev_examples))
    per_epoch = math.ceil(len(train_examples) / settings.batch)
    for epoch in range(len(log) + 1, settings.epochs + 1):
        rng = random.Random(f"{settings.seed}-{epoch}")  # of the epoch alone, so that a resumed run draws the same
        torch.manual_seed(settings.seed * 1000 + epoch)
        rendered = (
            render(example, rng, unknown_count=settings.unknown_count, one_pass=settings.one_pass)
            for example in train_examples
        )
        items = run.taught(rendered)
        if not items:
            raise InputError("no training example fits into `max_tokens`")
        losses, began = [], time.monotonic()
        for number, batch in enumerate(_batches(items, settings.batch, rng), start=1):
            losses.append(run.step(batch, (epoch - 1) * per_epoch + number, per_epoch * settings.epochs))
            report({"epoch": epoch, "step": number, "steps": per_epoch, "loss": losses[-1]})
        entry = {
            "epoch": epoch,
            "train_loss": round(sum(losses) / len(losses), 4),
            "dev_loss": round(run.dev_loss(dev), 4) if dev else None,
            "seconds": round(time.monotonic() - began, 1),
        }
        log.append(finite(entry))
        report(log[-1])
        run.checkpoint(log, about)
    adapter = out / "adapter.gguf"
    facts = AdapterFacts(
        base=next((known.release for known in BASES.values() if known.sha256 == about["base"]), base.stem),
        base_sha256=sha256_of(base),
        prompt=VERSION,
        styles=taught_styles(train_examples, settings.one_pass),
        data=tuple(data) or ("unnamed",),
        data_sha256=digest(train_examples),
    )
    write_adapter(run.model, adapter, settings.rank, out.resolve().name, facts)
    summary = {"settings": asdict(settings), "examples": len(train_examples), "device": run.device_name, "log": log}
    (out / "train.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return adapter


class _Run:
    """The model, its optimiser and their checkpoints."""

    def __init__(self, base: Path, out: Path, settings: AdapterSettings) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.settings, self.out = settings, out
        self.device = best_device()
        self.device_name = torch.cuda.get_device_name() if self.device == "cuda" else "CPU"
        torch.manual_seed(settings.seed)
        torch.set_float32_matmul_precision("high")
        self.tokenizer = load_tokenizer(base)
        lora = LoraConfig(
            r=settings.rank,
            lora_alpha=settings.rank,
            lora_dropout=settings.dropout,
            target_modules=[name.partition(".")[2] for name in PROJECTIONS],
        )
        self.model = get_peft_model(load_model(base, self.device), lora)
        self.model.train()
        self.trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.trained.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    def taught(self, pairs: Iterable[tuple[str, str]]) -> list[Tokens]:
        """Prompts and targets in tokens, without those whose prompt leaves no room for the target."""
        return [tokens for tokens in (self.tokens(*pair) for pair in pairs) if tokens[1] < len(tokens[0])]

    def tokens(self, prompt: str, target: str) -> Tokens:
        before = encode(self.tokenizer, prompt)
        return (before + encode(self.tokenizer, target) + [END])[: self.settings.max_tokens], len(before)

    def step(self, batch: Sequence[Tokens], number: int, total: int) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * _schedule(number, total, self.settings.warmup)
        loss, _ = self._loss(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained.values(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def dev_loss(self, items: Sequence[Tokens], size: int = 64) -> float:
        """Mean loss per target token."""
        self.model.eval()
        near = sorted(items, key=lambda item: len(item[0]))
        total, count = 0.0, 0
        with torch.no_grad():
            for start in range(0, len(near), size):
                loss, tokens = self._loss(near[start : start + size])
                total, count = total + float(loss) * tokens, count + tokens
        self.model.train()
        return total / count

    def _loss(self, batch: Sequence[Tokens]) -> tuple[Any, int]:
        """(mean loss over the target tokens, their number); logits are computed for those positions only."""
        width = max(len(ids) for ids, _ in batch)
        ids = torch.full((len(batch), width), END)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        wanted = torch.zeros((len(batch), width), dtype=torch.bool)
        for row, (tokens, start) in enumerate(batch):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            mask[row, : len(tokens)] = 1
            wanted[row, start : len(tokens)] = True
        ids, mask, wanted = (tensor.to(self.device) for tensor in (ids, mask, wanted))
        causal = self.model.get_base_model()
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            hidden = causal.model(input_ids=ids, attention_mask=mask).last_hidden_state
            logits = causal.lm_head(hidden[:, :-1][wanted[:, 1:]])
        gold = ids[:, 1:][wanted[:, 1:]]
        return torch.nn.functional.cross_entropy(logits.float(), gold), len(gold)

    def checkpoint(self, log: Sequence[dict[str, Any]], about: dict[str, Any]) -> None:
        """Save weights and optimiser after an epoch; the log, written last, says that they are complete."""
        save_state(self.out / f"epoch-{len(log)}.safetensors", self.trained, self.optimizer)
        with atomic_output(self.out / _LOG) as stream:
            stream.write(json.dumps(about | {"log": list(log)}).encode())
        (self.out / f"epoch-{len(log) - 1}.safetensors").unlink(missing_ok=True)

    def resume(self, epoch: int) -> None:
        """Load the checkpoint of an epoch; nothing for a new run."""
        if epoch:
            load_state(self.out / f"epoch-{epoch}.safetensors", self.trained, self.optimizer)


def _batches(items: Sequence[Tokens], size: int, rng: random.Random) -> Iterator[list[Tokens]]:
    """Batches of similar length in random order: random enough, with little padding."""
    shuffled = rng.sample(items, len(items))
    pool = size * 40
    cut = []
    for start in range(0, len(shuffled), pool):
        near = sorted(shuffled[start : start + pool], key=lambda item: len(item[0]))
        cut += [near[i : i + size] for i in range(0, len(near), size)]
    yield from rng.sample(cut, len(cut))


def _schedule(step: int, total: int, warmup: float) -> float:
    """The factor of the learning rate at an update, counted from 1."""
    rising = warmup * total
    if step <= rising:
        return step / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1.0, total - rising)))
