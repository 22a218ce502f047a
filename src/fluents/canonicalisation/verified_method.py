"""The offline method, with a language model asked about the pairs of entities it is least sure of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fluents.canonicalisation.clusters import REASON, Grouped, NameList
from fluents.canonicalisation.feature_method import NAME, FeatureMethod
from fluents.canonicalisation.pair_features import PairFeatures
from fluents.canonicalisation.pair_scorer import corrected, shipped
from fluents.llm import Answerer, Question
from fluents.llm.answers import Unreadable, UnreadableAnswer, ask_all, json_in
from fluents.prompts.llm import MAX_NAME_BYTES, quoted, system, whole_scene
from fluents.prompts.prompt_files import render
from fluents.records import Reject, Trace
from fluents.text.embedders import StaticEmbedder

PROMPT = "same-entity-1"
SCHEMA = {
    "type": "object",
    "properties": {"same": {"type": "boolean"}},
    "required": ["same"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Verifying:
    """Who is asked, and about how many pairs at most."""

    asker: Answerer
    model: str
    """Its name, for the record."""
    pairs: int = 20
    workers: int = 8
    on_answer: Callable[[int, int], None] | None = None
    max_tokens: int | None = None
    """Of an answer; None: enough for true or false."""


class VerifiedMethod:
    """Doubtful pairs of entities judged by a model. Attributes, where the evidence rarely errs, stay as they are."""

    def __init__(self, verifying: Verifying) -> None:
        self._verifying = verifying
        self._embedder = StaticEmbedder()
        self._offline = FeatureMethod(self._embedder)
        self.name = f"{NAME}, verified-1 by {verifying.model}, {verifying.pairs} pairs"

    def group(self, trace: Trace, lists: Sequence[NameList]) -> Grouped:
        if any(one.level == "attributes" for one in lists):
            return self._offline.group(trace, lists)
        groups, rejects = [], []
        for one in lists:
            scorer = shipped(one.level)
            likely = scorer.likely(PairFeatures(one.names, self._embedder))
            pairs = scorer.doubtful(likely, self._verifying.pairs)
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
                    first=quoted(one.names[first].name, MAX_NAME_BYTES),
                    second=quoted(one.names[second].name, MAX_NAME_BYTES),
                ),
                system=system(),
                schema=SCHEMA,
                name=PROMPT,
                max_tokens=32,
            )
            for first, second in pairs
        ]
        how = self._verifying
        return ask_all(how.asker, questions, read, how.workers, how.on_answer, how.max_tokens)


def read(text: str) -> bool:
    """The judgement in an answer."""
    value = json_in(text)
    same = value.get("same") if isinstance(value, dict) else None
    if not isinstance(same, bool):
        raise UnreadableAnswer('it does not say {"same": true} or {"same": false}')
    return same
