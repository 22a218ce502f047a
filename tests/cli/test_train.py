"""`fluents train adapter | sample` and their neighbours, without torch: names, and mistakes told before the work."""

from __future__ import annotations

import subprocess
import sys

import pytest


def fails(*arguments: str) -> str:
    """Run what must end as a user's error: status 2, one message, no traceback."""
    done = subprocess.run([sys.executable, "-m", "fluents", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("train", "local", "--data", "openpi", "--out", "runs/x"), "fluents train adapter"),
        (("train", "local", "--help"), "fluents train adapter"),
        (("train", "base", "--out", "models/tiny"), "fluents weights export"),
    ],
)
def test_an_old_name_names_the_new_one(old: tuple[str, ...], new: str) -> None:
    assert f"was renamed to `{new}`" in fails(*old)


def test_an_adapter_of_another_form_is_not_refined() -> None:
    pytest.importorskip("torch", reason="training: pip install 'fluents[train]'")
    assert "version transcript-1 can be refined" in fails("train", "refine", "both", "--out", "runs/x")


@pytest.mark.parametrize("adapter", ["yours", "nothing.gguf", __file__])
def test_a_wrong_adapter_is_told_at_once(adapter: str) -> None:
    assert fails("serve-model", "--port", "0", "--adapter", adapter).startswith("error: ")
