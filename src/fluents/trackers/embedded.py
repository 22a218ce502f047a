"""What trackers with an embedded model share: a procedure step by step, and engines that stay loaded."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from fluents.records import Procedure, Reject, StateChange, Trace
from fluents.segmentation import warn_of_language
from fluents.trackers import Listener, Tracker
from fluents.trackers.llama_engine import Engine
from fluents.weights.adapters import ADAPTERS, Adapter

LANGUAGES = ("en",)
"""The languages the shipped adapters were trained on."""


class StepByStep(Protocol):
    """The model at work on one procedure: it is told or asked about every step, in order."""

    def tell(self, changes: tuple[StateChange, ...]) -> None:
        """The next step was answered before."""
        ...

    def ask(self, step: int) -> tuple[tuple[StateChange, ...], tuple[Reject, ...]]:
        """The changes of the next step, and what could not be read."""
        ...


class EmbeddedTracker(Tracker):
    """Tracks with an embedded model, which is loaded when the first procedure is tracked."""

    adapters: Sequence[Adapter]
    """The ones that answer."""

    @abstractmethod
    def begin(self, procedure: Procedure, on_line: Callable[[str], None]) -> StepByStep:
        """The model at the beginning of a procedure; `on_line` gets every line that it writes."""

    def finished(self, trace: Trace) -> Trace:
        """What is returned of a trace with all its steps."""
        return trace

    def track(self, procedure: Procedure, listener: Listener | None = None, done: Trace | None = None) -> Trace:
        """The changes of every step. Until the last one the listener's traces are as the model sees them.

        Issues a FluentsWarning if the text is in a language that the shipped adapters do not know (`LANGUAGES`).
        """
        if all(adapter.name in ADAPTERS for adapter in self.adapters):
            warn_of_language(procedure, LANGUAGES)
        listener = listener or Listener()
        answered = () if done is None else done.covered_steps
        listener.on_start(procedure, len(answered))
        trace = Trace(procedure=procedure, covered=() if procedure.steps else None, provenance=self.provenance)
        model = self.begin(procedure, listener.on_draft)
        for step in range(1, len(procedure.steps) + 1):
            if done is not None and step in answered:
                changes, rejects = done.at(step), tuple(reject for reject in done.rejects if reject.step == step)
                model.tell(changes)
            else:
                changes, rejects = model.ask(step)
            is_last = step == len(procedure.steps)
            trace = trace.replace(
                changes=trace.changes + changes,
                rejects=trace.rejects + rejects,
                covered=None if is_last else (*(trace.covered or ()), step),
            )
            if is_last:
                trace = self.finished(trace)
            if step not in answered:
                listener.on_step(trace)
        return trace


_engines: OrderedDict[Hashable, Engine] = OrderedDict()
_loading = threading.Lock()


def loaded_engine(key: Hashable, load: Callable[[], Engine], most: int) -> Engine:
    """The engine of this key, loaded if need be. It stays loaded until `most` others have been asked for."""
    with _loading:
        if key not in _engines:
            while len(_engines) >= most:
                _engines.popitem(last=False)  # freed when the last tracker lets go of it
            _engines[key] = load()
        _engines.move_to_end(key)
        return _engines[key]


def unload() -> None:
    """Free the memory of engines that no tracker uses."""
    with _loading:
        _engines.clear()
