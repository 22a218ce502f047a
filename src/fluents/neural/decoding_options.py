"""How a network's answers are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Decoding:
    """How answers are drawn: greedily, by beam search, or by sampling where top-k or top-p is given."""

    beams: int = 4
    top_k: int | None = None
    top_p: float | None = None
    length_penalty: float = 1.0
    """Over 1, beam search prefers longer answers: more changes."""

    def options(self) -> dict[str, Any]:
        """As the library's `generate` takes them."""
        if self.top_k is not None or self.top_p is not None:
            return {
                "do_sample": True,
                "top_k": self.top_k or 0,
                "top_p": 1.0 if self.top_p is None else self.top_p,
            }
        if self.beams == 1:
            return {"do_sample": False}
        return {"do_sample": False, "num_beams": self.beams, "length_penalty": self.length_penalty}
