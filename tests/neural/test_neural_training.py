"""Training the neural systems for real, on tiny models: they learn, resume bit for bit, and agree over processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tiny_neural import begin, gold, model_folder

from fluents import jsonl
from fluents.errors import InputError
from fluents.neural.inputs import Decoding

if os.environ.get("CI") != "true":
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package, reason="neural systems: pip install 'fluents[train]'")

pytestmark = [
    pytest.mark.slow,
    # Deprecations inside torch and transformers are theirs to mend.
    pytest.mark.filterwarnings("ignore"),
]

SYSTEMS = [
    ("gpt2", "baseline"),
    ("gpt2", "concat-states"),
    ("gpt2", "econd"),
    ("bart", "baseline"),
    ("bart", "concat-states"),
    ("bart", "emem"),
    ("bart", "econd"),
    ("bart", "emem+econd"),
    ("t5", "emem"),
]


def _settings(**more: Any) -> Any:
    from fluents.training.neural_settings import NeuralTrainingSettings

    chosen: dict[str, Any] = {"epochs": 3, "batch": 64, "learning_rate": 3e-3, "metric": "last"}
    return NeuralTrainingSettings(**chosen | more)


def _log(folder: Path) -> list[dict[str, Any]]:
    log: list[dict[str, Any]] = json.loads((folder / "train.json").read_text())["log"]
    return log


@pytest.mark.parametrize(("arch", "system"), SYSTEMS)
def test_a_system_learns_eight_steps_by_heart(tmp_path: Path, arch: str, system: str) -> None:
    """From training to the tracker: the loss falls, and the checkpoint's own predictions are the gold changes."""
    from fluents.metrics.original import original
    from fluents.trackers.neural import NeuralSettings, NeuralTracker
    from fluents.training.neural import train

    trained = begin(tmp_path, arch, system)
    assert sum(parameter.numel() for parameter in trained.network.parameters()) <= 1_000_000
    settings = _settings(epochs=100, save_every=100, learning_rate=8e-3, warmup=0.2)
    out = train(trained, gold(), [], tmp_path / "run", settings)
    losses = [epoch["train_loss"] for epoch in _log(out)]
    assert losses[-1] < 0.1 * losses[0]

    tracker = NeuralTracker(out, NeuralSettings(Decoding(beams=2)), {trace.id: trace for trace in gold()})
    said = tracker.track_many([trace.procedure for trace in gold()])
    assert original(gold(), said, mode="strict", matchers=["exact"])["exact"]["f1"] == 100
    assert all(trace.rejects == () for trace in said)


@pytest.mark.parametrize(("arch", "system", "every"), [("bart", "emem", 1), ("gpt2", "baseline", 2)])
def test_a_broken_run_goes_on_bit_for_bit(tmp_path: Path, arch: str, system: str, every: int) -> None:
    from safetensors.torch import load_file

    from fluents.training.neural import train

    settings = _settings(epochs=4, batch=3, metric="loss", save_every=every)
    whole = train(begin(tmp_path, arch, system, dropout=0.1), gold(), gold(), tmp_path / "whole", settings)

    class Stop(Exception):
        pass

    def stop(event: dict[str, Any]) -> None:
        if event["epoch"] == 4:
            raise Stop

    broken = tmp_path / "broken"
    with pytest.raises(Stop):
        train(begin(tmp_path, arch, system, dropout=0.1), gold(), gold(), broken, settings, stop)
    assert len(_log(broken)) == 3
    assert [file.name for file in broken.glob("epoch-*")] == [f"epoch-{3 - 3 % every}.safetensors"]
    train(begin(tmp_path, arch, system, dropout=0.1), gold(), gold(), broken, settings)
    assert [_without_time(epoch) for epoch in _log(broken)] == [_without_time(epoch) for epoch in _log(whole)]
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (whole, broken))
    assert ours.keys() == theirs.keys()
    assert all(ours[name].equal(theirs[name]) for name in ours)
    assert not list(broken.glob("epoch-*")), "a finished run keeps no state"

    again = train(begin(tmp_path, arch, system, dropout=0.1), gold(), gold(), broken, settings)
    assert again == broken, "a finished run is left as it is"
    with pytest.raises(InputError, match="differs from this one in: settings"):
        train(begin(tmp_path, arch, system, dropout=0.1), gold(), [], broken, _settings(epochs=1))


