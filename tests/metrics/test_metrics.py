"""The table of metrics, and that asking for one imports no more than it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fluents.errors import UnknownNameError
from fluents.metrics import METRICS, load


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_of_the_table_can_be_loaded(name: str) -> None:
    assert callable(load(name))


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="original"):
        load("perplexity")


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import fluents.metrics", ("numpy", "scipy", "torch")),
        ("from fluents.metrics import load; load('original')", ("scipy", "torch")),
        ("from fluents.metrics import load; load('cluster')", ("scipy", "torch", "tokenizers", "wordllama")),
    ],
)
def test_heavy_libraries_are_imported_only_when_used(statement: str, absent: tuple[str, ...]) -> None:
    code = f"{statement}\nimport sys\nprint([name for name in {absent!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
