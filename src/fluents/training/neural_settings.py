"""The knobs of a training run of the papers' neural systems."""

from __future__ import annotations

from dataclasses import dataclass

METRICS = ("loss", "exact", "bleu", "rouge", "last")
"""What the kept weights are the best in, on dev: loss, an F1 of the answers, or none, and the last are kept."""


@dataclass(frozen=True)
class NeuralTrainingSettings:
    """Every knob of a run. The defaults are the papers'."""

    epochs: int = 30
    learning_rate: float = 5e-5
    warmup: float = 0.0
    """Share of the updates over which the rate rises; then it falls to nothing in a straight line."""
    weight_decay: float = 0.0
    lora: int = 0
    """The rank of LoRA's matrices; 0 for none, and every weight learns."""
    batch: int = 8
    """Rows an update, over all processes. With memory, whole procedures of about so many rows."""
    accumulate: int = 1
    """Parts an update's batch is run in, where it does not fit at once."""
    metric: str = "loss"
    patience: int = 0
    """Epochs without a better dev metric after which training ends; 0 for never."""
    save_every: int = 1
    """Epochs between states that a broken run goes on from: large models take long to write."""
    precision: str = "auto"
    """bf16, float32, or auto: bf16 on a GPU that has it."""
    seed: int = 1
