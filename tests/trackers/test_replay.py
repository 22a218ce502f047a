"""The replay tracker: recorded changes for steps with the same text."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluents import jsonl
from fluents.errors import InputError
from fluents.records import Procedure, StateChange, Trace
from fluents.trackers import open_tracker

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.",))
BOILED = StateChange(step=1, entity="water", attribute="temperature", before="cold", after="boiling")


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
