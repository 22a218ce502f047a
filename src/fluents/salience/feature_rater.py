"""Salience without a language model: a weighted sum of what the trace and the text show, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fluents.records import Salience, Trace
from fluents.salience.features import Columns, TraceMeasurements, features
from fluents.salience.ridge import LEAST, MOST, Ridge, fit_ridge
from fluents.scoring import Scope
from fluents.scoring.score import Floats
from fluents.text.embedders import Embedder, StaticEmbedder

RATER = "offline-1"
"""Named with its version in every rating: other weights get another number."""

WEIGHTS = Path(__file__).parent / "weights"


class FeatureRater:
    """Rates by the weights that come with fluents."""

    name = RATER

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder or StaticEmbedder()

    def ratings(self, trace: Trace, scopes: Sequence[Scope]) -> list[Salience]:
        measured = TraceMeasurements(trace, self._embedder)
        return [rating for scope in scopes for rating in predict(measured, scope, shipped_weights(scope))]


def predict(measured: TraceMeasurements, scope: Scope, weights: Ridge) -> Iterator[Salience]:
    """A rating of every entity, or of every entity in every step."""
    if not measured.entities or not measured.steps:
        return
    values = weights(features(measured, scope)).reshape(len(measured.entities), -1)
    for entity, row in zip(measured.entities, values, strict=True):
        for place, value in enumerate(row, start=1):
            step = None if scope == "global" else place
            yield Salience(entity=entity.name, rater=RATER, step=step, value=round(float(value), 2))


@cache
def shipped_weights(scope: Scope) -> Ridge:
    """The weights that come with fluents; `benchmarks/salience.py --write` makes them."""
    return Ridge.from_table((WEIGHTS / f"{RATER}-{scope}.tsv").read_text(encoding="utf-8"))


class LabelledFeatures(NamedTuple):
    """Training data of one procedure: features and labels of one shape; a label nobody gave is not a number."""

    columns: Columns
    labels: Floats


def labelled_features(measured: TraceMeasurements, scope: Scope, raters: Sequence[str]) -> LabelledFeatures:
    """The features of a trace, labelled with the mean of these raters' ratings."""
    labels = mean_ratings(measured.trace, [entity.name for entity in measured.entities], scope, raters)
    if scope == "local":
        # Models were asked for 1 to 5 and could not say 0: the lowest rating of what a step neither names nor changes
        # means that it is irrelevant there.
        absent = (measured.changes == 0) & (measured.mentions == 0)
        labels = np.where(absent & (labels <= 1), 0.0, labels)
    return LabelledFeatures(features(measured, scope), labels)


def mean_ratings(trace: Trace, entities: Sequence[str], scope: Scope, raters: Sequence[str]) -> Floats:
    """The mean of what the raters gave to each entity, or to each entity in each step; out of range does not count."""
    steps: Iterable[int | None] = [None] if scope == "global" else range(1, len(trace.procedure.steps) + 1)
    found: dict[tuple[str, int | None], list[float]] = {(name, step): [] for name in entities for step in steps}
    for rating in trace.salience:
        place, value = (rating.entity, rating.step), rating.value
        if place in found and rating.rater in raters and value is not None and LEAST <= value <= MOST:
            found[place].append(float(value))
    means = np.array([np.mean(values) if values else np.nan for values in found.values()], dtype=float)
    return means if scope == "global" else means.reshape(len(entities), -1)


def fit(data: Sequence[LabelledFeatures], penalty: float) -> Ridge:
    """The weights learnt from these procedures; a larger penalty keeps them smaller."""
    labels = np.concatenate([one.labels.ravel() for one in data])
    columns = {name: np.concatenate([one.columns[name].ravel() for one in data]) for name in data[0].columns}
    return fit_ridge(columns, labels, penalty)
