"""The short form of `make soak`: it counts, and leaves the times to the long one."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

SOAK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "soak_web.py"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of schemathesis are its own
def test_visitors_jobs_and_requests_of_every_kind_meet_no_error() -> None:
    found = SOAK["soak"](visitors=4, seconds=4, jobs=10, calls=150)
    assert found.errors == []
    assert found.jobs >= 10
    assert sum(found.statuses.values()) == 150
    assert found.server_errors == 0
    assert found.pages
