"""fluents: what changes, from what to what, at every step of a procedure."""

from __future__ import annotations

from pathlib import Path

from fluents.errors import FluentsError
from fluents.records import Procedure, StateChange, Trace
from fluents.version import __version__

__all__ = ["FluentsError", "Procedure", "StateChange", "Trace", "__version__", "track"]


def track(procedure: Procedure | str | Path, *, setting: str = "default", seed: int = 1) -> Trace:
    """Track a procedure, a text or a file with the embedded model, offline once its weights are fetched.

    `setting` is "default" or "fast". To track many procedures, keep a `fluents.trackers.local.LocalTracker`.
    """
    from dataclasses import replace

    from fluents.errors import UnknownNameError
    from fluents.segment import read_text, segment
    from fluents.trackers.local import SETTINGS, LocalTracker

    if setting not in SETTINGS:
        raise UnknownNameError(f"no setting {setting!r}", fix=f"one of: {', '.join(SETTINGS)}")
    if isinstance(procedure, Path):
        procedure = segment(read_text(procedure), source=str(procedure))
    elif isinstance(procedure, str):
        procedure = segment(procedure)
    return LocalTracker(replace(SETTINGS[setting], seed=seed)).track(procedure)
