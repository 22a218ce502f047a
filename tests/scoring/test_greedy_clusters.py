"""Greedy clustering and B-cubed, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.records import StateChange
from fluents.scoring.alignment import StepAnswers
from fluents.scoring.greedy_clusters import b_cubed, clusters_by_label, given_clusters, greedy_clusters


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


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
def test_b_cubed_equals_its_definition_item_by_item(labels: list[tuple[int, int]]) -> None:
    """By hand: gold {1,2},{3}; predicted {1},{2,3}. Item precisions 1, 1/2, 1/2."""
    gold, pred = ([pair[side] for pair in labels] for side in (0, 1))
    items = range(len(labels))
    precision = 0.0
    for item in items:
        ours = {other for other in items if pred[other] == pred[item]}
        precision += sum(gold[other] == gold[item] for other in ours) / len(ours)
    made, meant = clusters_by_label(pred), clusters_by_label(gold)
    assert b_cubed(made, meant) == pytest.approx((precision, len(labels)))
    assert b_cubed(meant, meant) == pytest.approx((len(labels), len(labels)))
    assert b_cubed([[1], [2, 3]], [[1, 2], [3]]) == (2.0, 3)
