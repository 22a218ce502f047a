"""The tracker that repeats traces: by the text of a step, step by step, and on from what is done."""

from __future__ import annotations

from pathlib import Path

from fluents import jsonl
from fluents.records import Procedure, StateChange, Trace
from fluents.trackers import Listener
from fluents.trackers.replay import NOT_RECORDED, ReplayTracker

TEA = Trace(
    procedure=Procedure(id="tea", goal="Tea", steps=("Boil water.", "Add tea.")),
    changes=(
        StateChange(step=1, entity="water", attribute="heat", before="cold", after="hot"),
        StateChange(step=2, entity="tea", attribute="place", before="in tin", after="in pot"),
    ),
)


class Heard(Listener):
    def __init__(self) -> None:
        self.covered: list[tuple[int, ...]] = []

    def on_step(self, trace: Trace) -> None:
        self.covered.append(trace.covered_steps)


def test_what_is_said_depends_on_the_text_of_a_step_and_not_on_its_place(tmp_path: Path) -> None:
    jsonl.write([TEA], tmp_path / "tea.jsonl")
    tracker = ReplayTracker.read(tmp_path / "tea.jsonl")
    heard = Heard()
    trace = tracker.track(Procedure(goal="Tea", steps=("Wait.", "Add  tea.", "Boil water.")), heard)
    assert [(change.step, change.entity) for change in trace.changes] == [(2, "tea"), (3, "water")]
    assert heard.covered == [(2,), (2, 3)]
    assert trace.covered == (2, 3), "nobody knows what changes while one waits"
    assert [(reject.step, reject.reason) for reject in trace.rejects] == [(1, NOT_RECORDED)]


def test_a_recorded_step_without_changes_is_an_answer() -> None:
    heard = Heard()
    trace = ReplayTracker([TEA.replace(changes=())]).track(TEA.procedure, heard)
    assert (trace.changes, trace.covered, trace.rejects) == ((), None, ())
    assert heard.covered == [(1,), (1, 2)]


def test_finished_steps_are_kept_and_not_told_again() -> None:
    done = TEA.replace(changes=(TEA.changes[0].replace(after="warm"),), covered=(1,))
    heard = Heard()
    trace = ReplayTracker([TEA]).track(TEA.procedure, heard, done)
    assert [change.after for change in trace.changes] == ["warm", "in pot"]
    assert heard.covered == [(1, 2)]
