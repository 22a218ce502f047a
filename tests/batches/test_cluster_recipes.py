"""The recipes in docs/batch.md run as they stand: the tasks of an array job, and datatrove's ranks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="needs the extra batch")

from fluents.batches import batch
from kitchen import each_once, files, menu, recording

PAGE = (Path(__file__).parents[2] / "docs" / "batch.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.slow


@pytest.fixture
def kitchen_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    recording(tmp_path)
    menu(tmp_path, 230, "recipes.jsonl")
    return tmp_path


def block(kind: str) -> str:
    [found] = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.M | re.S)
    return str(found)


def finish(folder: Path, out: str) -> None:
    """The last run, which writes the manifest, finds all shards done; they are those of a single run."""
    replay = folder / "recorded.jsonl"
    report = batch("recipes.jsonl", out, workers=1, stages=["segment", "track"], replay=replay)
    assert report.skipped == report.shards
    assert each_once(folder / out, 230)
    batch("recipes.jsonl", "whole", workers=1, stages=["segment", "track"], replay=replay)
    assert files(folder / out) == files(folder / "whole")


def test_the_tasks_of_a_slurm_array(kitchen_folder: Path) -> None:
    script = kitchen_folder / "array.sh"
    more = " --stages segment,track --replay recorded.jsonl"
    script.write_text(block("sh slurm").rstrip().replace("fluents batch", f"{sys.executable} -m fluents batch") + more)
    for task in range(1, 4):
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "3"}
        subprocess.run([shutil.which("bash") or "bash", script], env=environment, check=True, capture_output=True)
    finish(kitchen_folder, "results")


def test_datatrove_ranks(kitchen_folder: Path) -> None:
    pytest.importorskip("datatrove", reason="datatrove is not installed")
    code = block("py").replace("workers=1)", 'workers=1, stages=["segment", "track"], replay="recorded.jsonl")', 1)
    (kitchen_folder / "ranks.py").write_text(code)
    done = subprocess.run([sys.executable, "ranks.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    finish(kitchen_folder, "results")
