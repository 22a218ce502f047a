"""Names grouped by weighted evidence: alone, or with a language model asked about doubtful pairs."""

from __future__ import annotations

from collections.abc import Sequence

from fluents.canonicalisation.clusters import REASON, Grouped, Groups, NameList
from fluents.canonicalisation.pair_features import PairFeatures
from fluents.canonicalisation.pair_scorer import corrected, shipped_scorer
from fluents.llm import LanguageModel, Question
from fluents.llm.answers import Unreadable, UnreadableAnswer, ask_all, json_in
from fluents.prompts.llm import json_object, quoted_name, render, system, whole_scene
from fluents.records import Reject, Trace
from fluents.text.embedders import Embedder, StaticEmbedder

NAME = "offline-1"
"""Other weights get another number."""


class FeatureMethod:
    """Names grouped by the weights that come with fluents."""

    name = NAME

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder or StaticEmbedder()

    def group(self, trace: Trace, lists: Sequence[NameList]) -> Grouped:  # noqa: ARG002 - all it needs is in the lists
        return Grouped([self._groups(one) for one in lists])

    def _groups(self, one: NameList) -> Groups:
        if len(one.names) == 1:  # most entities have one attribute, and evidence takes its time
            return [[0]]
        scorer = shipped_scorer(one.level)
        return scorer.groups(scorer.likely(PairFeatures(one.names, self._embedder)))


PROMPT = "same-entity-1"
SCHEMA = json_object(same={"type": "boolean"})


class VerifiedMethod:
    """Doubtful pairs of entities judged by a model. Attributes, where the evidence rarely errs, stay as they are."""

    def __init__(self, model: LanguageModel, pairs: int = 20) -> None:
        self._model, self._pairs = model, pairs
        self._embedder = StaticEmbedder()
        self._offline = FeatureMethod(self._embedder)
        self.name = f"{NAME}, verified-1 by {model.name}, {pairs} pairs"

    def group(self, trace: Trace, lists: Sequence[NameList]) -> Grouped:
        if any(one.level == "attributes" for one in lists):
            return self._offline.group(trace, lists)
        groups, rejects = [], []
        for one in lists:
            scorer = shipped_scorer(one.level)
            likely = scorer.likely(PairFeatures(one.names, self._embedder))
            pairs = scorer.doubtful(likely, self._pairs)
            judged = {}
            for pair, answer in zip(pairs, self._answers(trace, one, pairs), strict=True):
                if isinstance(answer, Unreadable):
                    rejects.append(Reject(text=answer.text, reason=REASON + answer.reason))
                else:
                    judged[pair] = answer
            groups.append(scorer.groups(corrected(likely, judged)))
        return Grouped(groups, tuple(rejects))

    def _answers(self, trace: Trace, one: NameList, pairs: Sequence[tuple[int, int]]) -> list[bool | Unreadable]:
        scene = whole_scene(trace.procedure)
        questions = [
            Question(
                render(
                    PROMPT,
                    scene=scene,
                    first=quoted_name(one.names[first].name),
                    second=quoted_name(one.names[second].name),
                ),
                system=system(),
                schema=SCHEMA,
                name=PROMPT,
                max_tokens=32,
            )
            for first, second in pairs
        ]
        return ask_all(self._model, questions, read_judgement)


def read_judgement(text: str) -> bool:
    """The judgement in an answer."""
    value = json_in(text)
    same = value.get("same") if isinstance(value, dict) else None
    if not isinstance(same, bool):
        raise UnreadableAnswer('the answer is neither {"same": true} nor {"same": false}')
    return same
