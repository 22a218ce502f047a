"""Clustering: the published numbers, what compat does oddly, and B-cubed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.data import openpi2_labels
from fluents.errors import InputError, UnknownNameError
from fluents.metrics import score
from fluents.metrics.clustering import Groupings, clustering, groupings_of
from fluents.records import AttributeCluster, EntityCluster, Procedure, Trace
from fluents.scoring.bootstrap import intervals


def entities(*clusters: str) -> Groupings:
    """One procedure's: the letters of each word are a cluster."""
    return {("tea", ""): [list(cluster) for cluster in clusters]}


@pytest.mark.usefixtures("mirror")
def test_entity_clusters_get_the_published_mean_over_five_runs() -> None:
    runs = [openpi2_labels.entity_run(run) for run in openpi2_labels.ENTITY_RUNS]
    row = clustering(openpi2_labels.entity_labels(), runs)["exact"]
    assert [f"{row[name]:.1f}" for name in ("recall", "precision", "f1")] == ["42.5", "59.3", "49.5"]


@pytest.mark.usefixtures("mirror")
def test_attribute_clusters_get_the_published_scores() -> None:
    score = clustering(openpi2_labels.attribute_labels(), openpi2_labels.attribute_run(), level="attributes")
    row = score["exact"]
    assert [f"{row[name]:.1f}" for name in ("recall", "precision", "f1")] == ["88.1", "90.6", "89.3"]
    low, high = intervals(score, resamples=100)["b-cubed"]["f1"]
    assert low < score["b-cubed"]["f1"] < high


@pytest.mark.usefixtures("mirror")
def test_strict_scores_of_the_released_clusters() -> None:
    runs = [openpi2_labels.entity_run(run) for run in openpi2_labels.ENTITY_RUNS]
    of_entities = clustering(openpi2_labels.entity_labels(), runs, mode="strict")
    of_attributes = clustering(
        openpi2_labels.attribute_labels(), openpi2_labels.attribute_run(), mode="strict", level="attributes"
    )
    assert [f"{of_entities[row]['f1']:.1f}" for row in ("exact", "b-cubed")] == ["48.8", "76.9"]
    assert [f"{of_attributes[row]['f1']:.1f}" for row in ("exact", "b-cubed")] == ["92.9", "95.9"]


def test_compat_swaps_the_numerators() -> None:
    """A predicted cluster that comes twice raises recall above 1, and precision counts the gold cluster once."""
    row = clustering(entities("ab"), entities("ab", "ba"))["exact"]
    assert (row["recall"], row["precision"]) == (200, 50)
    row = clustering(entities("ab"), entities("ab", "ba"), mode="strict")["exact"]
    assert (row["recall"], row["precision"]) == (100, 100)


def test_only_compat_takes_out_names_the_gold_does_not_have() -> None:
    """A cluster of nothing else is left behind empty, and counts."""
    gold, pred = entities("ab", "c"), entities("abx", "c", "y")
    row = clustering(gold, pred)["exact"]
    assert row["recall"] == 100
    assert row["precision"] == pytest.approx(200 / 3)
    row = clustering(gold, pred, mode="strict")["exact"]
    assert row["recall"] == 50
    assert row["precision"] == pytest.approx(100 / 3)


def test_only_compat_skips_single_attribute_clusters() -> None:
    gold = {("tea", "cup"): [["heat"]], ("tea", "pot"): [["heat"], ["place", "spot"]]}
    pred = {("tea", "cup"): [["heat"]], ("tea", "pot"): [["heat", "place", "spot"]]}
    assert clustering(gold, pred, level="attributes")["exact"]["recall"] == 0
    assert clustering(gold, pred, level="attributes", mode="strict")["exact"]["recall"] == pytest.approx(100 / 3)


def test_the_mean_over_runs_is_of_their_figures() -> None:
    """Not of their pooled counts: two runs of different size weigh the same."""
    runs = entities("ab"), entities("a", "b", "c", "d")
    row = clustering(entities("ab"), runs, mode="strict")["exact"]
    assert row == {"precision": 50, "recall": 50, "f1": 50}


def test_b_cubed_by_hand() -> None:
    """Gold abc|d, predicted ab|cd: precision (1+1+.5+.5)/4, recall (2/3+2/3+1/3+1)/4."""
    row = clustering(entities("abc", "d"), entities("ab", "cd"), mode="strict")["b-cubed"]
    assert row["precision"] == pytest.approx(75)
    assert row["recall"] == pytest.approx(100 * (2 / 3 + 2 / 3 + 1 / 3 + 1) / 4)


def test_b_cubed_of_names_in_two_clusters_at_once() -> None:
    """Amigó et al.: a pair that shares two gold clusters and one predicted one is half recalled."""
    row = clustering(entities("ab", "abc"), entities("abc"), mode="strict")["b-cubed"]
    assert row["precision"] == 100
    a_and_b = (1 / 2 + 1 / 2 + 1) / 3
    assert row["recall"] == pytest.approx(100 * (a_and_b + a_and_b + 1) / 3)


def test_clusters_come_from_traces_too() -> None:
    pot = EntityCluster(
        name="pot",
        mentions=("kettle",),
        expansions=("boiler",),
        attributes=(AttributeCluster(name="heat", mentions=("heat", "warmth"), expansions=("fire",)),),
    )
    trace = Trace(procedure=Procedure(id="tea", steps=("Boil.",)), clusters=(pot,))
    assert groupings_of([trace], "entities") == {("tea", ""): [{"pot", "kettle"}]}
    assert groupings_of([trace], "attributes") == {("tea", "pot"): [{"heat", "warmth"}]}
    assert clustering([trace], [trace], mode="strict")["exact"]["f1"] == 100
    with pytest.raises(InputError, match="two procedures have the same id, tea"):
        groupings_of([trace, trace], "entities")


def test_strict_refuses_what_only_one_side_has_and_compat_warns() -> None:
    gold = {**entities("ab"), ("soup", ""): [["x"]]}
    with pytest.raises(InputError, match="1 gold procedure without a prediction: soup"):
        clustering(gold, entities("ab"), mode="strict")
    assert clustering(gold, entities("ab")).warnings == ("1 gold procedure without a prediction: soup",)


@pytest.mark.parametrize("gold", [{}, {("tea", ""): []}])
def test_gold_without_clusters_is_refused(gold: Groupings) -> None:
    with pytest.raises(InputError, match="no clusters"):
        clustering(gold, gold)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="entities, attributes"):
        score("clustering", entities("a"), entities("a"), level="steps")


@given(
    st.lists(st.text("abcd", min_size=1, max_size=3), min_size=1), st.lists(st.text("abcde", max_size=3)), st.randoms()
)
def test_strict_is_bounded_and_knows_no_order(gold: list[str], pred: list[str], random: Random) -> None:
    score = clustering(entities(*gold), entities(*pred), mode="strict")
    assert all(0 <= value <= 100 + 1e-9 for row in score.rows.values() for value in row.values())
    again = clustering(entities(*random.sample(gold, len(gold))), entities(*pred, *pred), mode="strict")
    for name, row in score.rows.items():
        assert again[name] == pytest.approx(row)
    assert again.signature == score.signature


@given(st.lists(st.text("abcd", min_size=1, max_size=3), min_size=1))
def test_strict_gold_scores_1_against_itself(gold: list[str]) -> None:
    score = clustering(entities(*gold), entities(*gold), mode="strict")
    assert all(value == pytest.approx(100) for row in score.rows.values() for value in row.values())
