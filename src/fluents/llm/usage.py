"""What a run used: requests, tokens, and money where prices are known."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True)
class Prices:
    """For a million tokens, in whatever currency the user thinks in. None are built in: they change."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0


@dataclass(frozen=True)
class Usage:
    """Counts of a run. Tokens are those the endpoint reports, of answers that were not in the cache."""

    requests: int = 0
    """Sent, those that failed among them."""
    cached: int = 0
    """Answers that needed no request."""
    retried: int = 0
    failed: int = 0
    """Questions that got no answer."""
    cut: int = 0
    """Answers that ended because they had no more tokens left, those from the cache among them."""
    tokens_in: int = 0
    tokens_out: int = 0

    def cost(self, prices: Prices) -> float:
        """In the currency of the prices."""
        return (self.tokens_in * prices.tokens_in + self.tokens_out * prices.tokens_out) / 1e6

    def summary(self, prices: Prices | None = None) -> str:
        """One line for people."""
        text = (
            f"{self.requests} requests ({self.retried} retried, {self.failed} questions without an answer), "
            f"{self.cached} answers from the cache, {self.tokens_in} tokens in, {self.tokens_out} out"
        )
        return text if prices is None else f"{text}, cost {self.cost(prices):.4f}"

    def as_dict(self, prices: Prices | None = None) -> dict[str, int | float]:
        """For JSON."""
        counts: dict[str, int | float] = asdict(self)
        return counts if prices is None else counts | {"cost": self.cost(prices)}


class Meter:
    """Counts while threads ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usage = Usage()

    def add(self, **counts: int) -> None:
        with self._lock:
            sums = {name: getattr(self._usage, name) + count for name, count in counts.items()}
            self._usage = replace(self._usage, **sums)

    @property
    def usage(self) -> Usage:
        return self._usage
