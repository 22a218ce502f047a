"""What a run used: requests, tokens, and its cost where prices are known."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, replace
from typing import Any

from fluents.text.names import counted


@dataclass(frozen=True)
class Prices:
    """Per million tokens, in any currency. None are built in: they change."""

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
    """Answers cut off at their maximum length, those from the cache among them."""
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens_in: int = 0
    """What the answers from the cache took when they were asked for; likewise `cached_tokens_out`."""
    cached_tokens_out: int = 0
    refused: tuple[str, ...] = ()
    """Parameters the endpoint refused, so that answers came without them."""

    def cost(self, prices: Prices) -> float:
        """In the currency of the prices."""
        return (self.tokens_in * prices.tokens_in + self.tokens_out * prices.tokens_out) / 1e6

    def summary(self, prices: Prices | None = None) -> str:
        """One line for people."""
        parts = [counted(self.requests, "request") + (f" ({self.retried} retried)" if self.retried else "")]
        if self.cached:
            parts.append(f"{counted(self.cached, 'answer')} from the cache")
        if self.failed:
            parts.append(f"{counted(self.failed, 'prompt')} without an answer")
        if self.requests:
            parts.append(f"{counted(self.tokens_in, 'input token')}, {counted(self.tokens_out, 'output token')}")
        if prices is not None:
            parts.append(f"cost {self.cost(prices):.4f}")
        return ", ".join(parts)

    def as_dict(self, prices: Prices | None = None) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | ({} if prices is None else {"cost": self.cost(prices)})


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
