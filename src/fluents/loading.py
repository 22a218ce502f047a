"""Loading something large once, whoever needs it first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Loaded = TypeVar("Loaded")


def load_once(load: Callable[[], Loaded]) -> Callable[[], Loaded]:
    """A loader that loads at its first call. Threads that call it meanwhile wait for the same value.

    With `functools.cache`, each of them would load a copy of its own: forty requests at once, forty models.

    >>> @load_once
    ... def weights() -> dict[str, float]:
    ...     return json.loads(Path("weights.json").read_text())
    """
    lock = threading.Lock()
    values: list[Loaded] = []

    @wraps(load)
    def loaded() -> Loaded:
        with lock:
            if not values:
                values.append(load())
            return values[0]

    return loaded
