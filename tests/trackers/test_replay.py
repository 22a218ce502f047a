"""The replay tracker: recorded changes for steps with the same text. Sampled answers: those of the same prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluents import jsonl
from fluents.errors import InputError
from fluents.records import Procedure, StateChange, Trace
from fluents.trackers import open_tracker
from fluents.trackers.embedded import Sampling
from fluents.trackers.replay import Replay

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.",))
BOILED = StateChange(step=1, entity="water", attribute="temperature", before="cold", after="boiling")
BOIL, POUR = "Boil the water.\n", "Pour the water.\n"


def test_the_same_step_gets_the_recorded_changes_and_an_unknown_one_none(tmp_path: Path) -> None:
    jsonl.write([Trace(procedure=TEA, changes=(BOILED,))], tmp_path / "t.jsonl")
    with open_tracker(replay=tmp_path / "t.jsonl") as tracker:
        other = Procedure(id="other", goal="Make more tea", steps=("Sing.", *TEA.steps))
        trace = tracker.track(other)
        assert (trace.procedure, trace.changes) == (other, (BOILED.replace(step=2),))
        assert trace.provenance.tracker == "replay"
    jsonl.write([Trace(procedure=TEA)], tmp_path / "u.jsonl")
    with open_tracker(replay=tmp_path / "u.jsonl") as tracker:
        assert tracker.provenance.decoding != trace.provenance.decoding, "other answers are other settings"


def test_a_model_beside_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`model` has no effect with `replay`"):
        open_tracker(replay=tmp_path / "t.jsonl", model="tiny")


def test_recorded_answers_are_read_as_they_were_written(tmp_path: Path) -> None:
    recorded = Replay({BOIL: ["water | heat | cold | hot\n", ""], POUR: ["\u2028 \u2014\n"]})
    recorded.write(tmp_path / "answers.jsonl")
    assert Replay.read(tmp_path / "answers.jsonl").answers == recorded.answers
    (tmp_path / "other.jsonl").write_text('{"prompt": "x"}\n')
    with pytest.raises(InputError, match="answers") as caught:
        Replay.read(tmp_path / "other.jsonl")
    assert caught.value.where == f"{tmp_path / 'other.jsonl'}:1"


def test_replayed_answers_are_those_of_the_prompt() -> None:
    replay = Replay({BOIL: ["a", "b", "c"]})
    assert replay.sample(BOIL, Sampling(samples=2), seed=1) == ["a", "b"]
    with pytest.raises(InputError, match="no answer to this prompt"):
        replay.sample(POUR, Sampling(samples=2), seed=1)
