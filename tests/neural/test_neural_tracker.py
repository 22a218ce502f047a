"""Checkpoints and the tracker: what is saved is loaded, batches change nothing, and every damage has a clear word."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tiny_neural import begin, gold, model_folder

from fluents import jsonl
from fluents.errors import FluentsError, InputError
from fluents.neural.inputs import Decoding, question
from fluents.records import Procedure, Trace
from fluents.trackers import Listener

if os.environ.get("CI") != "true":
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package, reason="neural systems: pip install 'fluents[train]'")

if TYPE_CHECKING:
    from fluents.trackers.neural import NeuralTracker

pytestmark = [
    pytest.mark.slow,
    # Deprecations inside torch and transformers are theirs to mend.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Systems that were taught a little: enough to write sentences, not enough to be sure of them."""
    from fluents.training.neural import train
    from fluents.training.neural_settings import NeuralTrainingSettings

    folder = tmp_path_factory.mktemp("taught")
    settings = NeuralTrainingSettings(epochs=30, batch=64, learning_rate=8e-3, warmup=0.2, metric="last")
    return {
        name: train(begin(folder, arch, system), gold(), [], folder / name, settings)
        for name, arch, system in (
            ("emem", "bart", "emem"),
            ("econd", "bart", "emem+econd"),
            ("concat", "t5", "concat-states"),
            ("gpt2", "gpt2", "baseline"),
        )
    }


@pytest.fixture
def copy(checkpoints: dict[str, Path], tmp_path: Path) -> Path:
    """A checkpoint to spoil."""
    return Path(shutil.copytree(checkpoints["emem"], tmp_path / "copy"))


def _tracker(checkpoint: Path, first: Any = None, **decoding: Any) -> NeuralTracker:
    from fluents.trackers.neural import NeuralSettings, NeuralTracker

    return NeuralTracker(checkpoint, NeuralSettings(Decoding(**{"beams": 2} | decoding), rows=3), first)


PROCEDURES = [trace.procedure for trace in gold()]
FIRST = {trace.id: trace for trace in gold()}


@pytest.mark.parametrize("name", ["emem", "econd", "concat", "gpt2"])
def test_many_procedures_at_once_are_tracked_as_each_alone(checkpoints: dict[str, Path], name: str) -> None:
    tracker = _tracker(checkpoints[name], FIRST)
    together = list(tracker.track_many(PROCEDURES))
    assert together == [tracker.track(procedure) for procedure in PROCEDURES]
    assert any(trace.changes or trace.rejects for trace in together)


class Steps(Listener):
    def __init__(self) -> None:
        self.seen: list[Trace] = []

    def on_step(self, trace: Trace) -> None:
        self.seen.append(trace)


def test_every_finished_step_is_reported(checkpoints: dict[str, Path]) -> None:
    steps = Steps()
    traces = list(_tracker(checkpoints["emem"]).track_many(PROCEDURES, steps))
    assert [len(trace.covered_steps) for trace in steps.seen] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert steps.seen[-2:] == traces


def test_what_is_whole_is_not_tracked_again(checkpoints: dict[str, Path]) -> None:
    """What is not is begun anew: its memory is not kept."""
    tracker = _tracker(checkpoints["emem"])
    traces = list(tracker.track_many(PROCEDURES))
    done = {traces[0].id: traces[0].replace(changes=()), traces[1].id: traces[1].replace(covered=(1,))}
    assert list(tracker.track_many(PROCEDURES, done=done)) == [done[traces[0].id], traces[1]]
    assert tracker.track(PROCEDURES[0], done=done[traces[0].id]) == done[traces[0].id]


def test_the_same_seed_samples_the_same(checkpoints: dict[str, Path]) -> None:
    import torch

    tracker = _tracker(checkpoints["gpt2"], top_p=0.9, top_k=20)
    tracker.load()
    before = torch.get_rng_state()
    once = tracker.track(PROCEDURES[0])
    assert torch.equal(torch.get_rng_state(), before), "others' random numbers are left alone"
    assert tracker.track(PROCEDURES[0]) == once
    assert once.provenance.decoding["top_p"] == 0.9