def test_a_run_with_other_data_or_another_model_is_refused_and_an_upgrade_is_not(tmp_path: Path) -> None:
    """The checkpoint of another run must not be taken for this one's."""
    from fluents.neural.checkpoint import begin as begin_
    from fluents.training.neural import train

    out, settings = tmp_path / "run", _settings(epochs=1)
    train(begin(tmp_path, "gpt2"), gold(), gold()[:1], out, settings)
    with pytest.raises(InputError, match="differs from this one in: system"):
        train(begin(tmp_path, "gpt2", "concat-states"), gold(), gold()[:1], out, settings)
    with pytest.raises(InputError, match="differs from this one in: data"):
        train(begin(tmp_path, "gpt2"), gold()[:1], gold()[:1], out, settings)
    with pytest.raises(InputError, match="differs from this one in: dev"):
        train(begin(tmp_path, "gpt2"), gold(), gold(), out, settings)
    larger = model_folder(tmp_path / "larger", "gpt2")
    config = json.loads((larger / "config.json").read_text())
    (larger / "config.json").write_text(json.dumps(config | {"n_layer": 3}))
    other = begin_(str(larger), "baseline", "openpi-c", arch="gpt2", from_scratch=True, seed=1, download=False)
    with pytest.raises(InputError, match="differs from this one in: weights"):
        train(other, gold(), gold()[:1], out, settings)
    with pytest.raises(InputError, match="differs from this one in: weights"):  # of the same shape
        train(begin(tmp_path, "gpt2", seed=2), gold(), gold()[:1], out, settings)
    summary = json.loads((out / "train.json").read_text())
    summary["version"] = "0.0.1"
    (out / "train.json").write_text(json.dumps(summary))
    assert train(begin(tmp_path, "gpt2"), gold(), gold()[:1], out, settings) == out


def test_an_epoch_without_a_number_is_never_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first epoch that diverged must not be kept, and its log must stay JSON."""
    from fluents.training import neural

    losses = iter([float("nan"), 2.0, float("inf")])
    monkeypatch.setattr(neural._Run, "_dev_loss", lambda _: next(losses))
    out = neural.train(begin(tmp_path, "gpt2"), gold(), gold(), tmp_path / "run", _settings(metric="loss"))
    assert [(epoch["dev_loss"], epoch["value"]) for epoch in _log(out)] == [(None, None), (2.0, -2.0), (None, None)]
    assert json.loads((out / "train.json").read_text())["best"] == 2
    assert "NaN" not in (out / "train.json").read_text()


def _without_time(epoch: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in epoch.items() if name != "seconds"}


@pytest.mark.parametrize(("arch", "system"), [("gpt2", "concat-states"), ("t5", "emem")])
def test_lora_learns_and_its_checkpoint_holds_the_sum(tmp_path: Path, arch: str, system: str) -> None:
    """Frozen weights are frozen, what is new for memory learns, and a plain load gives what the run had."""
    import torch

    from fluents.neural.checkpoint import load, weights
    from fluents.neural.encoding import side_by_side, taught
    from fluents.training.neural import train

    before = {name: value.clone() for name, value in weights(begin(tmp_path, arch, system).network).items()}
    trained = begin(tmp_path, arch, system)
    out = train(trained, gold(), [], tmp_path / "run", _settings(lora=4, epochs=6, learning_rate=2e-2))
    assert _log(out)[-1]["train_loss"] < _log(out)[0]["train_loss"]

    loaded = load(out, "cpu")
    after = weights(loaded.network)
    changed = {name for name in before if not before[name].equal(after[name])}
    assert not any("norm" in name or "ln_" in name or "wte" in name or "shared" in name for name in changed)
    assert any(".memory." in name for name in changed) == (system == "emem")
    assert len(changed) > 4
    rounds = side_by_side([taught(trace, trained.system, "openpi-c", trained.codec) for trace in gold()])
    with torch.no_grad():
        ours, theirs = (one.network.eval()(rounds) for one in (trained, loaded))
    assert float(ours) == pytest.approx(float(theirs), rel=1e-5)


def test_a_broken_run_with_lora_goes_on_bit_for_bit(tmp_path: Path) -> None:
    from fluents.training.neural import train

    settings = _settings(lora=2, batch=3)

    def stop(event: dict[str, Any]) -> None:
        if event["epoch"] == 3:
            raise KeyboardInterrupt

    whole = train(begin(tmp_path, "bart", "emem"), gold(), [], tmp_path / "whole", settings)
    with pytest.raises(KeyboardInterrupt):
        train(begin(tmp_path, "bart", "emem"), gold(), [], tmp_path / "broken", settings, stop)
    broken = train(begin(tmp_path, "bart", "emem"), gold(), [], tmp_path / "broken", settings)
    ours, theirs = ((folder / "model.safetensors").read_bytes() for folder in (whole, broken))
    assert ours == theirs


def test_the_curve_is_written_for_tensorboard(tmp_path: Path) -> None:
    """Every epoch's figures, and each event goes on to who else listens."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("tensorboard", reason="the curve for TensorBoard: pip install tensorboard")
    accumulator = import_module("tensorboard.backend.event_processing.event_accumulator")
    from fluents.training.neural import TensorBoardReport

    heard: list[dict[str, Any]] = []
    board = TensorBoardReport(tmp_path, heard.append)
    board({"epoch": 1, "step": 1, "steps": 1, "loss": 3.0})
    assert not list(tmp_path.iterdir()), "a process that reports nothing writes nothing"
    for epoch in (1, 2):
        board({"epoch": epoch, "updates": 3, "train_loss": 1.0 / epoch, "dev_loss": None, "seconds": 0.1})
    assert len(heard) == 3
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in events.Scalars("train_loss")] == [(1, 1.0), (2, 0.5)]


