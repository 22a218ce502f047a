"""Train the papers' neural systems: one loop on accelerate, for a processor, a GPU or many."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from fluents.data.datasets import DATASETS
from fluents.data.file_formats import read_traces
from fluents.errors import FluentsError, InputError, needs_extra
from fluents.metrics.original import original
from fluents.neural.checkpoint import WEIGHTS, Trained, begin, save_shape, save_weights, weights
from fluents.neural.emem import WithMemory
from fluents.neural.encoding import side_by_side
from fluents.neural.inputs import Style, SystemName
from fluents.neural.network import Network, enough_memory
from fluents.records import Trace
from fluents.trackers.neural import NeuralSettings, traces
from fluents.training.checkpoint_state import load_state, save_state
from fluents.training.neural_batches import TrainingUnit, batches, packed, units
from fluents.training.neural_log import RunLog, about_run
from fluents.training.neural_settings import NeuralTrainingSettings

with needs_extra("train"):
    import torch
    from accelerate import Accelerator, DistributedDataParallelKwargs
    from accelerate.utils import broadcast_object_list
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.lora import LoraLayer
    from torch import nn
    from transformers.pytorch_utils import Conv1D

_SMALLER = "lower `batch` or raise `accumulate`"

Report = Callable[[dict[str, Any]], None]

HUB = {"gpt2": "openai-community/gpt2-medium", "bart": "facebook/bart-large", "t5": "google-t5/t5-base"}
"""Architecture → the model of that kind that is downloaded where none is named."""


def _silent(_: dict[str, Any]) -> None:
    pass


def train_neural(
    out: str | Path,
    model: str | Path | None = None,
    *,
    data: str | Path = "openpi-c",
    dev: str | Path | None = None,
    system: SystemName = "baseline",
    style: Style = "openpi-c",
    arch: str | None = None,
    from_scratch: bool = False,
    download: bool = False,
    limit: int | None = None,
    tensorboard: bool = False,
    settings: NeuralTrainingSettings | None = None,
    report: Report = _silent,
) -> Path:
    """Train one of the papers' systems; returns the folder `out`, a checkpoint to track with.

    `model` is a folder with a transformers model or, with `download`, a name on the hub, where `arch` alone names a
    usual one. `data` is a dataset, which brings its own dev split, or a file of traces; `limit` takes the first
    procedures only. `report` is told of every update and epoch. An interrupted run continues after its last epoch.

    >>> train_neural("runs/emem", "models/bart", system="emem")
    >>> tracker = open_tracker(checkpoint="runs/emem")
    """
    settings = settings or NeuralTrainingSettings()
    source = str(model or (HUB.get(arch or "") if download else None) or "")
    if not source:
        raise InputError(
            "no model to train",
            fix="give the folder of a transformers model as `model`, or set `arch` to bart and add `download`",
        )
    trained = begin(source, system, style, arch=arch, from_scratch=from_scratch, seed=settings.seed, download=download)
    taught, measured = str(data), dev
    if taught in DATASETS and not Path(taught).exists():
        taught, measured = f"{taught}:train", dev or f"{taught}:dev"
    gold = list(read_traces(taught))[:limit]
    held_out = list(read_traces(str(measured)))[:limit] if measured else []
    if tensorboard:
        report = TensorBoardReport(Path(out) / "tensorboard", report)
    return train(trained, gold, held_out, Path(out), settings, report)


def train(
    trained: Trained,
    gold: Sequence[Trace],
    dev: Sequence[Trace],
    out: Path,
    settings: NeuralTrainingSettings,
    report: Report = _silent,
) -> Path:
    """Train into `out`: a checkpoint of the best epoch, train.json and train.csv with the curve.

    A run goes on after the last whole epoch in its folder, bit for bit; a finished run is left as it is.
    """
    items = units(gold, trained.system, trained.card.style, trained.codec)
    if not items:
        raise InputError("the training data contains no changes", fix="give annotated traces as `data`")
    dev_units = units(dev, trained.system, trained.card.style, trained.codec)
    card = replace(trained.card, longest_answer=max(unit.longest for unit in items))
    trained = replace(trained, card=card)
    log = RunLog(out, settings, about_run(trained, settings, items, dev_units))
    if log.ended():
        return out
    run = _Run(trained, dev, dev_units, out, settings)
    run.resume(len(log.epochs))
    if not run.accelerator.is_main_process:
        report = _silent
    while not log.ended():
        log.add(run.epoch(items, len(log.epochs) + 1, report))
        run.keep(log)
        report(log.epochs[-1])
    return out


class _Run:
    """The network, its optimiser, and what is kept of them on disk."""

    def __init__(
        self,
        trained: Trained,
        dev: Sequence[Trace],
        dev_units: Sequence[TrainingUnit],
        out: Path,
        settings: NeuralTrainingSettings,
    ) -> None:
        self.trained, self.dev, self.dev_units, self.out, self.settings = trained, dev, dev_units, out, settings
        handlers = [DistributedDataParallelKwargs(find_unused_parameters=trained.system.memory)]
        self.accelerator = Accelerator(mixed_precision=_precision(settings), kwargs_handlers=handlers)
        torch.set_float32_matmul_precision("high")
        if settings.lora:
            torch.manual_seed(settings.seed)
            add_lora(trained.network, settings.lora)
        with enough_memory("use a smaller model, or a GPU or machine with more free memory"):
            self.network = trained.network.to(self.accelerator.device)
        self.parameters = {name: p for name, p in self.network.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.model = self.accelerator.prepare_model(self.network)
        if self.accelerator.is_main_process:
            out.mkdir(parents=True, exist_ok=True)
            save_shape(trained, out)

    def epoch(self, items: Sequence[TrainingUnit], number: int, report: Report) -> dict[str, Any]:
        """Once through the data; what there is to say of it."""
        # Of the epoch and the process alone, so that a resumed run draws the same.
        torch.manual_seed((self.settings.seed * 1000 + number) * 1000 + self.accelerator.process_index)
        cut = batches(items, self.settings.batch, random.Random(f"{self.settings.seed}-{number}"))
        self.network.train()
        total, began = torch.zeros((), device=self.accelerator.device), time.monotonic()
        with enough_memory(_SMALLER):
            for place, batch in enumerate(cut, start=1):
                self._schedule((number - 1 + (place - 1) / len(cut)) / self.settings.epochs)
                loss = self._update(batch)
                total += loss
                if place % 10 == 0 or place == len(cut):  # reading the loss waits for the device
                    tokens = sum(unit.tokens for unit in batch)
                    report({"epoch": number, "step": place, "steps": len(cut), "loss": float(loss) / tokens})
        seconds = time.monotonic() - began
        every = sum(unit.tokens for unit in items)
        train_loss = float(self.accelerator.reduce(total)) / every
        entry = {"epoch": number, "updates": len(cut), "train_loss": train_loss, **self._measure(number)}
        return entry | {"seconds": round(seconds, 1)}

    def _update(self, batch: Sequence[TrainingUnit]) -> Any:
        """One step of the optimiser; returns this process's share of the summed loss.

        The gradient is of the mean over all tokens of the batch, however it is dealt and cut up.
        """
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        mine = batch[rank::world]
        parts = [mine[start :: self.settings.accumulate] for start in range(min(self.settings.accumulate, len(mine)))]
        share = world / sum(unit.tokens for unit in batch)
        loss = torch.zeros((), device=self.accelerator.device)
        if not parts:  # more processes than units: this one only keeps the others company
            parts, share = [batch[:1]], 0.0
        for number, part in enumerate(parts, start=1):
            with nullcontext() if number == len(parts) else self.accelerator.no_sync(self.model):
                one = self.model(side_by_side([unit.rounds for unit in part]))
                self.accelerator.backward(one * share)
            loss += one.detach() * bool(share)
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss

    def _schedule(self, done: float) -> None:
        """The learning rate after a share of the whole run."""
        rising = self.settings.warmup
        factor = done / rising if done < rising else (1 - done) / (1 - rising)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * factor

    def _measure(self, epoch: int) -> dict[str, Any]:
        """Figures on dev, and the one value, the higher the better, by which weights are kept."""
        self.network.eval()
        metric = self.settings.metric
        figures: dict[str, Any] = {"dev_loss": self._dev_loss() if self.dev_units else None}
        if self.dev_units and metric not in ("loss", "last"):
            figures[metric] = self._dev_f1(metric)
        if not self.dev_units or metric == "last":
            return figures | {"value": epoch}
        return figures | {"value": -figures["dev_loss"] if metric == "loss" else figures[metric]}

    def _dev_loss(self) -> float:
        """The mean loss of a token of dev's answers."""
        total = torch.zeros((), device=self.accelerator.device)
        near = packed(sorted(self.dev_units, key=lambda unit: unit.size), max(32, self.settings.batch))
        with torch.no_grad(), enough_memory(_SMALLER), self.accelerator.autocast():
            for batch in near[self.accelerator.process_index :: self.accelerator.num_processes]:
                total += self.network(side_by_side([unit.rounds for unit in batch]))
        return float(self.accelerator.reduce(total)) / sum(unit.tokens for unit in self.dev_units)

    def _dev_f1(self, matcher: str) -> float:
        """F1 of answers to dev under the original metric, strict; entities, where asked for, are the gold ones."""
        found = [0.0]
        if self.accelerator.is_main_process:
            first = {trace.id: trace for trace in self.dev} if self.trained.system.entity else None
            procedures = [trace.procedure for trace in self.dev]
            with self.accelerator.autocast():
                said = traces(self.trained, procedures, NeuralSettings(seed=self.settings.seed), first=first)
            found = [float(original(self.dev, said, mode="strict", matchers=[matcher])[matcher]["f1"])]
        return float(broadcast_object_list(found)[0])

    def keep(self, log: RunLog) -> None:
        """Write what the run is after an epoch. The log comes last and says that the rest is whole."""
        if self.accelerator.is_main_process:
            epoch = len(log.epochs)
            if log.best == epoch:
                found = merged_weights(self.network) if self.settings.lora else weights(self.network)
                save_weights(found, self.out / WEIGHTS)
            saved = None if log.ended() else self._save_state(epoch)  # nothing goes on from there
            log.write()
            for file in self.out.glob("epoch-*.safetensors"):
                if file.name != saved:
                    file.unlink()
        self.accelerator.wait_for_everyone()

    def _save_state(self, epoch: int) -> str:
        """Write the state after an epoch, when it is time; the name of the state that is good now."""
        last = epoch - epoch % self.settings.save_every
        if last == epoch:
            save_state(self.out / _state_name(epoch), self.parameters, self.optimizer)
        return _state_name(last)

    def resume(self, epoch: int) -> None:
        """Take up the state after an epoch; nothing for a fresh run."""
        if epoch:
            load_state(self.out / _state_name(epoch), self.parameters, self.optimizer)


