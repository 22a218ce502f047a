"""What the offline method learns from: features of a procedure beside the ratings that models gave it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from fluents.metrics.base import Floats
from fluents.records import Trace
from fluents.salience.features import Columns, Scope, features
from fluents.salience.linear import LEAST, MOST, Linear, joined, learn
from fluents.salience.scene import Scene


class Lesson(NamedTuple):
    """One procedure: features and labels of one shape; a label is not a number where nobody gave one."""

    columns: Columns
    labels: Floats


def lesson(scene: Scene, scope: Scope, raters: Sequence[str]) -> Lesson:
    columns = features(scene, scope)
    labels = given(scene.trace, [subject.name for subject in scene.subjects], scope, raters)
    if scope == "local":
        # Models were asked for 1 to 5 and could not say 0: the lowest rating of what a step neither names nor changes
        # means that it is irrelevant there.
        absent = (scene.changes == 0) & (scene.mentions == 0)
        labels = np.where(absent & (labels <= 1), 0.0, labels)
    return Lesson(columns, labels)


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


def taught(lessons: Sequence[Lesson], penalty: float) -> Linear:
    """The weights learnt from these procedures, held down by the penalty."""
    labels = np.concatenate([one.labels.ravel() for one in lessons])
    return learn(joined([one.columns for one in lessons]), labels, penalty)
