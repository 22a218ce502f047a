"""Salience without a language model: a weighted sum of what the trace and the text show, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fluents.metrics.embedders import Embedder, StaticEmbedder
from fluents.records import Salience, Trace
from fluents.salience.features import Scope, features
from fluents.salience.linear import Linear
from fluents.salience.scene import Scene

RATER = "offline-1"
"""Named with its version in every rating: other weights get another number."""

WEIGHTS = Path(__file__).parent / "weights"

BOTH: tuple[Scope, ...] = ("global", "local")


def rate(trace: Trace, scopes: tuple[Scope, ...] = BOTH, embedder: Embedder | None = None) -> Trace:
    """The trace with this method's ratings of its entities; what others rated stays, and stands first."""
    scene = Scene(trace, embedder or StaticEmbedder())
    ours = [rating for scope in scopes for rating in ratings(scene, scope, shipped(scope))]
    return rated_anew(trace, ours, RATER, scopes)


def ratings(scene: Scene, scope: Scope, weights: Linear, rater: str = RATER) -> Iterator[Salience]:
    """What the weights make of every entity, or of every entity in every step."""
    if not scene.subjects or not scene.texts:
        return
    values = weights(features(scene, scope)).reshape(len(scene.subjects), -1)
    for subject, row in zip(scene.subjects, values, strict=True):
        for place, value in enumerate(row, start=1):
            step = None if scope == "global" else place
            yield Salience(entity=subject.name, rater=rater, step=step, value=round(float(value), 2))


def rated_anew(trace: Trace, ours: list[Salience], rater: str, scopes: tuple[Scope, ...]) -> Trace:
    """The trace with these ratings instead of what the same rater said before, in these scopes."""
    kept = [
        one for one in trace.salience if one.rater != rater or ("global" if one.step is None else "local") not in scopes
    ]
    return trace.replace(salience=(*kept, *ours))


@cache
def shipped(scope: Scope) -> Linear:
    """The weights that come with fluents; `benchmarks/salience.py --write` makes them."""
    return Linear.from_table((WEIGHTS / f"{RATER}-{scope}.tsv").read_text(encoding="utf-8"))