def test_entities_come_from_a_first_stage(checkpoints: dict[str, Path]) -> None:
    """Traces of any tracker, or another checkpoint; where it named nothing, nothing is asked."""
    silent = {trace.id: trace.replace(changes=()) for trace in gold()}
    assert all(not trace.changes for trace in _tracker(checkpoints["econd"], silent).track_many(PROCEDURES))
    staged = list(_tracker(checkpoints["econd"], _tracker(checkpoints["emem"])).track_many(PROCEDURES))
    assert staged[0].provenance.decoding["first"] == "neural emem bart emem"
    with pytest.raises(InputError, match="no entities are given"):
        _tracker(checkpoints["econd"]).track(PROCEDURES[0])
    with pytest.raises(InputError, match="contains no trace of"):
        _tracker(checkpoints["econd"], {}).track(PROCEDURES[0])


def test_hostile_procedures_are_answered(checkpoints: dict[str, Path]) -> None:
    """Far longer than the model takes, empty of words it knows, full of markup."""
    long = Procedure(id="long", goal="x " * 5000, steps=("boil </s> <pad> " * 3000, "\u0000 \U0001f375", "<b>of</b>"))
    (trace,) = _tracker(checkpoints["emem"]).track_many([long])
    assert trace.procedure == long
    assert list(_tracker(checkpoints["emem"]).track_many([])) == []


def test_too_long_a_question_keeps_its_end(tmp_path: Path) -> None:
    codec = begin(tmp_path, "bart").codec
    steps = tuple(f"Stir {number} times." for number in range(200))
    ids = codec.asked(question(Procedure(id="p", goal="Stir", steps=steps), 200))
    assert len(ids) <= codec.most_asked
    text = codec.text(ids)
    assert text.startswith("Stir. Stir ")
    assert text.endswith("Stir 198 times. Stir 199 times. Now, what happens?")


def test_every_sentence_of_an_answer_has_its_own_tokens(tmp_path: Path) -> None:
    for arch in ("bart", "t5", "gpt2"):
        codec = begin(tmp_path, arch).codec
        for trace in gold():
            for _, _, changes in trace.by_step():
                ids, spans = codec.answered(changes)
                assert ids[-1] == codec.tokenizer.eos_token_id
                assert [codec.text(ids[span.start : span.end]).rstrip(",") for span in spans] == [
                    change.templated for change in changes
                ]


def test_a_baselines_checkpoint_is_a_plain_transformers_folder(checkpoints: dict[str, Path]) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(checkpoints["gpt2"])
    ours = _tracker(checkpoints["gpt2"]).load().network.model
    assert torch.equal(theirs.transformer.wte.weight, ours.transformer.wte.weight)


