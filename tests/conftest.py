"""Fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Shared machines stall now and then: a property is judged by its truth, not by its time.
settings.register_profile("fluents", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fluents")


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder with the published files. Tests that need it skip without it, except in CI, where they must run."""
    folder = os.environ.get("FLUENTS_DATA_MIRROR")
    if folder:
        return Path(folder)
    if os.environ.get("CI") == "true":
        pytest.fail("CI must run the golden tests: set FLUENTS_DATA_MIRROR to the folder of published files")
    pytest.skip(
        "golden test on the published data: set FLUENTS_DATA_MIRROR to a folder laid out as <owner>/<repo>/<path> "
        "with the files `fluents data list --files` names"
    )
