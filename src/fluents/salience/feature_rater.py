"""Salience without a language model: a weighted sum of what the trace and the text show, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fluents.records import Salience, Trace
from fluents.salience.features import Columns, TraceMeasurements, features
from fluents.salience.ridge import LEAST, MOST, Ridge, joined, learn
from fluents.scoring import Scope
from fluents.scoring.score import Floats
from fluents.text.embedders import Embedder, StaticEmbedder

RATER = "offline-1"
"""Named with its version in every rating: other weights get another number."""

WEIGHTS = Path(__file__).parent / "weights"

BOTH: tuple[Scope, ...] = ("global", "local")


def rate(trace: Trace, scopes: tuple[Scope, ...] = BOTH, embedder: Embedder | None = None) -> Trace:
    """The trace with this method's ratings of its entities; what others rated stays, and stands first."""
    scene = TraceMeasurements(trace, embedder or StaticEmbedder())
    ours = [rating for scope in scopes for rating in ratings(scene, scope, shipped(scope))]
    return replace_ratings(trace, ours, RATER, scopes)


def ratings(scene: TraceMeasurements, scope: Scope, weights: Ridge, rater: str = RATER) -> Iterator[Salience]:
    """What the weights make of every entity, or of every entity in every step."""
    if not scene.subjects or not scene.texts:
        return
    values = weights(features(scene, scope)).reshape(len(scene.subjects), -1)
    for subject, row in zip(scene.subjects, values, strict=True):
        for place, value in enumerate(row, start=1):
            step = None if scope == "global" else place
            yield Salience(entity=subject.name, rater=rater, step=step, value=round(float(value), 2))


def replace_ratings(trace: Trace, ours: list[Salience], rater: str, scopes: tuple[Scope, ...]) -> Trace:
    """The trace with these ratings instead of what the same rater said before, in these scopes."""
    kept = [
        one for one in trace.salience if one.rater != rater or ("global" if one.step is None else "local") not in scopes
    ]
    return trace.replace(salience=(*kept, *ours))


@cache
def shipped(scope: Scope) -> Ridge:
    """The weights that come with fluents; `benchmarks/salience.py --write` makes them."""
    return Ridge.from_table((WEIGHTS / f"{RATER}-{scope}.tsv").read_text(encoding="utf-8"))


class LabelledFeatures(NamedTuple):
    """One procedure: features and labels of one shape; a label is not a number where nobody gave one."""

    columns: Columns
    labels: Floats


def lesson(scene: TraceMeasurements, scope: Scope, raters: Sequence[str]) -> LabelledFeatures:
    columns = features(scene, scope)
    labels = given(scene.trace, [subject.name for subject in scene.subjects], scope, raters)
    if scope == "local":
        # Models were asked for 1 to 5 and could not say 0: the lowest rating of what a step neither names nor changes
        # means that it is irrelevant there.
        absent = (scene.changes == 0) & (scene.mentions == 0)
        labels = np.where(absent & (labels <= 1), 0.0, labels)
    return LabelledFeatures(columns, labels)


def given(trace: Trace, entities: Sequence[str], scope: Scope, raters: Sequence[str]) -> Floats:
    """The mean of what the raters gave to each entity, or to each entity in each step; out of range is not given."""
    steps: Iterable[int | None] = [None] if scope == "global" else range(1, len(trace.procedure.steps) + 1)
    found: dict[tuple[str, int | None], list[float]] = {(name, step): [] for name in entities for step in steps}
    for rating in trace.salience:
        value = rating.value
        known = rating.rater in raters and value is not None and LEAST <= value <= MOST
        if known and (rating.entity, rating.step) in found:
            found[rating.entity, rating.step].append(float(value or 0))
    means = np.array([np.mean(values) if values else np.nan for values in found.values()], dtype=float)
    return means if scope == "global" else means.reshape(len(entities), -1)


def taught(lessons: Sequence[LabelledFeatures], penalty: float) -> Ridge:
    """The weights learnt from these procedures, held down by the penalty."""
    labels = np.concatenate([one.labels.ravel() for one in lessons])
    return learn(joined([one.columns for one in lessons]), labels, penalty)
