"""Greedy clustering and B-cubed, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.records import StateChange
from fluents.scoring.greedy_clusters import b_cubed, given_clusters, greedy_clusters
from fluents.scoring.step_alignment import StepAnswers


def on_circle(*degrees: float) -> np.typing.NDArray[np.float32]:
    angles = np.radians(degrees)
    return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


def test_a_row_joins_the_first_cluster_all_of_whose_members_are_alike() -> None:
    """Within 30°: 20 joins 0; 40 is like 20 but not like 0, so it opens a cluster; 25 fits both and takes the first."""
    threshold = float(np.cos(np.radians(30)))
    assert greedy_clusters(on_circle(0, 20, 40, 25), threshold) == [0, 0, 1, 0]
    assert greedy_clusters(on_circle(0, 40, 20, 25), threshold) == [0, 1, 0, 0]


def test_the_threshold_itself_is_not_alike_enough() -> None:
    """Cosine 1 with a threshold of 1: equal texts stay apart, as published."""
    assert greedy_clusters(on_circle(0, 0), 1.0) == [0, 1]
    assert greedy_clusters(on_circle(0, 0), 0.999) == [0, 0]
    assert greedy_clusters(np.zeros((0, 2), dtype=np.float32), 0.5) == []


def test_clusters_are_given_only_if_every_answer_has_one() -> None:
    one = StateChange(step=1, entity="e", attribute="a", before="b", after="c", cluster=4)
    other = one.replace(cluster=0)
    assert given_clusters(StepAnswers("p", 1, (one, other, one))) == [4, 0, 4]
    assert given_clusters(StepAnswers("p", 1, (one, "not read"))) is None
    assert given_clusters(StepAnswers("p", 1, (one, one.replace(cluster=None)))) is None
    assert given_clusters(StepAnswers("p", 1, ())) is None


def test_b_cubed_by_hand() -> None:
    """Gold {1,2},{3}; predicted {1},{2,3}. Item precisions 1, 1/2, 1/2; recalls 1/2, 1/2, 1."""
    found = b_cubed("aab", "xyy")
    assert (found.precision, found.recall, found.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
def test_b_cubed_equals_its_definition_item_by_item(labels: list[tuple[int, int]]) -> None:
    gold, pred = [g for g, _ in labels], [p for _, p in labels]
    items = range(len(labels))
    precision = recall = 0.0
    for item in items:
        ours = {other for other in items if pred[other] == pred[item]}
        theirs = {other for other in items if gold[other] == gold[item]}
        precision += len(ours & theirs) / len(ours) / len(labels)
        recall += len(ours & theirs) / len(theirs) / len(labels)
    assert b_cubed(gold, pred)[:2] == pytest.approx((precision, recall))
    assert b_cubed(gold, gold) == pytest.approx((1, 1, 1))


def test_b_cubed_needs_labels_for_the_same_items() -> None:
    with pytest.raises(ValueError, match="labels for 2 and 1 items"):
        b_cubed("ab", "a")
