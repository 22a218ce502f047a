"""The embedded tracker: all of its logic on answers made by hand, and a few steps with the real model."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluents
from fluents import jsonl
from fluents.errors import FluentsWarning, InputError, UnknownNameError
from fluents.prompts.local import VERSION, Style, prompt
from fluents.records import Procedure, Trace
from fluents.trackers import Listener, Setting, TrackerOptions, embedded, local, track
from fluents.trackers.consensus import Consensus
from fluents.trackers.embedded import Sampling
from fluents.trackers.local import FAST, SETTINGS, LocalSettings, LocalTracker, Voter, style_for, with_adapter
from fluents.trackers.replay import Replay
from fluents.version import __version__
from fluents.weights.adapters import ADAPTERS
from strategies import procedures

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it over the leaves.", "Wait."))
THREE = LocalSettings(
    voters=(Voter("both", "clean"),), sampling=Sampling(samples=3), consensus=Consensus(distinct=True), seed=5
)


def replay(*answers: list[str], procedure: Procedure = TEA, style: Style = "clean") -> Replay:
    return Replay({prompt(procedure, step, style=style): drawn for step, drawn in enumerate(answers, 1)})


def tracked(settings: LocalSettings, *answers: list[str]) -> Trace:
    return LocalTracker(settings, [replay(*answers)]).track(TEA)


def test_a_text_in_another_language_is_tracked_with_a_warning() -> None:
    tea = TEA.replace(goal="Tee kochen", steps=("Wasser kochen.", "Tee aufgießen."))
    tracker = LocalTracker(THREE, [replay([""], [""], procedure=tea)])
    with pytest.warns(FluentsWarning, match="seems to be in German"):
        tracker.track(tea)


def test_what_samples_agree_on_becomes_a_trace() -> None:
    boil = "water | temperature | cold | hot\n"
    trace = tracked(THREE, [boil, boil, "kettle | power | off | on\n"], [""] * 3, ["", "", ""])
    assert [(c.step, c.entity, c.mentioned) for c in trace.changes] == [(1, "water", True)]
    assert trace.changes[0].support == pytest.approx(0.667, abs=0.01)
    assert trace.procedure == TEA
    assert jsonl.loads(jsonl.dumps(trace)) == trace


def test_an_entity_is_mentioned_from_the_step_on_that_names_it() -> None:
    said = ["leaves | moisture | dry | wet\ncup | weight | light | heavy\n"]
    later = ["leaves | color | green | brown\ncup | fullness | empty | full\n"]
    trace = tracked(replace(THREE, sampling=Sampling(samples=1)), said, later, [""])
    assert [(c.step, c.entity, c.mentioned) for c in trace.changes] == [
        (1, "leaves", False),
        (1, "cup", False),
        (2, "leaves", True),
        (2, "cup", False),
    ]
    assert {c.support for c in trace.changes} == {None}, "a single sample"


def test_names_and_states_are_carried_over() -> None:
    answers = ["the Water | place | in tap | in a big kettle\n"], ["water | place | in the kettle | in pot\n"], [""]
    trace = tracked(replace(THREE, sampling=Sampling(samples=1)), *answers)
    assert [(c.entity, c.before) for c in trace.changes] == [("the Water", "in tap"), ("the Water", "in a big kettle")]


def test_what_cannot_be_read_is_kept_as_a_reject_of_its_step() -> None:
    trace = tracked(replace(THREE, sampling=Sampling(samples=1)), [""], ["I am sorry.\na | b | c | d\n"], [""])
    assert [(r.step, r.text) for r in trace.rejects] == [(2, "I am sorry.")]
    assert len(trace.changes) == 1


def test_voters_vote_together_each_asked_in_its_own_style() -> None:
    settings = replace(THREE, voters=(Voter("both"), Voter("both", "clean")), sampling=Sampling(samples=1))
    none: list[str] = [""]
    plain = replay(["water | temperature | cold | hot\n"], none, none, style="plain")
    clean = replay(["water | temperature | cold | hot\n"], none, none)
    trace = LocalTracker(settings, [plain, clean]).track(TEA)
    assert [c.support for c in trace.changes] == [1.0], "two samples, one of each"


def test_provenance_says_how_it_was_made() -> None:
    made = tracked(THREE, [""] * 3, [""] * 3, [""] * 3).provenance
    assert (made.tracker, made.prompt, made.seed, made.version) == ("local", VERSION, 5, __version__)
    assert made.model == "smollm2-135m-instruct + both"
    assert made.decoding["samples"] == 3
    assert made.decoding["consensus_distinct"] is True
    assert made.decoding["styles"] == ["Clean"]


class Steps(Listener):
    def __init__(self) -> None:
        self.seen: list[Trace] = []

    def on_step(self, trace: Trace) -> None:
        self.seen.append(trace)


def test_every_finished_step_is_reported_and_any_of_them_can_be_gone_on_from() -> None:
    """Names and states are carried over an interruption too."""
    answers = ["the Water | place | in tap | in a kettle\n"], ["water | place | in pan | in pot\n"], ["bad\n"]
    settings, steps = replace(THREE, sampling=Sampling(samples=1)), Steps()
    whole = LocalTracker(settings, [replay(*answers)]).track(TEA, steps)
    assert [trace.covered for trace in steps.seen] == [(1,), (1, 2), None]
    assert steps.seen[-1] == whole
    for place, done in enumerate(steps.seen, start=1):
        unasked = Replay({prompt(TEA, step, style="clean"): answers[step - 1] for step in range(place + 1, 4)})
        assert LocalTracker(settings, [unasked]).track(TEA, done=done) == whole


def test_an_adapter_of_ones_own_is_asked_in_a_style_it_was_taught() -> None:
    assert with_adapter(LocalSettings(), "openpi-base").voters == (Voter("openpi-base", "clean"),)
    assert with_adapter(FAST, "openpi-base").voters == (Voter("openpi-base", "clean sorted"),)
    assert with_adapter(FAST, "openpi-base", "complete").voters == (Voter("openpi-base", "complete"),)
    assert with_adapter(FAST, "both", "plain").voters == (Voter("both", "plain"),)
    with pytest.raises(InputError, match="not trained with"):
        with_adapter(FAST, "both", "complete")


def test_an_adapter_trained_with_another_prompt_is_refused() -> None:
    both = ADAPTERS["both"]
    with pytest.raises(InputError, match="trained with prompt version local-9"):
        style_for(replace(both, facts=replace(both.facts, prompt="local-9")), FAST.sampling)


def test_samples_that_hold_no_answer_are_told() -> None:
    with pytest.raises(InputError, match="contain no answer to this prompt"):
        LocalTracker(THREE, [Replay({})]).track(TEA)


def test_a_procedure_without_steps_has_no_changes() -> None:
    assert LocalTracker(THREE, [Replay({})]).track(Procedure(id="none", steps=())).changes == ()


lines = (
    st.sampled_from(["pot | heat | cold | hot\n", "the pot | heat | hot | cold\n", "a | b |", "x\n", "| | | |\n"])
    | st.text()
)


@pytest.mark.filterwarnings("ignore::fluents.errors.FluentsWarning")  # of languages
@given(procedures(), st.lists(st.lists(lines, max_size=4).map("".join), min_size=1, max_size=3), st.booleans())
def test_whatever_the_model_says_the_trace_is_valid(procedure: Procedure, drawn: list[str], distinct: bool) -> None:
    settings = replace(THREE, consensus=Consensus(distinct=distinct, most=3))
    steps = [drawn for _ in procedure.steps]
    trace = LocalTracker(settings, [replay(*steps, procedure=procedure)]).track(procedure)
    assert jsonl.loads(jsonl.dumps(trace)) == trace
    for number in range(1, len(procedure.steps) + 1):
        assert len(trace.at(number)) <= 3
    assert all(c.before.lower() != c.after.lower() and c.mentioned is not None for c in trace.changes)


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    setting: Any = "slow"
    with pytest.raises(UnknownNameError, match="openpi-clusters"):
        fluents.track("Stir.", setting=setting)


def test_a_file_name_is_not_tracked_as_if_it_were_a_text(tmp_path: Path) -> None:
    (tmp_path / "soup.md").write_text("Boil the water.")
    with pytest.raises(InputError, match="the name of a file") as caught:
        fluents.track(str(tmp_path / "soup.md"))
    assert "Path(" in str(caught.value)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_votes_with_adapters_that_are_shipped(name: Setting) -> None:
    assert {voter.adapter for voter in SETTINGS[name].voters} <= set(ADAPTERS)


@pytest.mark.slow
@pytest.mark.usefixtures("model_cache")
def test_the_same_seed_gives_the_same_trace_whatever_was_tracked_before() -> None:
    short = Sampling(samples=2, max_tokens=32)
    settings = LocalSettings(voters=(Voter("both", "clean"),), sampling=short, seed=3)
    two = TEA.replace(steps=TEA.steps[:2])
    tracker = LocalTracker(settings)
    first = tracker.track(two)
    tracker.track(Procedure(id="other", goal="Cook", steps=("Peel the potatoes.",)))
    assert tracker.track(two) == first
    assert first.changes, "it says something"
    assert first.rejects == (), "the grammar leaves nothing that cannot be read"
    assert LocalTracker(replace(settings, seed=4)).track(two).changes != first.changes


@pytest.mark.slow
@pytest.mark.usefixtures("model_cache")
def test_from_python_a_text_or_a_file_is_enough(tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_text("Boil the water.")
    from_text = fluents.track("Boil the water.", adapter="both", samples=1)
    from_file = fluents.track(tmp_path / "tea.txt", adapter="both", samples=1)
    assert from_text.changes == from_file.changes
    assert "water" in {change.entity for change in from_text.changes}
    assert from_file.procedure.source == str(tmp_path / "tea.txt")
    assert from_text.provenance.decoding["samples"] == FAST.sampling.samples == 1


class FakeEngine:
    """Takes long to load, and says nothing."""

    loaded: ClassVar[list[str]] = []

    def __init__(self, model: Path, *, slots: int, context: int, adapter: Path | None = None) -> None:  # noqa: ARG002
        time.sleep(0.05)
        self.loaded.append(f"{adapter.stem if adapter else model} {slots}")

    def sample(self, prompt: str, sampling: Sampling, seed: int, *_: object) -> list[str]:  # noqa: ARG002
        return [""] * sampling.samples


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was loaded, in a world of fake engines."""
    monkeypatch.setattr(local, "Engine", FakeEngine)
    monkeypatch.setattr(local, "ensure", lambda base: base)
    monkeypatch.setattr(local, "merged", lambda _, adapter: adapter.stem)
    monkeypatch.setattr(local, "unpacked", lambda adapter: adapter)
    monkeypatch.setattr(FakeEngine, "loaded", [])
    embedded.unload()
    yield FakeEngine.loaded
    embedded.unload()


def test_the_engine_stays_loaded_between_calls_whatever_the_seed(engines: list[str]) -> None:
    choices: tuple[TrackerOptions, ...] = {}, {"seed": 2}, {"max_changes": 3}, {"samples": 16}
    for options in choices:
        track(TEA, **options | {"adapter": "both"})
    assert engines == ["both 16"]
    track(TEA, setting="openpi")
    track(TEA, adapter="both", samples=1)
    track(TEA, adapter="both")
    assert engines == ["both 16", "openpi-base 16", "both 1"], "other engines do not push it out at once"
    track(TEA, adapter="both", samples=2)
    assert engines[3:] == ["both 2"]
    track(TEA, setting="openpi-c")
    assert engines[4:] == ["openpi-base 16"], "the one that was not used for longest has made room"


def test_threads_share_one_load(engines: list[str]) -> None:
    threads = [threading.Thread(target=track, args=(TEA,), kwargs={"adapter": "both"}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert engines == ["both 16"]
