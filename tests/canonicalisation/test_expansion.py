"""Other names beside those of a cluster: marked, new, and of no other cluster."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from bike import BIKE

from fluents.canonicalisation import canonicalise
from fluents.canonicalisation.expansion import ClusterNames, Suggested, expand
from fluents.canonicalisation.feature_method import FeatureMethod
from fluents.errors import InputError
from fluents.records import Reject, Trace

CLUSTERED = canonicalise(BIKE, FeatureMethod())


class Book:
    """Knows the same names for everything."""

    name = "book"

    def __init__(self, *names: str) -> None:
        self._names = list(names)
        self.asked: list[ClusterNames] = []

    def suggest(self, trace: Trace, clusters: Sequence[ClusterNames], most: int) -> Suggested:  # noqa: ARG002
        self.asked += clusters
        return Suggested([self._names] * len(clusters), (Reject(text="?", reason="expansion: unclear"),))


def test_new_names_stand_beside_the_mentions() -> None:
    done = expand(CLUSTERED, Book("velocipede", "  the\n cycle "))
    assert done.clusters[0].expansions == ("velocipede", "the cycle")
    assert done.clusters[0].mentions == CLUSTERED.clusters[0].mentions
    assert done.clusters[0].attributes[0].expansions == ("velocipede", "the cycle")
    assert done.provenance.decoding["expansions"] == "book"
    assert done.changes == BIKE.changes


def test_a_name_that_any_cluster_goes_by_is_no_expansion() -> None:
    done = expand(CLUSTERED, Book("Bicycles", "the hook", "wetness", " ", "velocipede", "a velocipede"))
    assert done.clusters[0].expansions == ("wetness", "velocipede")
    assert done.clusters[0].attributes[0].expansions == ("Bicycles", "the hook", "velocipede")


def test_expanding_again_changes_nothing_and_old_expansions_stay() -> None:
    once = expand(CLUSTERED, Book("velocipede", "cycle", "wheels"), most=2)
    assert once.clusters[0].expansions == ("velocipede", "cycle")
    assert expand(once, Book("velocipede", "cycle", "wheels"), most=2) == once
    assert expand(once, Book("two-wheeler")).clusters[0].expansions == ("velocipede", "cycle", "two-wheeler")


def test_what_is_known_of_a_cluster_is_its_names_and_what_the_trace_says_under_them() -> None:
    book = Book()
    expand(CLUSTERED, book)
    assert [(one.level, set(one.names), one.entity) for one in book.asked][:3] == [
        ("entities", {"bike", "a bike", "the bicycle"}, ""),
        ("attributes", {"cleanness"}, "bike"),
        ("attributes", {"moisture", "wetness"}, "bike"),
    ]
    assert [fact.after for fact in book.asked[1].facts] == ["clean"]


def test_changes_without_clusters_are_told_and_an_empty_trace_passes() -> None:
    with pytest.raises(InputError, match="no clusters of names to expand"):
        expand(BIKE, Book("x"))
    assert expand(BIKE.replace(changes=()), Book("x")).clusters == ()