def test_an_answer_is_at_most_half_as_long_again_as_those_that_were_taught(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that repeats itself ends soon, when tracking and when measured on dev; never beyond the model's room."""
    from fluents.neural.network import Network
    from fluents.training.neural import train
    from fluents.training.neural_settings import NeuralTrainingSettings

    given: list[int] = []
    generate = Network.generate

    def spied(self: Network, rows: Any, memory: Any, decoding: Decoding, most: int) -> Any:
        given.append(most)
        return generate(self, rows, memory, decoding, most)

    monkeypatch.setattr(Network, "generate", spied)
    codec = begin(tmp_path, "bart").codec
    longest = max(len(codec.answered(changes)[0]) for trace in gold() for _, _, changes in trace.by_step())
    card = json.loads((copy / "fluents.json").read_text())
    assert card.pop("longest_answer") == longest
    for known, meant in (
        ({"longest_answer": longest}, longest * 3 // 2),
        ({"longest_answer": 4}, 6),
        ({"longest_answer": 1000}, codec.most_answered - 1),
        ({}, codec.most_answered - 1),
    ):
        (copy / "fluents.json").write_text(json.dumps(card | known))
        given.clear()
        _tracker(copy).track(PROCEDURES[0])
        assert set(given) == {meant}
    given.clear()
    settings = NeuralTrainingSettings(epochs=1, metric="bleu", learning_rate=0.0)
    train(begin(tmp_path, "bart"), gold(), gold()[:1], tmp_path / "run", settings)
    assert set(given) == {longest * 3 // 2}


def _spoiled(folder: Path, message: str) -> None:
    with pytest.raises(FluentsError, match=message):
        _tracker(folder).track(PROCEDURES[0])


def test_no_checkpoint_is_said_so(tmp_path: Path) -> None:
    _spoiled(tmp_path / "none", "no fluents.json")


def test_damaged_weights_are_said_so(copy: Path) -> None:
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    _spoiled(copy, "damaged")
    weights.write_bytes(b"\xff" * 100)
    _spoiled(copy, "damaged")
    weights.unlink()
    _spoiled(copy, "no model.safetensors")


def test_weights_of_another_shape_are_said_so(copy: Path, checkpoints: dict[str, Path]) -> None:
    shutil.copy(checkpoints["gpt2"] / "model.safetensors", copy)
    _spoiled(copy, "do not fit the model")


def test_a_checkpoint_of_another_architecture_is_said_so(copy: Path, tmp_path: Path) -> None:
    shutil.copy(model_folder(tmp_path / "t5", "t5") / "config.json", copy)
    _spoiled(copy, "config.json describes the architecture t5, but the checkpoint was trained with bart")


def test_a_missing_tokenizer_is_said_so(copy: Path) -> None:
    for file in copy.glob("*token*"):
        file.unlink()
    _spoiled(copy, "the tokenizer has no")


def test_a_tokenizer_of_another_model_is_said_so(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"vocab_size": 50}))
    _spoiled(copy, "has .* tokens, but the model has only 50")


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("{", "."),
        ("[]", "."),
        ('{"system": "x", "style": "openpi-c", "arch": "bart"}', "system is 'x', but must be one of baseline, "),
        ('{"system": "emem", "style": [], "arch": "bart"}', r"style is \[\], but must be one of openpi, openpi-c"),
        ('{"a": 1}', "."),
        ('{"system": "emem", "style": "openpi-c", "arch": "bart", "longest_answer": 0}', "longest_answer is 0, but"),
        ('{"system": "emem", "style": "openpi-c", "arch": "bart", "longest_answer": true}', "longest_answer is True"),
    ],
)
def test_a_damaged_card_is_said_so(copy: Path, card: str, message: str) -> None:
    (copy / "fluents.json").write_text(card)
    _spoiled(copy, message)


def test_a_damaged_configuration_is_said_so(copy: Path) -> None:
    (copy / "config.json").write_text("{")
    _spoiled(copy, "cannot be loaded")


def test_training_refuses_what_it_cannot_begin_with(tmp_path: Path) -> None:
    from fluents.neural.checkpoint import begin as begin_

    folder = model_folder(tmp_path / "t5", "t5")
    with pytest.raises(FluentsError, match="architecture t5, not bart"):
        begin_(str(folder), "emem", "openpi-c", arch="bart", from_scratch=True, seed=1, download=False)
    with pytest.raises(FluentsError, match="no folder"):
        begin_("facebook/bart-large", "emem", "openpi-c", arch=None, from_scratch=False, seed=1, download=False)
    with pytest.raises(FluentsError, match="cannot be loaded"):  # there are no weights in this folder
        begin_(str(folder), "emem", "openpi-c", arch=None, from_scratch=False, seed=1, download=False)


def test_a_full_device_is_said_so(checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from fluents.neural.network import Network

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Network, "generate", full)
    with pytest.raises(FluentsError, match="memory of the GPU is full") as caught:
        _tracker(checkpoints["emem"]).track(PROCEDURES[0])
    assert "`rows`" in str(caught.value)


