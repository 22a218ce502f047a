"""Clusters without a language model: evidence, weighed."""

from __future__ import annotations

from collections.abc import Sequence

from fluents.canonicalisation.clusters import Grouped, Groups, NameList
from fluents.canonicalisation.pair_features import PairFeatures
from fluents.canonicalisation.pair_scorer import shipped
from fluents.records import Trace
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
        scorer = shipped(one.level)
        return scorer.groups(scorer.likely(PairFeatures(one.names, self._embedder)))
