"""The hyperparameters of a training run of the papers' neural systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

DevMetric: TypeAlias = Literal["loss", "exact", "bleu", "rouge", "last"]
"""The metric on dev that chooses the epoch to keep: the loss, an F1 of the answers, or none (keep the last)."""

Precision: TypeAlias = Literal["auto", "bf16", "float32"]


@dataclass(frozen=True)
class NeuralTrainingSettings:
    """The defaults are the papers'."""

    epochs: int = 30
    learning_rate: float = 5e-5
    warmup: float = 0.0
    """Share of the updates over which the learning rate rises; then it falls linearly to zero."""
    weight_decay: float = 0.0
    lora: int = 0
    """Rank of the LoRA matrices; 0 trains all weights instead."""
    batch: int = 8
    """Rows per update, over all processes. With memory, whole procedures of about so many rows."""
    accumulate: int = 1
    """Gradient accumulation: the number of parts a batch is run in, where it does not fit at once."""
    metric: DevMetric = "loss"
    patience: int = 0
    """Early stopping: epochs without a better dev metric after which training ends; 0 for never."""
    save_every: int = 1
    """Epochs between saved states, from which an interrupted run continues: large models take long to write."""
    precision: Precision = "auto"
    """auto is bf16 on a GPU that supports it."""
    seed: int = 1
