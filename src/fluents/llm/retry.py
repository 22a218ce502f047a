"""When a failed request is sent again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

LONGEST_ASKED_WAIT = 300.0
"""Seconds. If a server asks for a longer wait the run ends with an error that says so."""


@dataclass(frozen=True)
class RetryPolicy:
    """Retries and the pauses before them: doubled each time, with jitter, so that clients that failed together do not
    retry together."""

    retries: int = 6
    first_wait: float = 0.5
    longest_wait: float = 30.0
    sleep: Callable[[float], None] = time.sleep

    def wait(self, attempt: int, asked_for: float | None = None) -> None:
        """Pause after this attempt (counted from 0), at least as long as the server asked for."""
        pause = min(self.first_wait * 2**attempt, self.longest_wait) * random.uniform(0.5, 1.0)
        self.sleep(max(pause, asked_for or 0.0))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds a server asks to wait, as a number or a date; None where it gives neither."""
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
