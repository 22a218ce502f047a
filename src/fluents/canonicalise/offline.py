"""Clusters without a language model: evidence, weighed."""

from __future__ import annotations

from collections.abc import Sequence

from fluents.canonicalise.clusters import Grouped, NameList, Places
from fluents.canonicalise.evidence import Evidence
from fluents.canonicalise.scorer import shipped
from fluents.metrics.embedders import Embedder, StaticEmbedder
from fluents.records import Trace

NAME = "offline-1"
"""Other weights get another number."""


class Offline:
    """Names grouped by the weights that come with fluents."""

    name = NAME

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder or StaticEmbedder()

    def group(self, trace: Trace, lists: Sequence[NameList]) -> Grouped:  # noqa: ARG002 - all it needs is in the lists
        return Grouped([self._groups(one) for one in lists])

    def _groups(self, one: NameList) -> Places:
        if len(one.names) == 1:  # most entities have one attribute, and evidence takes its time
            return [[0]]
        scorer = shipped(one.level)
        return scorer.groups(scorer.likely(Evidence(one.names, self._embedder)))
