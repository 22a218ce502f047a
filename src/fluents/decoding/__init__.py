"""From what a model writes to what a trace holds: sampling, consensus over samples, names and states carried over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """So many answers to one prompt, drawn with temperature, then top-k, then top-p; temperature 0 is the likeliest."""

    samples: int = 16
    temperature: float = 0.9
    top_k: int = 64
    top_p: float = 0.95
    max_tokens: int = 256
