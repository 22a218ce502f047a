"""Trackers: a procedure in, a trace out. Each is an input builder and a parser; a model is a callable behind it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol

from fluents.errors import UnknownNameError
from fluents.records import Procedure, Trace

OnStep = Callable[[int, int], None]
"""Called with (steps done, steps in all) while a procedure is tracked."""


class Tracker(Protocol):
    """What every tracker can do."""

    def track(self, procedure: Procedure, on_step: OnStep | None = None) -> Trace:
        """The changes of every step of a procedure."""
        ...


TRACKERS = {
    "local": "fluents.trackers.local:LocalTracker",
    "llm": "fluents.trackers.llm.tracker:LlmTracker",
    "neural": "fluents.trackers.neural:NeuralTracker",
}
"""Name → "module:class"."""


def load(name: str) -> Callable[..., Tracker]:
    """The class behind a tracker's name."""
    if name not in TRACKERS:
        raise UnknownNameError(f"there is no tracker {name!r}", fix=f"one of: {', '.join(TRACKERS)}")
    module, _, cls = TRACKERS[name].partition(":")
    found: Callable[..., Tracker] = getattr(import_module(module), cls)
    return found
