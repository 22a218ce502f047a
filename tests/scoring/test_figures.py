"""Figures computed from sums, for one sum and for many resamples at once."""

from __future__ import annotations

import numpy as np

from fluents.scoring.score import MeanOf, Ratio, ShareOf, Total

SUMS = {"a": np.array([1.0, 0.0]), "b": np.array([4.0, 0.0]), "c": np.array([2.0, 5.0])}


def test_a_total_is_the_sum() -> None:
    assert Total("c")(SUMS).tolist() == [2, 5]


def test_a_mean_of_figures_is_taken_resample_by_resample() -> None:
    assert MeanOf([Ratio("a", "b"), Ratio("b", "c")])(SUMS).tolist() == [(0.25 + 2) / 2, 0.5]


def test_a_share_of_nothing_is_not_a_number() -> None:
    first, second = ShareOf("a", "b")(SUMS)
    assert first == 0.25
    assert np.isnan(second)
    assert float(ShareOf("a", "b")({"a": np.array(1.0), "b": np.array(2.0)})) == 0.5
