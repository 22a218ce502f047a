"""The embedded model itself, really run: determinism, the grammar, damaged files, Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fluents.prompts.local import grammar, prompt, read
from fluents.records import Procedure
from fluents.trackers import embedded
from fluents.trackers.embedded import Engine, ModelError, Sampling, free_cores
from fluents.weights.adapters import merged, open_adapter

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour the water over the tea leaves."))
FIRST, SECOND = prompt(TEA, 1, style="clean"), prompt(TEA, 2, style="clean")
SHORT = Sampling(samples=2, max_tokens=40)


@pytest.fixture(scope="module")
def model(real_weights: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLUENTS_CACHE", str(real_weights.parents[1]))
        return merged(real_weights, open_adapter("both").path)


@pytest.fixture(scope="module")
def engine(model: Path) -> Iterator[Engine]:
    with Engine(model, slots=2, context=2048) as loaded:
        yield loaded


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answers_whatever_was_asked_in_between(engine: Engine, model: Path) -> None:
    first = engine.sample(FIRST, SHORT, seed=7, grammar=grammar(24))
    assert len(first) == 2
    assert first[0] != first[1], "samples of one request have seeds of their own"
    other = engine.sample(SECOND, SHORT, seed=8, grammar=grammar(24))
    assert engine.sample(FIRST, SHORT, seed=7, grammar=grammar(24)) == first
    assert engine.sample(FIRST, SHORT, seed=900, grammar=grammar(24)) != first
    with Engine(model, slots=2, context=3072, threads=1) as fresh:
        assert fresh.sample(SECOND, SHORT, seed=8, grammar=grammar(24)) == other, "in a new engine, with one thread"


@pytest.mark.slow
def test_more_samples_than_slots_go_on_with_the_seeds_that_follow(engine: Engine) -> None:
    three = engine.sample(FIRST, Sampling(samples=3, max_tokens=12), seed=7)
    assert len(three) == 3
    assert three[:2] == engine.sample(FIRST, Sampling(samples=2, max_tokens=12), seed=7)
    assert three[2:] == engine.sample(FIRST, Sampling(samples=1, max_tokens=12), seed=9)


@pytest.mark.slow
def test_every_line_is_well_formed_however_wild_the_sampling(engine: Engine) -> None:
    """At this temperature the model alone writes noise; the grammar still holds it to four fields a line."""
    wild = Sampling(samples=2, temperature=3.0, top_k=0, top_p=1.0, max_tokens=60)
    for answer in engine.sample(SECOND, wild, seed=1, grammar=grammar(2)):
        assert answer.count("\n") <= 2
        for line in answer.split("\n")[:-1]:
            assert line.count(" | ") == 3
            assert line.count("|") == 3
        assert read(answer, 1)[1] == []
    free = engine.sample(SECOND, wild, seed=1)
    assert any(read(answer + "\n", 1)[1] for answer in free), "without the grammar it does not"


@pytest.mark.slow
def test_every_whole_line_is_told_as_it_is_written(engine: Engine) -> None:
    told: list[str] = []
    answers = engine.sample(SECOND, Sampling(samples=2, max_tokens=60), seed=1, grammar=grammar(4), on_line=told.append)
    assert sorted(told) == sorted(line for answer in answers for line in answer.split("\n")[:-1])
    assert told


@pytest.mark.slow
def test_a_prompt_that_is_too_long_is_told(engine: Engine) -> None:
    with pytest.raises(ModelError, match="context"):
        engine.sample("water " * 5000, SHORT, seed=1)
    assert engine.sample(FIRST, Sampling(samples=1, max_tokens=3), seed=1), "and the engine goes on"


@pytest.mark.slow
def test_a_grammar_that_is_none_is_told_and_not_taken_for_no_answer(engine: Engine) -> None:
    with pytest.raises(ModelError):
        engine.sample(FIRST, SHORT, seed=1, grammar="root ::= (")


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut in half", "no GGUF", "empty", "missing", "header overwritten"])
def test_a_damaged_model_is_told_with_its_place(model: Path, tmp_path: Path, damage: str) -> None:
    broken = tmp_path / "model.gguf"
    if damage == "cut in half":
        with model.open("rb") as stream:
            broken.write_bytes(stream.read(model.stat().st_size // 2))
    elif damage == "header overwritten":
        with model.open("rb") as stream:
            broken.write_bytes(b"GGUF\x03\0\0\0" + b"\xff" * 4096 + stream.read(100_000))
    elif damage != "missing":
        broken.write_bytes(b"" if damage == "empty" else b"<html>not found</html>" * 1000)
    with pytest.raises(ModelError, match="could not be loaded") as caught:
        Engine(broken, slots=1, context=512)
    assert caught.value.where == str(broken)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_the_sampling_at_once_and_the_engine_goes_on(engine: Engine) -> None:
    timer = threading.Timer(0.7, signal.raise_signal, [signal.SIGINT])
    timer.start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.sample(FIRST, Sampling(samples=200, max_tokens=400), seed=1)  # minutes, if it were not ended
        took = time.monotonic() - started
    finally:
        timer.join()
    assert took < 60, "that it ends is what counts: a busy machine is slow"
    assert engine.sample(FIRST, Sampling(samples=1, max_tokens=3), seed=1)


@pytest.mark.slow
def test_a_closed_engine_says_so(model: Path) -> None:
    engine = Engine(model, slots=1, context=512)
    engine.close()
    engine.close()
    with pytest.raises(ModelError, match="closed"):
        engine.sample(FIRST, SHORT, seed=1)


@pytest.mark.parametrize(
    ("told", "free"),
    [
        ("0.10 0.20 0.30 1/300 4242\n", 4),  # ourselves alone
        ("0.10 0.20 0.30 2/300 4242\n", 3),
        ("9.10 9.20 9.30 9/300 4242\n", 1),  # more than there are
        ("", 4),  # this system does not tell
    ],
)
def test_cores_that_others_use_are_left_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, free: int
) -> None:
    (tmp_path / "loadavg").write_text(told)
    monkeypatch.setattr(embedded, "LOAD", tmp_path / "loadavg")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert free_cores() == free
