"""The log of a run can be read again whatever its figures came to be."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("torch", reason="training: pip install 'fluents[train]'")

from fluents.training.checkpoint_state import finite, log_so_far
from fluents.training.neural_log import RunLog
from fluents.training.neural_settings import NeuralTrainingSettings

ABOUT = {"data": "some"}


def test_a_run_that_diverged_can_be_taken_up_again(tmp_path: Path) -> None:
    entry = finite({"epoch": 1, "train_loss": math.nan, "dev_loss": math.inf, "value": None})
    (tmp_path / "log.json").write_text(json.dumps(ABOUT | {"log": [entry]}))
    assert log_so_far(tmp_path / "log.json", ABOUT) == [
        {"epoch": 1, "train_loss": None, "dev_loss": None, "value": None}
    ]


def test_an_epoch_that_lacks_figures_does_not_lose_those_of_another(tmp_path: Path) -> None:
    """Else an epoch would be trained, and then lost when its line cannot be written."""
    (tmp_path / "train.json").write_text(json.dumps(ABOUT | {"log": [{"epoch": 1}]}))
    log = RunLog(tmp_path, NeuralTrainingSettings(), ABOUT)
    log.add({"epoch": 2, "value": -1.5})
    log.write()
    assert (tmp_path / "train.csv").read_text().split() == ["epoch,value", "1,", "2,-1.5"]
    assert RunLog(tmp_path, NeuralTrainingSettings(), ABOUT).epochs == [{"epoch": 1}, {"epoch": 2, "value": -1.5}]
