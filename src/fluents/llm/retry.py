"""How long a request that fails is tried again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

LONGEST_ASKED_WAIT = 300.0
"""Seconds. A server that wants more is told to the user, who may have better plans."""


@dataclass(frozen=True)
class RetryPolicy:
    """Tries after the first, and the pauses between them: doubled each time, with jitter, so that many clients that
    were turned away together do not come back together."""

    retries: int = 6
    first_wait: float = 0.5
    longest_wait: float = 30.0
    sleep: Callable[[float], None] = time.sleep

    def wait(self, attempt: int, asked_for: float | None = None) -> None:
        """Pause before the attempt after this one (counted from 0), at least as long as the server asked for."""
        pause = min(self.first_wait * 2**attempt, self.longest_wait) * random.uniform(0.5, 1.0)
        self.sleep(max(pause, asked_for or 0.0))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds a server asks to wait, said as a number or as a date; None where it says neither."""
    said = headers.get("retry-after", "").strip()
    if not said:
        return None
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(said).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError, TypeError):
            return None
    if seconds != seconds:  # "nan" is a float
        return None
    return max(0.0, seconds)
