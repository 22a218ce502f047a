"""fluents: what changes, from what to what, at every step of a procedure.

    import fluents as fl

    trace = fl.track("Heat the oil in a pan. Crack two eggs into it.")
    print(trace.rows())

docs/python.md shows everything this import offers. Functions are imported when they are first used, so that
`import fluents` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fluents.errors import FluentsError
from fluents.records import Procedure, StateChange, Trace
from fluents.version import __version__

if TYPE_CHECKING:
    from fluents.batches import batch
    from fluents.batches.query import query
    from fluents.canonicalisation import canonicalise
    from fluents.data.file_formats import load, save
    from fluents.metrics import score
    from fluents.planning.trace_plan import plan
    from fluents.questions import ask
    from fluents.report.trace_page import to_html
    from fluents.salience import keep, rate_salience
    from fluents.scoring.bootstrap import compare
    from fluents.segmentation import segment
    from fluents.trackers import track, track_many
    from fluents.training.adapter import train_adapter

_ROOMS = {
    "ask": "fluents.questions",
    "batch": "fluents.batches",
    "canonicalise": "fluents.canonicalisation",
    "compare": "fluents.scoring.bootstrap",
    "keep": "fluents.salience",
    "load": "fluents.data.file_formats",
    "plan": "fluents.planning.trace_plan",
    "query": "fluents.batches.query",
    "rate_salience": "fluents.salience",
    "save": "fluents.data.file_formats",
    "score": "fluents.metrics",
    "segment": "fluents.segmentation",
    "to_html": "fluents.report.trace_page",
    "track": "fluents.trackers",
    "track_many": "fluents.trackers",
    "train_adapter": "fluents.training.adapter",
}
"""Function → the room it comes from."""

__all__ = [
    "FluentsError",
    "Procedure",
    "StateChange",
    "Trace",
    "__version__",
    "ask",
    "batch",
    "canonicalise",
    "compare",
    "keep",
    "load",
    "plan",
    "query",
    "rate_salience",
    "save",
    "score",
    "segment",
    "to_html",
    "track",
    "track_many",
    "train_adapter",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'fluents' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_ROOMS[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__
