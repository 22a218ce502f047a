"""fluents: what changes, from what to what, at every step of a procedure."""

from __future__ import annotations

from pathlib import Path

from fluents.errors import FluentsError
from fluents.records import Procedure, StateChange, Trace
from fluents.version import __version__

__all__ = ["FluentsError", "Procedure", "StateChange", "Trace", "__version__", "track"]


def track(procedure: Procedure | str | Path, *, setting: str = "default", seed: int = 1) -> Trace:
    """Track a procedure, a text (str) or a file (Path) with the embedded model, offline once its weights are fetched.

    `setting` is "default" (several seconds a step) or "fast" (a second or two); the same `seed` gives the same answer.
    A FluentsError says what is wrong with the text. To track many, keep a `fluents.trackers.local.LocalTracker`.

    >>> trace = fluents.track("Heat the oil in a pan. Crack two eggs into it.", setting="fast")
    >>> for change in trace.changes:
    ...     print(change.step, change.entity, change.attribute, change.before, change.after)
    """
    from dataclasses import replace

    from fluents.errors import InputError, UnknownNameError
    from fluents.segmentation import read_text, segment
    from fluents.trackers.local import SETTINGS, LocalTracker

    if setting not in SETTINGS:
        raise UnknownNameError(f"no setting {setting!r}", fix=f"one of: {', '.join(SETTINGS)}")
    if isinstance(procedure, Path):
        procedure = segment(read_text(procedure), source=str(procedure))
    elif isinstance(procedure, str):
        if _is_file(procedure):  # never read unasked: a text may come from strangers
            raise InputError("this is the name of a file, not a text", where=procedure, fix=f"Path({procedure!r})")
        procedure = segment(procedure)
    return LocalTracker(replace(SETTINGS[setting], seed=seed)).track(procedure)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with characters that no name has
        return False
