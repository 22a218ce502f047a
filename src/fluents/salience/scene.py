"""A procedure and its entities, measured: what the features of the offline method are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from fluents.errors import InputError
from fluents.mentions import name_words, named_in
from fluents.metrics.base import Floats
from fluents.metrics.embedders import Embedder, normalised
from fluents.metrics.wordings import plain_name
from fluents.records import Trace
from fluents.salience.subjects import Subject, subjects

MOST_CELLS = 1_000_000
"""Entities times steps: far more than any text has, and all the memory that rating may take."""

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


class Scene:
    """What can be counted and compared of every entity: a row for each, a column for each step."""

    def __init__(self, trace: Trace, embedder: Embedder) -> None:
        self.trace = trace
        self.subjects: Sequence[Subject] = subjects(trace)
        self.texts: Sequence[str] = trace.procedure.steps
        self._embedder = embedder
        if len(self.subjects) * len(self.texts) > MOST_CELLS:
            raise InputError(
                f"{len(self.subjects)} entities in {len(self.texts)} steps are too many to rate",
                where=trace.id,
                fix="split the procedure",
            )

    @cached_property
    def changes(self) -> Floats:
        """How many changes each entity has in each step."""
        counts = np.zeros((len(self.subjects), len(self.texts)))
        for row, subject in enumerate(self.subjects):
            for change in subject.changes:
                counts[row, change.step - 1] += 1
        return counts

    @cached_property
    def mentions(self) -> Floats:
        """1 where a step names an entity by one of its wordings."""
        return self._compared(self.texts, named)

    @cached_property
    def words(self) -> Floats:
        """The largest share of a wording's words that a step has."""
        return self._compared(self.texts, shared_words)

    @cached_property
    def goal_mention(self) -> Floats:
        return self._compared([self.trace.procedure.goal], named)[:, 0]

    @cached_property
    def goal_words(self) -> Floats:
        return self._compared([self.trace.procedure.goal], shared_words)[:, 0]

    @cached_property
    def similarity(self) -> Floats:
        """How alike an entity's likest wording is to each step."""
        return self._likest(self.texts)

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
        needed = np.zeros((len(self.subjects), len(self.texts)))
        for row, subject in enumerate(self.subjects):
            for change in subject.changes:
                if starts.get(plain_name(change.after), 0) > change.step:
                    needed[row, change.step - 1] = 1
        return needed

    @cached_property
    def _names(self) -> Floats:
        return self._embedder([subject.name for subject in self.subjects]).astype(float).reshape(len(self.subjects), -1)

    def _compared(self, texts: Sequence[str], measure: Callable[[str, str], float]) -> Floats:
        """The measure of every entity's best wording in every text."""
        rows = [[max(measure(text, word) for word in subject.wordings) for text in texts] for subject in self.subjects]
        return np.array(rows, dtype=float).reshape(len(self.subjects), len(texts))

    def _likest(self, texts: Sequence[str]) -> Floats:
        targets = self._embedder(list(texts)).astype(float).reshape(len(texts), -1)
        likest = np.zeros((len(self.subjects), len(texts)))
        for row, subject in enumerate(self.subjects):
            likest[row] = (self._embedder(list(subject.wordings)).astype(float) @ targets.T).max(axis=0)
        return likest


def named(text: str, wording: str) -> float:
    return float(named_in(text, wording))


def shared_words(text: str, wording: str) -> float:
    """The share of a wording's words that a text has, in whatever order."""
    wanted = set(name_words(wording))
    return len(wanted.intersection(name_words(text))) / len(wanted) if wanted else 0.0