def test_the_command_line_trains_tracks_and_sweeps(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from fluents.cli import app

    source = model_folder(tmp_path / "bart", "bart")
    jsonl.write(gold(), tmp_path / "gold.jsonl")

    def run(*arguments: str) -> Any:
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        return done

    data = str(tmp_path / "gold.jsonl")
    options = ("--epochs", "2", "--batch", "64", "--learning-rate", "0.008", "--system", "econd")
    run(
        "train",
        "neural",
        "--model",
        str(source),
        "--from-scratch",
        "--data",
        data,
        *options,
        "--out",
        str(tmp_path / "run"),
    )
    checkpoint = str(tmp_path / "run")
    run(
        "track-neural",
        data,
        "--checkpoint",
        checkpoint,
        "--first",
        data,
        "-o",
        str(tmp_path / "said.jsonl"),
    )
    said = list(jsonl.read(tmp_path / "said.jsonl"))
    assert [record.id for record in said] == [trace.id for trace in gold()]
    assert isinstance(said[0], Trace)
    assert said[0].provenance.tracker == "neural econd"
    penalties = ("--length-penalty", "0.2", "--length-penalty", "2", "--beams", "2", "--limit", "1", "--first", data)
    run("train", "sweep", checkpoint, data, "--out", str(tmp_path / "sweep"), *penalties)
    assert {file.name for file in (tmp_path / "sweep").iterdir()} == {
        "penalty-0.2.jsonl",
        "penalty-2.jsonl",
        "curve.csv",
        "curve.svg",
    }
    assert len((tmp_path / "sweep" / "curve.csv").read_text().splitlines()) == 7
    assert (tmp_path / "sweep" / "curve.svg").read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert json.loads((tmp_path / "run" / "train.json").read_text())["system"] == "econd"


def test_a_missing_or_broken_first_stage_empties_no_file(checkpoints: dict[str, Path], copy: Path) -> None:
    from typer.testing import CliRunner

    from fluents.cli import app

    source, out = copy / "gold.jsonl", copy / "out.jsonl"
    jsonl.write(gold(), source)
    out.write_text("what was there\n")
    (copy / "model.safetensors").write_bytes(b"\xff" * 100)
    options = ("track-neural", str(source), "--checkpoint", str(checkpoints["econd"]), "-o", str(out))
    for first, what in (((), "no entities are given"), (("--first", str(copy)), "damaged")):
        found = CliRunner().invoke(app, (*options, *first)).exception
        assert isinstance(found, FluentsError)
        assert what in str(found)
        assert out.read_text() == "what was there\n"


@pytest.mark.parametrize(("pad", "meant"), [("<s>", 0), ("<pad>", 1), (None, 2)])
def test_padding_is_the_tokenizers_even_where_it_is_token_0_and_else_the_end(
    tmp_path: Path, pad: str | None, meant: int
) -> None:
    """And an answer can end where the end is the padding."""
    from transformers import PreTrainedTokenizerFast

    from fluents.neural.checkpoint import begin as begin_
    from fluents.neural.encoding import EncodedRow

    folder = model_folder(tmp_path / "bart", "bart")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.pad_token = pad
    tokenizer.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"pad_token_id": None}))
    trained = begin_(str(folder), "baseline", "openpi-c", arch="bart", from_scratch=True, seed=1, download=False)
    network = trained.network.eval()
    assert network.model.config.pad_token_id == meant
    network.model.final_logits_bias[0, 2] = 1e4  # surely the end, if it may be said
    (said,) = network.generate(
        [EncodedRow(0, trained.codec.asked(question(PROCEDURES[0], 1)))], None, Decoding(beams=1), 5
    )
    assert said == [2, 2]


def test_the_command_line_refuses_foreign_options(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from fluents.cli import app

    for arguments in (
        ("track", str(tmp_path), "--tracker", "neural", "--samples", "3"),
        ("train", "neural", "--out", str(tmp_path)),
    ):
        assert isinstance(CliRunner().invoke(app, arguments).exception, FluentsError)
    for option in ("--style", "--system", "--metric", "--precision"):
        train = ("train", "neural", "--out", str(tmp_path), "--model", str(tmp_path))
        assert CliRunner().invoke(app, (*train, option, "loud")).exit_code == 2