def test_a_batch_cut_up_teaches_the_same(tmp_path: Path) -> None:
    from fluents.training.neural import train

    whole = train(begin(tmp_path, "bart", "emem"), gold(), [], tmp_path / "whole", _settings())
    parts = train(begin(tmp_path, "bart", "emem"), gold(), [], tmp_path / "parts", _settings(accumulate=2))
    for one, other in zip(_log(whole), _log(parts), strict=True):
        assert one["train_loss"] == pytest.approx(other["train_loss"], abs=1e-4)


def test_training_ends_when_dev_gets_no_better_and_keeps_the_best(tmp_path: Path) -> None:
    """A learning rate of nothing never gets better: one epoch to beat, two to wait."""
    from fluents.training.neural import train

    settings = _settings(epochs=9, learning_rate=0.0, metric="loss", patience=2)
    out = train(begin(tmp_path, "t5"), gold(), gold(), tmp_path / "run", settings)
    assert len(_log(out)) == 3
    assert json.loads((out / "train.json").read_text())["best"] == 1


def test_the_kept_epoch_can_be_the_one_that_answers_best(tmp_path: Path) -> None:
    from fluents.training.neural import train

    out = train(begin(tmp_path, "bart"), gold(), gold()[:1], tmp_path / "run", _settings(epochs=1, metric="rouge"))
    rows = (out / "train.csv").read_text().splitlines()
    assert len(rows) == 2
    assert rows[0] == "epoch,updates,train_loss,dev_loss,rouge,value,seconds"
    assert _log(out)[0]["value"] == _log(out)[0]["rouge"]


@pytest.mark.parametrize("lora", [0, 4])
def test_bf16_learns_and_saves_float32(tmp_path: Path, lora: int) -> None:
    from accelerate.state import AcceleratorState
    from safetensors.torch import load_file

    from fluents.neural.checkpoint import load
    from fluents.training.neural import train

    AcceleratorState._reset_state(reset_partial_state=True)  # a process keeps the precision it began with
    try:
        settings = _settings(precision="bf16", lora=lora, epochs=6, learning_rate=2e-2 if lora else 3e-3)
        out = train(begin(tmp_path, "bart", "emem"), gold(), gold()[:1], tmp_path / "run", settings)
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
    assert _log(out)[-1]["train_loss"] < _log(out)[0]["train_loss"]
    assert {str(value.dtype) for value in load_file(out / "model.safetensors").values()} == {"torch.float32"}
    load(out, "cpu")


@pytest.mark.parametrize(("system", "lora"), [("emem", 0), ("baseline", 4)])
def test_two_processes_give_the_loss_of_one(tmp_path: Path, system: str, lora: int) -> None:
    """By `accelerate launch` on processors alone; the gradients are the whole batch's either way."""
    source = model_folder(tmp_path / "bart", "bart")
    jsonl.write(gold(), tmp_path / "gold.jsonl")
    options = ["train", "neural", "--model", str(source), "--from-scratch", "--epochs", "3"]
    options += ["--system", system, "--lora", str(lora)]
    options += ["--data", str(tmp_path / "gold.jsonl"), "--batch", "8", "--learning-rate", "0.003", "--metric", "last"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "CUDA_VISIBLE_DEVICES": ""}
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1"]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no", "-m"]
    for name, before in (("one", ["-m"]), ("two", launch)):
        command = [sys.executable, *before, "fluents", *options, "--out", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    one, two = _log(tmp_path / "one"), _log(tmp_path / "two")
    assert one[-1]["train_loss"] < one[0]["train_loss"]
    for ours, theirs in zip(one, two, strict=True):
        assert ours["train_loss"] == pytest.approx(theirs["train_loss"], abs=1e-4)


def test_a_full_device_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from fluents.neural.network import Network, OutOfMemory
    from fluents.training.neural import train

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 TiB")

    monkeypatch.setattr(Network, "read", full)
    with pytest.raises(OutOfMemory, match="memory of the GPU is full") as caught:
        train(begin(tmp_path, "bart"), gold(), [], tmp_path / "run", _settings())
    assert "`batch`" in str(caught.value)


def test_a_damaged_state_is_said_so(tmp_path: Path) -> None:
    from fluents.training.neural import train

    def stop(event: dict[str, Any]) -> None:
        if event["epoch"] == 2:
            raise KeyboardInterrupt

    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(begin(tmp_path, "bart"), gold(), [], out, _settings(), stop)
    state = out / "epoch-1.safetensors"
    state.write_bytes(state.read_bytes()[:1000])
    with pytest.raises(InputError, match="cannot read the checkpoint"):
        train(begin(tmp_path, "bart"), gold(), [], out, _settings())
    log = json.loads((out / "train.json").read_text())
    (out / "train.json").write_text(json.dumps(log | {"log": ["damaged"]}))
    with pytest.raises(InputError, match="not the log of a training run"):
        train(begin(tmp_path, "bart"), gold(), [], out, _settings())


def test_nothing_to_learn_is_said_so(tmp_path: Path) -> None:
    from fluents.training.neural import train

    with pytest.raises(InputError, match="training data contains no changes"):
        train(begin(tmp_path, "bart"), [gold()[0].replace(changes=())], [], tmp_path / "run", _settings())
