"""Many threads that begin together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS = 20
Found = TypeVar("Found")


def at_once(work: Callable[[], Found]) -> list[Found]:
    """What twenty threads get that call it at the same time."""
    together = threading.Barrier(THREADS)

    def one(_: int) -> Found:
        together.wait()
        return work()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))
