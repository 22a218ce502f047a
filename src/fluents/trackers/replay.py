"""A tracker that repeats traces: for demonstrations and tests, where a model would take its time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Self

from fluents.records import Procedure, Provenance, StateChange, Trace
from fluents.text.names import one_line
from fluents.trackers import Listener, Tracker
from fluents.version import __version__


class ReplayTracker(Tracker):
    """Says of a step what some trace says of a step with the same text, and nothing of one that none has.

    `pause` are the seconds it takes for each step.
    """

    def __init__(self, traces: Iterable[Trace], pause: float = 0.0) -> None:
        self._pause = pause
        self._changes: dict[str, tuple[StateChange, ...]] = {}
        for trace in traces:
            for _, text, changes in trace.by_step():
                self._changes.setdefault(one_line(text), changes)

    @classmethod
    def read(cls, source: str | Path, pause: float = 0.0) -> Self:
        """From a dataset, or a file of traces in any known format."""
        from fluents.data.file_formats import read_traces

        return cls(read_traces(source), pause)

    @cached_property
    def provenance(self) -> Provenance:
        said = sha256(repr(sorted(self._changes.items())).encode("utf-8", "surrogatepass")).hexdigest()
        return Provenance(tracker="replay", decoding={"recorded": said[:16]}, version=__version__)

    def track(self, procedure: Procedure, listener: Listener | None = None, done: Trace | None = None) -> Trace:
        listener = listener or Listener()
        answered = () if done is None else done.covered_steps
        listener.on_start(procedure, len(answered))
        trace = Trace(procedure=procedure, covered=() if procedure.steps else None, provenance=self.provenance)
        for step, text in enumerate(procedure.steps, start=1):
            if done is not None and step in answered:
                found = done.at(step)
            else:
                time.sleep(self._pause)
                found = tuple(change.replace(step=step) for change in self._changes.get(one_line(text), ()))
            covered = None if step == len(procedure.steps) else (*(trace.covered or ()), step)
            trace = trace.replace(changes=trace.changes + found, covered=covered)
            if step not in answered:
                listener.on_step(trace)
        return trace
