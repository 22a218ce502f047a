"""The short form of the soak of annotation: it counts, and leaves the times to the long one."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

SOAK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "soak_annotation.py"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of schemathesis are its own
def test_no_decision_is_lost_or_doubled_and_no_place_held_twice_even_if_the_server_is_killed(
    store_address: str,
) -> None:
    found = SOAK["soak"](store_address, annotators=6, seconds=4, items=2000, kills=3, calls=100)
    assert found.errors == []
    assert found.kills == 3
    assert found.statuses.total() == 100
    assert len(found.acknowledged) > 30
    assert (found.lost, found.doubled, found.strange, found.crowded) == (0, 0, 0, 0)
