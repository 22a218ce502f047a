"""Published results: known names only, and numbers that can be numbers of that metric."""

from __future__ import annotations

import pytest

from fluents.metrics import METRICS
from fluents.report.published_results import PUBLISHED, Published, published


@pytest.mark.parametrize("one", PUBLISHED, ids=lambda one: f"{one.system} {one.metric} {one.data} {one.variant}")
def test_every_result_is_of_a_metric_we_have_and_in_its_range(one: Published) -> None:
    assert one.metric in {*METRICS, "plan"}  # which is no metric of traces
    assert one.source
    numbers = [number for columns in one.numbers.values() for number in columns.values()]
    assert numbers
    assert all(0 < number < (1 if one.metric == "salience" else 100) for number in numbers)
    for columns in one.numbers.values():
        if {"precision", "recall"} <= columns.keys() and one.metric == "clustering":
            harmonic = 2 * columns["precision"] * columns["recall"] / (columns["precision"] + columns["recall"])
            assert columns["f1"] == pytest.approx(harmonic, abs=0.1)


def test_no_system_is_named_twice_on_one_data_and_row() -> None:
    keys = [(one.system, one.data, one.metric, one.mode, one.variant, row) for one in PUBLISHED for row in one.numbers]
    assert len(keys) == len(set(keys))


def test_results_are_found_by_metric_data_and_mode() -> None:
    assert len(published("original", "openpi:test")) == 8
    assert published("original", "openpi:test", mode="strict") == []
    assert published("original", "my.jsonl") == []
    assert [one.numbers["exact"]["f1"] for one in published("clustering", "openpi2:labels", variant="attributes")] == [
        89.3
    ]
