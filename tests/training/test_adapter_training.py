"""Training an adapter for real, on a few examples: the loss is finite and falls, a run resumes, the adapter loads."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fluents.errors import InputError, UnknownNameError
from fluents.prompts.local import prompt
from fluents.records import Procedure, StateChange, Trace
from fluents.training.examples import PromptForm, TrainingExample, examples

if os.environ.get("CI") != "true":
    pytest.importorskip("torch", reason="training: pip install 'fluents[train]'")

pytestmark = [
    pytest.mark.slow,
    # Deprecations inside torch and transformers are theirs to mend.
    pytest.mark.filterwarnings("ignore"),
]


TRACES = [
    Trace(
        procedure=Procedure(id="toast", goal="Make toast", steps=("Put bread in the toaster.", "Take it out.")),
        changes=(
            StateChange(step=1, entity="bread", attribute="location", before="in bag", after="in toaster"),
            StateChange(step=2, entity="bread", attribute="colour", before="white", after="brown"),
        ),
    )
]


def _examples() -> list[TrainingExample]:
    return examples(TRACES, "steps")


def test_a_run_learns_resumes_and_gives_an_adapter_that_answers(
    real_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fluents.trackers.embedded import Engine, Sampling
    from fluents.training.adapter import AdapterSettings, train
    from fluents.training.batch_sampling import sample
    from fluents.weights.adapters import merged

    once = AdapterSettings(epochs=2, batch=2, learning_rate=5e-3, warmup=0.0, unknown_count=0.0, one_pass=0.0, rank=4)
    events: list[dict[str, object]] = []
    adapter = train(real_weights, _examples(), _examples(), tmp_path / "whole", once, events.append, prompt="steps")
    log = json.loads((tmp_path / "whole" / "train.json").read_text())["log"]
    assert log[-1]["dev_loss"] < log[0]["train_loss"], "it learns the two examples"

    # Broken off after the first epoch, then started again: the same curve, to the last digit written.
    (tmp_path / "broken").mkdir()

    class Stop(Exception):
        pass

    def stop_in_the_second_epoch(event: dict[str, object]) -> None:
        if event["epoch"] == 2:
            raise Stop

    with pytest.raises(Stop):
        train(real_weights, _examples(), _examples(), tmp_path / "broken", once, stop_in_the_second_epoch)
    train(real_weights, _examples(), _examples(), tmp_path / "broken", once)
    again = json.loads((tmp_path / "broken" / "train.json").read_text())["log"]
    assert [epoch["dev_loss"] for epoch in again] == [epoch["dev_loss"] for epoch in log]

    # The adapter of another run must not be taken for this one's.
    for taught, measured, settings, what in (
        (_examples(), _examples(), AdapterSettings(epochs=1), "settings"),
        (_examples()[:1], _examples(), once, "data"),
        (_examples(), [], once, "dev"),
    ):
        with pytest.raises(InputError, match=f"differs from this one in: {what}\n"):
            train(real_weights, taught, measured, tmp_path / "broken", settings)
    with pytest.raises(InputError, match="every training example is longer"):
        train(real_weights, _examples(), [], tmp_path / "no room", AdapterSettings(epochs=1, rank=4, max_tokens=8))
    with pytest.raises(InputError, match="differs from this one in: base"):
        train(adapter, _examples(), _examples(), tmp_path / "broken", once)

    # llama.cpp with the merged adapter says what transformers says.
    text = prompt(TRACES[0].procedure, 1, count=1)
    greedy = Sampling(samples=1, temperature=0, max_tokens=16)
    ((by_transformers,),) = sample(real_weights, adapter, [text], greedy, seed=1)
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))
    with Engine(merged(real_weights, adapter), slots=1, context=512) as engine:
        (by_llama,) = engine.sample(text, greedy, seed=1)
    assert by_llama.split()[:4] == by_transformers.split()[:4]


@pytest.mark.parametrize("form", ["transcript", "steps"])
def test_an_adapter_trained_on_a_file_of_traces_is_tracked_with(
    form: PromptForm, model_cache: Path, tmp_path: Path
) -> None:
    """Train, then use: nobody types the form, the style, the base or the data again; they stand in its own file."""
    import fluents as fl
    from fluents.weights.adapters import open_adapter

    assert model_cache
    fl.save(TRACES, tmp_path / "mine.jsonl")
    events: list[dict[str, object]] = []
    path = fl.train_adapter(
        tmp_path / "mine.jsonl",
        tmp_path / "mine",
        prompt=form,
        epochs=24 if form == "transcript" else 1,
        learning_rate=5e-3,
        batch=1,
        rank=4,
        one_pass=1 if form == "steps" else None,
        report=events.append,
    )
    assert path == tmp_path / "mine" / "adapter.gguf"
    assert events[-1]["dev_loss"] is None, "a file brings no dev split"
    adapter = open_adapter(path)
    assert adapter.facts.data == ("mine.jsonl",)
    assert adapter.styles == (("sorted",) if form == "steps" else ("plain",))
    assert adapter.name.startswith("mine@")

    trace = fl.track(TRACES[0].procedure, adapter=path, samples=1)
    assert trace.provenance.model == f"smollm2-135m-instruct + {adapter.name}"
    assert trace.procedure == TRACES[0].procedure
    if form == "transcript":
        assert [c.replace(confidence=None, mentioned=None) for c in trace.changes] == list(TRACES[0].changes), (
            "it learned the only procedure by heart, and the tracker asks as the training did"
        )
    else:
        assert trace.provenance.decoding["styles"] == ["Sorted"], "the style it was taught"


def test_what_has_no_effect_is_refused(tmp_path: Path) -> None:
    import fluents as fl

    with pytest.raises(InputError, match="`one_pass` has no effect with `prompt` transcript"):
        fl.train_adapter("fluents", tmp_path / "mine", one_pass=0.5)
    with pytest.raises(UnknownNameError, match="unknown `prompt` 'letters'"):
        fl.train_adapter("fluents", tmp_path / "mine", prompt="letters")  # type: ignore[arg-type]
    assert not (tmp_path / "mine").exists()
