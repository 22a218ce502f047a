"""The weighted sum: ridge regression, the scale it keeps to, and the table it is kept as."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.salience.ridge import Ridge, fit_ridge


def test_a_feature_that_tells_the_label_is_learnt() -> None:
    told = np.array([0.0, 1, 2, 3, 4, 5])
    learnt = fit_ridge({"told": told, "constant": np.ones(6)}, told.copy(), penalty=1)
    assert learnt({"told": told, "constant": np.ones(6)}) == pytest.approx(told)


def test_a_strong_penalty_keeps_the_spread_of_the_labels() -> None:
    """Thresholds must mean what they mean for the raters."""
    told = np.array([1.0, 2, 3, 4, 5, 3])
    labels = np.array([1.0, 1, 3, 5, 5, 3])
    ratings = fit_ridge({"told": told}, labels, penalty=1e6)({"told": told})
    assert ratings.std() == pytest.approx(labels.std(), abs=0.2)


def test_labels_nobody_gave_are_left_out() -> None:
    told = np.array([1.0, 2, 3, 4])
    with_gap = fit_ridge({"told": np.append(told, 9)}, np.append(told, np.nan), penalty=2)
    assert with_gap == fit_ridge({"told": told}, told, penalty=2)


def test_labels_that_are_all_the_same_give_that_label() -> None:
    assert fit_ridge({"told": np.arange(4.0)}, np.full(4, 3.0), penalty=1)({"told": np.array([100.0])}) == [3.0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.floats(-9, 9))
def test_ratings_stay_on_the_scale(numbers: list[float], weight: float) -> None:
    ratings = Ridge(2.5, ("x",), (0.0,), (1.0,), (weight,))({"x": np.array(numbers)})
    assert ((ratings >= 0) & (ratings <= 5)).all()


def test_a_table_is_read_back() -> None:
    weights = Ridge(3.25, ("less", "more"), (0.5, 1.0), (1.0, 2.0), (0.125, -0.75))
    assert weights.table().splitlines()[2].startswith("more\t")
    again = Ridge.from_table(weights.table())
    columns = {"less": np.array([1.0, 2.0]), "more": np.array([0.5, 3.0])}
    assert again(columns) == pytest.approx(weights(columns))
