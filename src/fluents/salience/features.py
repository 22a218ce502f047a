"""What the offline method looks at: numbers for every entity, and for every entity in every step.

Only the text, the changes and the names decide: no votes, no ratings, and no count that is higher wherever more was
written down, so that gold and predicted traces are treated alike. Nothing depends on the order in which changes or
entities come.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from fluents.metrics.base import Floats
from fluents.salience.scene import Scene

Scope: TypeAlias = Literal["global", "local"]

Columns: TypeAlias = dict[str, Floats]


def features(scene: Scene, scope: Scope) -> Columns:
    """Name → a number for each entity (global), or a row for each entity with a number for each step (local).

    What stands before the colon of a name is the feature's group, by which ablations leave features out.
    """
    return _global(scene) if scope == "global" else _local(scene)


def _global(scene: Scene) -> Columns:
    """For the goal."""
    changed = scene.changes > 0
    steps = changed.shape[1]
    place = np.arange(1, steps + 1)
    total = scene.changes.sum(axis=1)
    return {
        "changes: share of the most": total / total.max(initial=1),
        "changes: share of the steps": changed.mean(axis=1),
        "changes: first step": np.where(changed, place, steps + 1).min(axis=1, initial=steps + 1) / steps,
        "changes: last step": np.where(changed, place, 0).max(axis=1, initial=0) / steps,
        "changes: needed later": scene.needed_later.mean(axis=1),
        "text: in the goal": scene.goal_mention,
        "text: words in the goal": scene.goal_words,
        "text: share of the steps": scene.mentions.mean(axis=1),
        "text: in some step": scene.mentions.max(axis=1, initial=0),
        "text: words in the steps": scene.words.mean(axis=1),
        "text: words of the name": np.log1p([len(subject.name.split()) for subject in scene.subjects]),
        "vectors: like the goal": scene.goal_similarity,
        "vectors: like the steps": scene.similarity.mean(axis=1),
        "vectors: like the likest step": scene.similarity.max(axis=1, initial=-1),
        "vectors: like the other entities": scene.company,
    } | {f"kind: {kind}": likeness for kind, likeness in scene.kinds.items()}


def _local(scene: Scene) -> Columns:
    """For each step, beside all that is said of the entity as a whole."""
    changes, changed = scene.changes, (scene.changes > 0).astype(float)
    likeness = scene.similarity
    here: Columns = {
        "changes here: any": changed,
        "changes here: share of the most": changes / np.maximum(1, changes.max(axis=0, initial=1)),
        "changes here: needed later": scene.needed_later,
        "changes here: earlier": _earlier(changed),
        "changes here: in the step before": _step_before(changed),
        "changes here: later": _earlier(changed[:, ::-1])[:, ::-1],
        "text here: named": scene.mentions,
        "text here: words": scene.words,
        "text here: named earlier": _earlier(scene.mentions),
        "text here: named in the step before": _step_before(scene.mentions),
        "vectors here: like the step": likeness,
        "vectors here: less than its likest step": likeness - likeness.max(axis=1, keepdims=True, initial=-1),
        "vectors here: less than the likest entity": likeness - likeness.max(axis=0, keepdims=True, initial=-1),
    }
    return here | {
        name: np.repeat(column[:, None], changes.shape[1], axis=1) for name, column in _global(scene).items()
    }


def _earlier(happened: Floats) -> Floats:
    """1 in every step after the one where something first happened."""
    return _step_before(np.maximum.accumulate(happened, axis=1))


def _step_before(happened: Floats) -> Floats:
    return np.pad(happened, ((0, 0), (1, 0)))[:, :-1]
