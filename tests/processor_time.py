"""How processor time grows with the input: the same on a slow, a fast and a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable

SHORT = 0.25
"""Seconds: of less than this, a difference says nothing."""


def processor_seconds(work: Callable[[], object]) -> float:
    """Of this process; what other programs take does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def assert_not_quadratic(work: Callable[[int], object], size: int) -> None:
    """`work` takes less than ten times as long for `size` as for a quarter: four is linear, sixteen quadratic."""
    work(size // 64)  # what is loaded and compiled once is not measured
    quarter = processor_seconds(lambda: work(size // 4))
    whole = processor_seconds(lambda: work(size))
    assert whole < 10 * max(quarter, SHORT), f"{quarter:.2f} s for a quarter, {whole:.2f} s for the whole"
