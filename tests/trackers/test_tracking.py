"""Tracking through any tracker: steps as they are finished, several procedures, going on where a run was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fluents import jsonl
from fluents.errors import FluentsError, InputError
from fluents.records import Procedure, Provenance, StateChange, Trace
from fluents.resumable import ResumableOutput
from fluents.trackers import Listener, Tracker, open_tracker, settings_of, track_into, track_many, unanswered
from part_files import part_traces

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it.", "Wait."))
TOAST = Procedure(id="toast", goal="Make toast", steps=("Slice the bread.", "Toast it."))


class Scripted(Tracker):
    """Sees a change in every step; is interrupted at some texts, and has no answer to others."""

    def __init__(self, stop_at: str = "", no_answer: str = "") -> None:
        self.stop_at, self.no_answer = stop_at, no_answer
        self.asked: list[str] = []

    @property
    def provenance(self) -> Provenance:
        return Provenance(tracker="scripted", seed=1)

    def track(self, procedure: Procedure, listener: Listener | None = None, done: Trace | None = None) -> Trace:
        trace = done or Trace(procedure=procedure, covered=(), provenance=self.provenance)
        for step, text in enumerate(procedure.steps, start=1):
            if step in trace.covered_steps:
                continue
            self.asked.append(text)
            if text == self.stop_at:
                raise KeyboardInterrupt
            if text == self.no_answer:
                continue
            change = StateChange(step=step, entity="thing", attribute="state", before="old", after="new")
            covered = tuple(sorted({*trace.covered_steps, step}))
            trace = trace.replace(
                changes=tuple(sorted((*trace.changes, change), key=lambda one: one.step)),
                covered=None if len(covered) == len(procedure.steps) else covered,
            )
            if listener:
                listener.on_step(trace)
        return trace


def run(out: Path, tracker: Tracker, *, resume: bool = False) -> list[Trace]:
    with ResumableOutput(
        out,
        settings_of(tracker.provenance),
        resume=resume,
        settings_of=lambda trace: settings_of(trace.provenance),
    ) as output:
        return list(track_into(output, tracker, [TEA, TOAST]))


def test_an_interrupted_procedure_goes_on_at_its_next_step(tmp_path: Path) -> None:
    out, whole = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(out, Scripted(stop_at="Wait."))
    [kept] = part_traces(out)
    assert kept.covered == (1, 2)
    again = Scripted()
    run(out, again, resume=True)
    assert again.asked == ["Wait.", *TOAST.steps]
    run(whole, Scripted())
    assert out.read_bytes() == whole.read_bytes()


def test_unanswered_steps_of_a_finished_run_are_asked_again_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    tracker = Scripted(no_answer="Pour it.")
    assert [unanswered(tracker, trace) for trace in run(out, tracker)] == [1, 0]
    again = Scripted()
    assert [unanswered(again, trace) for trace in run(out, again, resume=True)] == [0, 0]
    assert again.asked == ["Pour it."]
    assert [record.id for record in jsonl.read(out)] == ["tea", "toast"]


def test_a_trace_of_another_tracker_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    jsonl.write([Trace(procedure=TEA, provenance=Provenance(tracker="scripted", seed=2))], out)
    before = out.read_bytes()
    with pytest.raises(InputError, match="seed was 2, but is now 1"):
        run(out, Scripted(), resume=True)
    assert out.read_bytes() == before


def test_counts_are_no_settings() -> None:
    made = Provenance(tracker="llm", decoding={"samples": 1, "removed": 3, "salience": "top5 by offline-1"})
    assert settings_of(made) == settings_of(made.replace(decoding={"samples": 1}))
    assert settings_of(made) != settings_of(made.replace(decoding={"samples": 2}))


def test_many_procedures_with_a_progress_bar_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fluents.trackers.open_tracker", lambda **_: Scripted())
    assert [trace.id for trace in track_many(iter([TEA, TOAST]), progress=True)] == ["tea", "toast"]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"base_url": "http://127.0.0.1:1"}, "`base_url` has no effect without `model`"),
        ({"model": "m", "adapter": "both"}, "`adapter` works only with an embedded model, but m is"),
        ({"model": "m", "setting": "openpi"}, "`setting` works only with an embedded model, but m is"),
        ({"checkpoint": "runs/x", "samples": 2}, "`samples` has no effect with `checkpoint`"),
        ({"setting": "slow"}, "unknown `setting` 'slow'"),
        ({"setting": "fast"}, "`setting` fast was removed"),
        ({"setting": "openpi", "adapter": "both"}, "has its own adapter"),
    ],
)
def test_no_parameter_is_silently_ignored(given: dict[str, Any], what: str) -> None:
    with pytest.raises(FluentsError, match=what):
        open_tracker(**given)


def test_a_number_below_one_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(InputError, match="`samples` must be at least 1, not 0"):
        open_tracker(samples=0)
    with pytest.raises(InputError, match="`max_changes` must be at least 1, not -1"):
        open_tracker(max_changes=-1)
