"""Where other names come from: the words of a dataset that mean nearly the same, or a language model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fluents.canonicalise.expansion import REASON, Known, Suggested, plain_name
from fluents.canonicalise.scorer import Level
from fluents.llm import Asker, Question
from fluents.llm.asking import Unreadable, UnreadableAnswer, ask_all, json_in
from fluents.metrics.embedders import Embedder, StaticEmbedder, Vectors
from fluents.prompts.files import render
from fluents.prompts.llm import MAX_NAME_BYTES, quoted, system, whole_scene
from fluents.records import Reject, Trace

NEAR = 0.7
"""How alike two names are, as the product of their vectors, when one may stand for the other."""


class Neighbours:
    """The names in a dataset's traces whose vectors lie nearest. The dataset is the user's own copy."""

    def __init__(
        self, traces: Iterable[Trace], source: str, near: float = NEAR, embedder: Embedder | None = None
    ) -> None:
        self._embedder = embedder or StaticEmbedder()
        self._near = near
        self.name = f"neighbours-1 in {source}, {near:g}"
        said: dict[Level, Counter[str]] = {"entities": Counter(), "attributes": Counter()}
        for trace in traces:
            for change in trace.changes:
                said["entities"][change.entity] += 1
                said["attributes"][change.attribute] += 1
        self._words = {level: _one_of_each(names) for level, names in said.items()}
        self._vectors: dict[Level, Vectors] = {
            level: self._embedder([plain_name(name) for name in words]) for level, words in self._words.items()
        }

    def suggest(self, trace: Trace, clusters: Sequence[Known], most: int) -> Suggested:  # noqa: ARG002
        return Suggested([self._nearest(one, most) for one in clusters])

    def _nearest(self, one: Known, most: int) -> list[str]:
        words = self._words[one.level]
        if not words:
            return []
        own = {plain_name(name) for name in one.names}
        near = (self._embedder(sorted(own)) @ self._vectors[one.level].T).max(axis=0)
        order = np.argsort(-near, kind="stable")
        found = (words[place] for place in order if near[place] >= self._near)
        return [name for name in found if plain_name(name) not in own][:most]


def _one_of_each(names: Counter[str]) -> list[str]:
    """Of names with the same words the most frequent, in the order of the alphabet."""
    best: dict[str, str] = {}
    for name in sorted(names, key=lambda one: (-names[one], one)):
        best.setdefault(plain_name(name), name)
    return sorted(best.values())


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
        answers = ask_all(self.asker, questions, read, self.workers, self.on_answer)
        rejects = [Reject(text=one.text, reason=REASON + one.reason) for one in answers if isinstance(one, Unreadable)]
        return Suggested([[] if isinstance(one, Unreadable) else one for one in answers], tuple(rejects))


def read(text: str) -> list[str]:
    """The names in an answer."""
    value = json_in(text)
    names = value.get("names") if isinstance(value, dict) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnreadableAnswer("there is no list of names in it")
    return [name for name in names if name.strip() and len(name) <= MAX_LETTERS]