def _state_name(epoch: int) -> str:
    return f"epoch-{epoch}.safetensors"


def _precision(settings: NeuralTrainingSettings) -> str:
    if settings.precision == "auto":
        return "bf16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "no"
    return "no" if settings.precision == "float32" else "bf16"


class TensorBoardReport:
    """A report that writes the figures of every epoch into a folder for TensorBoard, and then reports on."""

    def __init__(self, folder: Path, report: Report) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise FluentsError(
                "TensorBoard is not installed", fix="pip install tensorboard, or leave out `tensorboard`"
            ) from None
        self.folder, self.report, self._open = folder, report, SummaryWriter
        self._writer: Any = None

    def __call__(self, event: dict[str, Any]) -> None:
        if "train_loss" in event:
            if self._writer is None:  # opened late: of several processes only the first has something to say
                self._writer = self._open(str(self.folder), purge_step=event["epoch"])
            for name, value in event.items():
                if isinstance(value, float):
                    self._writer.add_scalar(name, value, event["epoch"])
            self._writer.flush()
        self.report(event)


# LoRA: a few matrices learn beside frozen weights, and are added to them in the checkpoint

_ADAPTER = "default"
"""The library's name for the only one."""


def add_lora(network: Network, rank: int) -> None:
    """Freeze a network but for LoRA on its linear layers. What belongs to entity memory is new, and learns whole."""
    model = network.model
    config = LoraConfig(
        r=rank, lora_alpha=rank, target_modules=_targets(model), fan_in_fan_out=model.config.model_type == "gpt2"
    )
    inject_adapter_in_model(config, model, adapter_name=_ADAPTER)
    for name, parameter in network.named_parameters():
        parameter.requires_grad = "lora_" in name or ".memory." in name or name.startswith("compress.")


def _targets(model: Any) -> list[str]:
    """The linear layers, without the one that gives the words, and without cross-attention's that read memory too."""
    memory = {part for layer in model.modules() if isinstance(layer, WithMemory) for part in layer.modules()}
    left_out = {model.get_output_embeddings(), *memory}
    return [
        name
        for name, layer in model.named_modules()
        if isinstance(layer, (nn.Linear, Conv1D)) and layer not in left_out
    ]


def merged_weights(network: Network) -> dict[str, Any]:
    """A network's weights under their plain names, with LoRA added. The network is left as it is, to the last bit."""
    found = weights(network)
    for name, layer in network.model.named_modules():
        if isinstance(layer, LoraLayer):
            for own in [key for key in found if key.startswith(f"{name}.lora_")]:
                del found[own]
            for own in [key for key in found if key.startswith(f"{name}.base_layer.")]:
                found[own.replace(".base_layer.", ".")] = found.pop(own)
            weight = found[f"{name}.weight"]
            found[f"{name}.weight"] = weight + layer.get_delta_weight(_ADAPTER).to(weight.dtype)
    return found
