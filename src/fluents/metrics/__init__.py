"""Every metric of the three papers: exactly as published (`compat`) and done right (`strict`).

    from fluents.metrics import load
    score = load("original")(gold, predictions, mode="strict")
    score["bleu"]["f1"], str(score.signature)

Metrics are imported when asked for; each lives in a file of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fluents.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fluents.scoring.score import Score

METRICS = {
    "original": "fluents.metrics.original:original",
    "cluster": "fluents.metrics.cluster:cluster",
    "schemata": "fluents.metrics.schemata:schemata",
    "states": "fluents.metrics.states:states",
    "complete": "fluents.metrics.complete:complete",
    "clustering": "fluents.metrics.clustering:clustering",
    "salience": "fluents.metrics.salience:salience",
    "crepe": "fluents.metrics.crepe:crepe",
    "consistency": "fluents.metrics.consistency:consistency",
}
"""Name → "module:function"."""


def load(name: str) -> Callable[..., Score]:
    """The function behind a metric's name."""
    if name not in METRICS:
        raise UnknownNameError(f"there is no metric {name!r}", fix=f"one of: {', '.join(METRICS)}")
    module, _, function = METRICS[name].partition(":")
    found: Callable[..., Score] = getattr(import_module(module), function)
    return found
