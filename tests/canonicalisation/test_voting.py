"""The vote, worked out by hand."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from fluents.canonicalisation.prompted_method import elected


def test_the_cluster_said_most_often_wins_and_leftovers_stand_alone() -> None:
    runs = [[["pan", "cookware", "container"]]] * 4 + [[["pan", "pot"]]]
    assert elected(runs, ["container", "cookware", "pan", "pot"]) == [["container", "cookware", "pan"], ["pot"]]


def test_leftovers_are_not_lumped_together() -> None:
    assert elected([[["a", "b"]]], ["a", "b", "c", "d"]) == [["a", "b"], ["c"], ["d"]]
    assert elected([], ["b", "a"]) == [["a"], ["b"]]


def test_permutations_of_a_cluster_are_one_cluster() -> None:
    """Three orders of {a, b, c} have three votes together, more than the two for {a, b}."""
    runs = [[["a", "b", "c"]], [["c", "a", "b"]], [["b", "c", "a"]], [["a", "b"], ["c"]], [["b", "a"], ["c"]]]
    assert elected(runs, ["a", "b", "c"]) == [["a", "b", "c"]]


def test_a_name_is_never_in_two_clusters() -> None:
    """{a, b} has 2 votes and {b, c} 1: c is left over."""
    assert elected([[["a", "b"]], [["a", "b"]], [["b", "c"]]], ["a", "b", "c"]) == [["a", "b"], ["c"]]


def test_single_names_have_votes_too() -> None:
    assert elected([[["a"], ["b"]], [["b"], ["a"]], [["a", "b"]]], ["a", "b"]) == [["a"], ["b"]]


def test_of_equal_votes_the_larger_cluster_then_the_alphabet() -> None:
    assert elected([[["a", "b", "c"]], [["c", "d"]]], ["a", "b", "c", "d"]) == [["a", "b", "c"], ["d"]]
    assert elected([[["b", "c"]], [["a", "b"]]], ["a", "b", "c"]) == [["a", "b"], ["c"]]


def test_names_nobody_asked_about_are_left_out_of_a_cluster() -> None:
    assert elected([[["a", "ghost", "b"], ["ghost"]], [["b", "a"]], [["a"], ["b"]]], ["a", "b"]) == [["a", "b"]]


def test_a_run_has_one_vote_for_a_cluster_and_a_name() -> None:
    """A run that repeats itself counts once; a name it puts into two clusters is in the first alone."""
    assert elected([[["a", "b"], ["b", "a"], ["a", "b"]], [["a"], ["b"]], [["b"], ["a"]]], ["a", "b"]) == [["a"], ["b"]]
    assert elected([[["a", "b"], ["b", "c"]]], ["a", "b", "c"]) == [["a", "b"], ["c"]]


NAMES = ["a", "b", "c", "d"]
answers = st.lists(st.lists(st.lists(st.sampled_from([*NAMES, "ghost"]), max_size=5), max_size=5), max_size=5)


@given(answers, st.randoms())
def test_the_outcome_is_a_partition_and_no_order_matters(runs: list[list[list[str]]], chance: random.Random) -> None:
    disjoint = [[list(dict.fromkeys(cluster)) for cluster in run] for run in runs]
    outcome = elected(disjoint, NAMES)
    assert sorted(name for cluster in outcome for name in cluster) == NAMES
    chance.shuffle(disjoint)
    assert elected([[cluster[::-1] for cluster in run] for run in disjoint], NAMES[::-1]) == outcome
