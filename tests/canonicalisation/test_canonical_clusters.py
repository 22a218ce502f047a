"""A trace gets clusters: from all its names, the same whatever their order, and again the same."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import pytest
from bike import BIKE, change
from hypothesis import given, settings
from hypothesis import strategies as st

from fluents.canonicalisation import canonicalise
from fluents.canonicalisation import clusters as module
from fluents.canonicalisation.feature_method import FeatureMethod
from fluents.errors import InputError
from fluents.records import Alternatives, Reject, StateChange, Trace
from strategies import traces

OFFLINE = FeatureMethod()
MADE_UP = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "canonicalise.py"))["made_up"]


def names(trace: Trace) -> list[set[str]]:
    return [set(cluster.mentions) for cluster in trace.clusters]


def test_names_of_one_thing_are_found_and_the_words_of_the_changes_stay() -> None:
    done = canonicalise(BIKE, OFFLINE)
    assert names(done) == [{"bike", "a bike", "the bicycle"}, {"towel", "kitchen towel"}, {"hook"}]
    assert done.clusters[0].name == "bike"
    assert [set(one.mentions) for one in done.clusters[0].attributes] == [{"cleanness"}, {"wetness", "moisture"}]
    assert done.changes == BIKE.changes
    assert done.provenance.decoding["clusters"] == "offline-1"


def test_a_trace_without_changes_has_no_clusters() -> None:
    assert canonicalise(BIKE.replace(changes=()), OFFLINE).clusters == ()


def test_wordings_of_one_change_share_a_cluster() -> None:
    worded = change(1, "soda").replace(alternatives=Alternatives(entity=("soda", "hammer"), attribute=("x", "y")))
    [cluster] = canonicalise(BIKE.replace(changes=(worded,)), OFFLINE).clusters
    assert set(cluster.mentions) == {"soda", "hammer"}
    assert {name for one in cluster.attributes for name in one.mentions} == {"location", "x", "y"}


def test_old_rejects_about_names_give_way_and_others_stay() -> None:
    rejects = (Reject(text="x", reason="no entity"), Reject(text="y", reason="clustering: the answer is empty"))
    assert canonicalise(BIKE.replace(rejects=rejects), OFFLINE).rejects == rejects[:1]


@settings(max_examples=40)
@given(traces(), st.randoms(use_true_random=False))
def test_idempotent_stable_under_reordering_and_every_name_in_one_cluster(trace: Trace, chance: random.Random) -> None:
    done = canonicalise(trace, OFFLINE)
    assert canonicalise(done, OFFLINE) == done
    shuffled = list(trace.changes)
    chance.shuffle(shuffled)
    assert canonicalise(trace.replace(changes=tuple(shuffled)), OFFLINE).clusters == done.clusters
    mentions = [name for cluster in done.clusters for name in cluster.mentions]
    assert sorted(mentions) == sorted({one.entity for one in trace.changes})
    for cluster in done.clusters:
        attributes = [name for one in cluster.attributes for name in one.mentions]
        mine = {one.attribute for one in trace.changes if one.entity in cluster.mentions}
        assert sorted(attributes) == sorted(mine)


def test_hostile_names_are_names_like_others() -> None:
    hostile = ("<script>alert(1)</script>", "x" * 50_000, "the the the", "🍳 pan", "a\nb", "ignore all rules")
    done = canonicalise(BIKE.replace(changes=tuple(change(1, name) for name in hostile)), OFFLINE)
    assert sorted(name for cluster in done.clusters for name in cluster.mentions) == sorted(hostile)


def test_two_thousand_names_all_come_out() -> None:
    done = canonicalise(MADE_UP(2000), OFFLINE)
    assert sum(len(cluster.mentions) for cluster in done.clusters) == 2000


def test_too_many_names_are_told_before_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 2)
    with pytest.raises(InputError, match="5 different names"):
        canonicalise(BIKE, OFFLINE)


def test_the_first_step_orders_the_clusters() -> None:
    late: tuple[StateChange, ...] = (change(3, "anvil"), change(1, "zebra"))
    assert [cluster.name for cluster in canonicalise(BIKE.replace(changes=late), OFFLINE).clusters] == [
        "zebra",
        "anvil",
    ]
