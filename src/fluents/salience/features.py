"""Features of the offline rater: numbers for every entity, and for every entity in every step.

Only the text, the changes and the names count: no votes, no ratings, and no count that grows with the length of the
annotation, so that gold and predicted traces are treated alike. Nothing depends on the order of changes or entities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from fluents.errors import InputError
from fluents.records import Trace
from fluents.salience.entities import RatedEntity, rated_entities
from fluents.scoring import Scope
from fluents.scoring.score import Floats
from fluents.text.embedders import Embedder, normalised
from fluents.text.names import name_words, named_in, plain_name

Columns: TypeAlias = dict[str, Floats]


def features(measured: TraceMeasurements, scope: Scope) -> Columns:
    """Name → a number for each entity (global), or a row for each entity with a number for each step (local).

    What stands before the colon of a name is the feature's group, by which ablations leave features out.
    """
    return _global(measured) if scope == "global" else _local(measured)


def _global(measured: TraceMeasurements) -> Columns:
    """For the goal."""
    changed = measured.changes > 0
    steps = changed.shape[1]
    place = np.arange(1, steps + 1)
    total = measured.changes.sum(axis=1)
    return {
        "changes: share of the most": total / total.max(initial=1),
        "changes: share of the steps": changed.mean(axis=1),
        "changes: first step": np.where(changed, place, steps + 1).min(axis=1, initial=steps + 1) / steps,
        "changes: last step": np.where(changed, place, 0).max(axis=1, initial=0) / steps,
        "changes: needed later": measured.needed_later.mean(axis=1),
        "text: in the goal": measured.goal_mention,
        "text: words in the goal": measured.goal_words,
        "text: share of the steps": measured.mentions.mean(axis=1),
        "text: in some step": measured.mentions.max(axis=1, initial=0),
        "text: words in the steps": measured.words.mean(axis=1),
        "text: words of the name": np.log1p([len(entity.name.split()) for entity in measured.entities]),
        "vectors: like the goal": measured.goal_similarity,
        "vectors: like the steps": measured.similarity.mean(axis=1),
        "vectors: like the likest step": measured.similarity.max(axis=1, initial=-1),
        "vectors: like the other entities": measured.company,
    } | {f"kind: {kind}": likeness for kind, likeness in measured.kinds.items()}


def _local(measured: TraceMeasurements) -> Columns:
    """For each step, beside all that is said of the entity as a whole."""
    changes, changed = measured.changes, (measured.changes > 0).astype(float)
    likeness = measured.similarity
    here: Columns = {
        "changes here: any": changed,
        "changes here: share of the most": changes / np.maximum(1, changes.max(axis=0, initial=1)),
        "changes here: needed later": measured.needed_later,
        "changes here: earlier": _earlier(changed),
        "changes here: in the step before": _step_before(changed),
        "changes here: later": _earlier(changed[:, ::-1])[:, ::-1],
        "text here: named": measured.mentions,
        "text here: words": measured.words,
        "text here: named earlier": _earlier(measured.mentions),
        "text here: named in the step before": _step_before(measured.mentions),
        "vectors here: like the step": likeness,
        "vectors here: less than its likest step": likeness - likeness.max(axis=1, keepdims=True, initial=-1),
        "vectors here: less than the likest entity": likeness - likeness.max(axis=0, keepdims=True, initial=-1),
    }
    return here | {
        name: np.repeat(column[:, None], changes.shape[1], axis=1) for name, column in _global(measured).items()
    }


def _earlier(happened: Floats) -> Floats:
    """1 in every step after the one where something first happened."""
    return _step_before(np.maximum.accumulate(happened, axis=1))


def _step_before(happened: Floats) -> Floats:
    return np.pad(happened, ((0, 0), (1, 0)))[:, :-1]


MOST_CELLS = 1_000_000
"""Entities times steps: far more than any text has. Limits the memory that rating takes."""

KINDS = {
    "person": ("person", "you", "people", "friend", "player"),
    "body": ("hand", "hands", "fingers", "muscles", "arm"),
    "tool": ("knife", "spoon", "scissors", "hammer", "brush"),
    "container": ("bowl", "bag", "box", "plate", "jar"),
    "place": ("room", "floor", "ground", "table", "house"),
    "matter": ("dough", "water", "flour", "paint", "soil"),
    "device": ("oven", "machine", "computer", "phone", "blender"),
    "abstract": ("smell", "idea", "knowledge", "time", "money"),
}
"""Words whose mean vector stands for a kind of thing."""


class TraceMeasurements:
    """What can be counted and compared of every entity: a row for each, a column for each step."""

    def __init__(self, trace: Trace, embedder: Embedder) -> None:
        self.trace = trace
        self.entities: Sequence[RatedEntity] = rated_entities(trace)
        self.steps: Sequence[str] = trace.procedure.steps
        self._embedder = embedder
        if len(self.entities) * len(self.steps) > MOST_CELLS:
            raise InputError(
                f"this procedure is too large to rate: it has {len(self.entities)} entities in {len(self.steps)} steps",
                where=trace.id,
                fix="split the procedure into shorter ones",
            )

    @cached_property
    def changes(self) -> Floats:
        """How many changes each entity has in each step."""
        counts = np.zeros((len(self.entities), len(self.steps)))
        for row, entity in enumerate(self.entities):
            for change in entity.changes:
                counts[row, change.step - 1] += 1
        return counts

    @cached_property
    def mentions(self) -> Floats:
        """1 where a step names an entity by one of its wordings."""
        return self._compared(self.steps, named)

    @cached_property
    def words(self) -> Floats:
        """The largest share of a wording's words that a step has."""
        return self._compared(self.steps, shared_words)

    @cached_property
    def goal_mention(self) -> Floats:
        return self._compared([self.trace.procedure.goal], named)[:, 0]

    @cached_property
    def goal_words(self) -> Floats:
        return self._compared([self.trace.procedure.goal], shared_words)[:, 0]

    @cached_property
    def similarity(self) -> Floats:
        """How alike an entity's likest wording is to each step."""
        return self._likest(self.steps)

    @cached_property
    def goal_similarity(self) -> Floats:
        return self._likest([self.trace.procedure.goal])[:, 0]

    @cached_property
    def company(self) -> Floats:
        """How alike each entity is to the others, on the mean; 0 where it is alone."""
        vectors = self._names
        others = max(1, len(vectors) - 1)
        likeness: Floats = vectors @ vectors.sum(axis=0) - (vectors * vectors).sum(axis=1)
        return likeness / others

    @cached_property
    def kinds(self) -> dict[str, Floats]:
        """How alike each entity's name is to the words of a kind."""
        found = {}
        for kind, examples in KINDS.items():
            middle = normalised(self._embedder(examples).mean(axis=0, keepdims=True))[0]
            found[kind] = self._names @ middle.astype(float)
        return found

    @cached_property
    def needed_later(self) -> Floats:
        """1 where a state the entity gets in a step is the state it, or another, starts from in a later one."""
        starts: dict[str, int] = {}
        for change in self.trace.changes:
            if state := plain_name(change.before):  # empty where only entity and attribute are named
                starts[state] = max(starts.get(state, 0), change.step)
        needed = np.zeros((len(self.entities), len(self.steps)))
        for row, entity in enumerate(self.entities):
            for change in entity.changes:
                if starts.get(plain_name(change.after), 0) > change.step:
                    needed[row, change.step - 1] = 1
        return needed

    @cached_property
    def _names(self) -> Floats:
        return self._embedder([entity.name for entity in self.entities]).astype(float).reshape(len(self.entities), -1)

    def _compared(self, texts: Sequence[str], measure: Callable[[str, str], float]) -> Floats:
        """The measure of every entity's best wording in every text."""
        rows = [[max(measure(text, word) for word in entity.wordings) for text in texts] for entity in self.entities]
        return np.array(rows, dtype=float).reshape(len(self.entities), len(texts))

    def _likest(self, texts: Sequence[str]) -> Floats:
        targets = self._embedder(list(texts)).astype(float).reshape(len(texts), -1)
        likest = np.zeros((len(self.entities), len(texts)))
        for row, entity in enumerate(self.entities):
            likest[row] = (self._embedder(list(entity.wordings)).astype(float) @ targets.T).max(axis=0)
        return likest


def named(text: str, wording: str) -> float:
    return float(named_in(text, wording))


def shared_words(text: str, wording: str) -> float:
    """The share of a wording's words that a text has, in whatever order."""
    wanted = set(name_words(wording))
    return len(wanted.intersection(name_words(text))) / len(wanted) if wanted else 0.0
