"""The log of a run, epoch by epoch, with what the run is of: train.json and train.csv in its folder."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fluents.errors import needs_extra
from fluents.jsonl import atomic_output
from fluents.neural.checkpoint import Trained, weights
from fluents.training.checkpoint_state import finite, log_so_far
from fluents.training.neural_batches import TrainingUnit, digest
from fluents.training.neural_settings import NeuralTrainingSettings
from fluents.version import __version__

with needs_extra("train"):
    import torch

_FILE = "train.json"


def about_run(
    trained: Trained, settings: NeuralTrainingSettings, items: Sequence[TrainingUnit], dev_units: Sequence[TrainingUnit]
) -> dict[str, Any]:
    """What a run is of: two that differ in it are two runs. To be asked before anything is learnt."""
    return {
        "system": trained.card.system,
        "style": trained.card.style,
        "arch": trained.card.arch,
        "settings": asdict(settings),
        "weights": _weights_digest(trained),
        "data": digest(items),
        "dev": digest(dev_units),
    }


def _weights_digest(trained: Trained) -> str:
    """What tells a network's weights, their names and shapes from all others."""
    found = hashlib.sha256()
    for name, value in sorted(weights(trained.network).items()):
        found.update(json.dumps([name, list(value.shape)]).encode())
        found.update(value.detach().cpu().flatten().view(torch.uint8).numpy())
    return found.hexdigest()


class RunLog:
    """What there is to say of every epoch. A run that is in the folder already goes on; another one is refused."""

    def __init__(self, out: Path, settings: NeuralTrainingSettings, about: dict[str, Any]) -> None:
        self.out, self.settings, self.about = out, settings, about
        self.epochs = log_so_far(out / _FILE, about)
        if not self.ended():  # the state to go on from may be older than the log
            del self.epochs[len(self.epochs) - len(self.epochs) % settings.save_every :]

    def ended(self) -> bool:
        """Whether all epochs are done, or the dev metric has not become better for as long as one waits."""
        done = len(self.epochs)
        return done >= self.settings.epochs or 0 < self.settings.patience <= done - self.best

    @property
    def best(self) -> int:
        """The epoch with the best dev metric, counted from 1; the first of equals. 0 for none.

        A value that is no number, as of a run that diverged, is the worst.
        """

        def rank(epoch: int) -> tuple[float, int]:
            value = self.epochs[epoch - 1].get("value")
            return value if isinstance(value, (int, float)) else -math.inf, -epoch

        return max(range(1, len(self.epochs) + 1), key=rank, default=0)

    def add(self, entry: dict[str, Any]) -> None:
        """Another epoch is done."""
        self.epochs.append(finite(entry))

    def write(self) -> None:
        """Put it into the folder."""
        with atomic_output(self.out / "train.csv") as stream:
            stream.write(_csv(self.epochs))
        with atomic_output(self.out / _FILE) as stream:
            summary = self.about | {"version": __version__, "best": self.best, "log": self.epochs}
            stream.write(json.dumps(summary, indent=1).encode() + b"\n")


def _csv(epochs: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, dict.fromkeys(name for entry in epochs for name in entry))
    writer.writeheader()
    writer.writerows(epochs)
    return text.getvalue().encode()
