"""Stats: counted in the files, marked where a paper prints another number."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluents.data.datasets import DATASETS
from fluents.data.stats import Stat, stats
from fluents.errors import UnknownNameError


@pytest.mark.parametrize(
    ("counted", "printed", "differs"),
    [(13843, "13.8k", False), (13900, "13.8k", True), (3216, "3,216", False), (4.98, "5.0", False), (2.1, "7.6", True),
     (5, None, False)],
)  # fmt: skip
def test_a_printed_number_is_compared_to_its_own_precision(counted: float, printed: str | None, differs: bool) -> None:
    assert Stat("dev", "x", counted, printed).differs is differs


def test_openpi(mirror: Path) -> None:  # noqa: ARG001
    found = {(stat.split, stat.what): stat for stat in stats("openpi")}
    assert [found[split, "steps"].counted for split in ("train", "dev", "test")] == [3216, 274, 560]
    assert [found[split, "changes"].counted for split in ("train", "dev", "test")] == [23681, 1744, 4240]
    assert found["train", "changes"].printed == "23,869"
    assert found["all", "procedures"].counted == 810


def test_openpi2_counts_the_two_sets_of_entities_apart(mirror: Path) -> None:  # noqa: ARG001
    found = {stat.what: stat.counted for stat in stats("openpi2")}
    assert (found["canonical entities, of clusters"], found["canonical entities, of states"]) == (356, 349)
    assert found["procedures"] == 55


def test_every_dataset_is_counted(mirror: Path) -> None:  # noqa: ARG001
    for name in DATASETS:
        assert stats(name)


def test_an_unknown_dataset_is_named() -> None:
    with pytest.raises(UnknownNameError, match="unknown dataset 'propara'"):
        stats("propara")
