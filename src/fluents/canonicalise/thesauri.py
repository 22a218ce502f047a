"""Where other names come from: the words of a dataset that mean nearly the same, or a language model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fluents.canonicalise.evidence import Evidence, Matrix
from fluents.canonicalise.expansion import REASON, Known, Suggested, plain_name
from fluents.canonicalise.named import Fact, Field, Named, named, wordings_of
from fluents.canonicalise.scorer import Level
from fluents.llm import Asker, Question
from fluents.llm.asking import Unreadable, UnreadableAnswer, ask_all, json_in
from fluents.metrics.embedders import Embedder, StaticEmbedder
from fluents.prompts.files import render
from fluents.prompts.llm import MAX_NAME_BYTES, quoted, system, whole_scene
from fluents.records import Reject, StateChange, Trace

NEAR = 0.5
"""How alike a name must be to stand for another: the geometric mean of likeness in meaning and in states."""

LEAST_SAID = 3
"""Names a dataset has in fewer changes are slips of the pen as often as names."""


class Vocabulary:
    """The names a dataset has for entities, or for attributes, and the vectors to compare them by."""

    def __init__(self, changes: Sequence[StateChange], field: Field, embedder: Embedder) -> None:
        said = Counter(plain_name(wording) for change in changes for wording in wordings_of(change, field))
        self._embedder = embedder
        self._names = [one for one in named(changes, field) if said[plain_name(one.name)] >= LEAST_SAID]
        self._used = {plain_name(one.name): one.facts for one in self._names}
        self._evidence = Evidence(self._names, embedder)
        self._words = [set(plain_name(one.name).split()) for one in self._names]

    def near(self, known: Known, least: float) -> list[str]:
        """Names used alike, the nearest first. One that shares a word is a part or a kind of the thing."""
        if not self._names:
            return []
        likeness = np.max([self._likeness(name, known.facts) for name in known.names], axis=0)
        own = {word for name in known.names for word in plain_name(name).split()}
        order = np.argsort(-likeness, kind="stable")
        return [self._names[place].name for place in order if likeness[place] >= least and not self._words[place] & own]

    def _likeness(self, name: str, facts: frozenset[Fact]) -> Matrix:
        # A trace says little of each name; what the dataset says under the same name is taken with it.
        one = Evidence([Named((name,), facts | self._used.get(plain_name(name), frozenset()))], self._embedder)
        meaning = self._evidence.meanings @ one.meanings[0]
        states = self._evidence.states @ one.states[0] if facts else np.zeros_like(meaning)
        return np.asarray(np.sqrt(np.maximum(meaning, 0) * np.maximum(states, 0)), dtype=np.float32)


class Neighbours:
    """Names from a dataset's traces. Nothing of it comes with fluents: the dataset is the user's own copy."""

    def __init__(
        self, traces: Iterable[Trace], source: str, near: float = NEAR, embedder: Embedder | None = None
    ) -> None:
        self._near = near
        self.name = f"neighbours-1 in {source}, {near:g}"
        changes = [change for trace in traces for change in trace.changes]
        embedder = embedder or StaticEmbedder()
        self._vocabulary: dict[Level, Vocabulary] = {
            "entities": Vocabulary(changes, "entity", embedder),
            "attributes": Vocabulary(changes, "attribute", embedder),
        }

    def suggest(self, trace: Trace, clusters: Sequence[Known], most: int) -> Suggested:  # noqa: ARG002
        return Suggested([self._vocabulary[one.level].near(one, self._near)[:most] for one in clusters])


PROMPTS: dict[Level, str] = {"entities": "expand-entity-1", "attributes": "expand-attribute-1"}
SCHEMA = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    "required": ["names"],
    "additionalProperties": False,
}
MAX_LETTERS = 80
"""A longer name is a sentence."""


@dataclass(frozen=True)
class AskedNames:
    """A language model asked about every cluster by itself."""

    asker: Asker
    model: str
    """Its name, for the record."""
    workers: int = 8
    on_answer: Callable[[int, int], None] | None = None
    max_tokens: int | None = None
    """Of an answer; None: enough for the names it may hold."""

    @property
    def name(self) -> str:
        return f"prompted-1, {self.model}"

    def suggest(self, trace: Trace, clusters: Sequence[Known], most: int) -> Suggested:
        scene = whole_scene(trace.procedure)
        questions = [
            Question(
                render(
                    PROMPTS[one.level],
                    scene=scene,
                    entity=quoted(one.entity, MAX_NAME_BYTES),
                    names=[quoted(name, MAX_NAME_BYTES) for name in one.names],
                    most=most,
                ),
                system=system(),
                schema=SCHEMA,
                name=PROMPTS[one.level],
                max_tokens=32 + 32 * most,
            )
            for one in clusters
        ]
        answers = ask_all(self.asker, questions, read, self.workers, self.on_answer, self.max_tokens)
        rejects = [Reject(text=one.text, reason=REASON + one.reason) for one in answers if isinstance(one, Unreadable)]
        return Suggested([[] if isinstance(one, Unreadable) else one for one in answers], tuple(rejects))


def read(text: str) -> list[str]:
    """The names in an answer."""
    value = json_in(text)
    names = value.get("names") if isinstance(value, dict) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnreadableAnswer("there is no list of names in it")
    return [name for name in names if name.strip() and len(name) <= MAX_LETTERS]
