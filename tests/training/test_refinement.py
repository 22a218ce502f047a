"""Refining an adapter: the loss prefers the better answer, a run resumes, and its adapter is tracked with."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from fluents.errors import InputError
from fluents.records import Procedure, StateChange, Trace

if os.environ.get("CI") != "true":
    pytest.importorskip("torch", reason="training: pip install 'fluents[train]'")

# Deprecations inside torch and transformers are theirs to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


def _trace(goal: str, thing: str, *steps: str) -> Trace:
    return Trace(
        procedure=Procedure(id=goal, goal=goal, steps=steps),
        changes=tuple(
            StateChange(step=number, entity=thing, attribute="state", before="old", after="new")
            for number in range(1, len(steps) + 1)
        ),
    )


TRACES = [
    _trace("Make toast", "bread", "Slice the bread.", "Toast it.", "Butter it."),
    _trace("Boil an egg", "egg", "Boil water.", "Lower the egg into it.", "Take it out after 8 minutes."),
]


JUDGED = """## Wash a cup
1. Fill the sink with hot water.
T1 sink | fullness | empty | full
F sink | location | in kitchen | in garden
2. Wash the cup.
T1 cup | cleanness | dirty | clean
3. Dry it.
+ cup | wetness | wet | dry
"""


def _stepped(sampled: list[float], advantages: list[float], logits: list[float]) -> list[float]:
    """The probabilities of two answers after one step down the gradient of the loss."""
    import torch

    from fluents.training.refinement import policy_loss

    weights = torch.tensor(logits, requires_grad=True)
    policy_loss(weights.log_softmax(-1), torch.tensor(sampled), torch.tensor(advantages)).backward()
    assert weights.grad is not None
    found: list[float] = (weights - weights.grad).softmax(-1).tolist()
    return found


def test_the_loss_moves_probability_to_the_better_of_two_answers() -> None:
    even = [math.log(0.5)] * 2
    better, worse = _stepped(even, [1.0, -1.0], [0.0, 0.0])
    assert better > 0.5 > worse
    assert _stepped(even, [0.0, 0.0], [0.0, 0.0]) == [0.5, 0.5], "without an advantage, nothing moves"


def test_what_has_become_much_likelier_in_a_round_goes_no_further() -> None:
    even, now = [math.log(0.5)] * 2, [1.0, 0.0]  # by now the first has a probability of 0.73
    before = [math.exp(1) / (1 + math.exp(1)), 1 / (1 + math.exp(1))]
    assert _stepped(even, [1.0, -1.0], now) == pytest.approx(before)
    assert _stepped(even, [-1.0, 1.0], now)[0] < before[0], "the way back is open"


def test_the_annotation_becomes_likelier_though_it_was_not_sampled() -> None:
    assert _stepped([math.nan, math.log(0.5)], [0.6, 0.0], [0.0, 0.0])[0] > 0.5


def test_steps_share_a_sequence_until_a_line_is_dropped() -> None:
    from fluents.training.advantages import RewardedAnswer
    from fluents.training.batch_sampling import SampledTokens
    from fluents.training.sampled_procedures import SampledStep, _sequences

    def step(prompt: list[int], *written: int) -> SampledStep:
        return SampledStep(prompt, SampledTokens([*written], [-1.0] * len(written), True), RewardedAnswer((), 0.0, {}))

    steps = [step([1, 2], 3, 9), step([1, 2, 3, 9, 4], 5, 6, 9), step([1, 2, 3, 9, 4, 5, 9, 7], 8, 9)]
    first, second = _sequences(steps, [[0.1] * 2, [0.2] * 3, [0.3] * 2])
    assert first.ids == [1, 2, 3, 9, 4, 5, 6, 9]
    assert first.taught == [False, False, True, True, False, True, True, True]
    assert first.advantages == [0.1, 0.1, 0.2, 0.2, 0.2]
    assert second.ids == [1, 2, 3, 9, 4, 5, 9, 7, 8, 9], "6 was dropped: the last step never saw it"
    assert second.taught == [False] * 8 + [True] * 2
    assert second.sampled == [-1.0, -1.0]


def test_no_procedure_comes_again_before_all_have_come() -> None:
    from fluents.training.refinement import RefinementSettings, _rounds
    from fluents.training.sampled_procedures import RewardedProcedure

    procedures = [RewardedProcedure(_trace(str(number), "x", "a", "b", "c")) for number in range(6)]
    first, second, third = _rounds(procedures, [], RefinementSettings(rounds=3, procedures=3))
    assert {one.trace.id for one in (*first, *second)} == set("012345")
    assert len(third) == 3
    assert [len(part) for part in _rounds(procedures, [], RefinementSettings(rounds=2, procedures=128))] == [6, 6]


def test_judged_procedures_are_a_share_of_each_round() -> None:
    from fluents.training.refinement import RefinementSettings, _rounds
    from fluents.training.sampled_procedures import RewardedProcedure

    annotated = [RewardedProcedure(_trace(str(number), "x", "a", "b", "c")) for number in range(9)]
    judged = [one._replace(claims=((), (), ())) for one in annotated]
    for drawn in _rounds(annotated, judged, RefinementSettings(rounds=3, procedures=10)):
        assert [one.claims is None for one in drawn] == [True] * 4 + [False] * 6


def test_what_cannot_be_refined_is_refused_before_the_work(tmp_path: Path) -> None:
    import fluents as fl
    from fluents.training.refinement import refine_adapter

    fl.save([_trace("Short", "x", "One step.")], tmp_path / "short.jsonl")
    (tmp_path / "short.txt").write_text("## Short\n1. One step.\nT1 x | state | old | new\n")
    for adapter, options, what in (
        ("both", {}, "version transcript-1 can be refined"),
        ("transcript-tiny", {"samples": 1}, "`samples` must be at least 2, not 1"),
        (
            "transcript-tiny",
            {"data": tmp_path / "short.jsonl"},
            "`data` contains no procedure with 3 to 8 steps",
        ),
        ("transcript-tiny", {"judged": tmp_path / "short.txt"}, "`judged` contains no procedure with 3 to 10 steps"),
    ):
        given: dict[str, Any] = options
        with pytest.raises(InputError, match=what):
            refine_adapter(adapter, out=tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """On a busy machine the threads of a small model wait for each other, and it is ten times slower than with one."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread", "model_cache")
def test_a_run_resumes_and_its_adapter_is_tracked_with(
    real_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    import fluents as fl
    from fluents.training import adapter as training
    from fluents.training import refinement
    from fluents.training.adapter_file import read_adapter
    from fluents.training.base_model import load_model
    from fluents.weights.adapters import open_adapter

    loaded = load_model(real_weights, "cpu")  # once for three runs
    monkeypatch.setattr(training, "load_model", lambda *_: deepcopy(loaded))
    monkeypatch.setattr(training, "best_device", lambda: "cpu")
    fl.save(TRACES, tmp_path / "mine.jsonl")
    judged = tmp_path / "judged.txt"
    judged.write_text(JUDGED)
    options: dict[str, Any] = {
        "judged": judged,
        "rounds": 2,
        "procedures": 2,
        "samples": 2,
        "max_tokens": 16,
        "learning_rate": 1e-3,
    }

    # What the update takes for the log-probabilities at sampling is what training computes for the same tokens.
    apart: list[float] = []
    loss = refinement.policy_loss

    def watched(log_probabilities: Any, sampled: Any, *others: Any) -> Any:
        drawn = ~sampled.isnan()
        apart.append(float((log_probabilities - sampled)[drawn].detach().abs().max()))
        return loss(log_probabilities, sampled, *others)

    monkeypatch.setattr(refinement, "policy_loss", watched)
    events: list[dict[str, Any]] = []
    refined = refinement.refine_adapter(
        "transcript-tiny", tmp_path / "mine.jsonl", tmp_path / "whole", report=events.append, **options
    )
    assert apart[0] < 1e-2
    log = [event for event in events if "reward" in event]
    assert [(entry["round"], 0 <= entry["reward"] <= 1) for entry in log] == [(1, True), (2, True)]
    assert all(0 <= entry["judged_reward"] <= 1 for entry in log)
    shares = [event["round"] + event["share"] for event in events if "share" in event]
    assert shares == sorted(shares)
    assert shares[-1] == 3.0

    # Broken off in the second round, then started again: the same answers, the same matrices.
    class Stop(Exception):
        pass

    def stop_in_the_second_round(event: dict[str, Any]) -> None:
        if event["round"] == 2:
            raise Stop

    begin = "transcript-tiny", tmp_path / "mine.jsonl", tmp_path / "broken"
    with pytest.raises(Stop):
        refinement.refine_adapter(*begin, report=stop_in_the_second_round, **options)
    rewards: list[dict[str, Any]] = []
    again = refinement.refine_adapter(*begin, report=rewards.append, **options)
    assert rewards[-1] | {"seconds": 0} == log[-1] | {"seconds": 0}
    ours, theirs = read_adapter(refined), read_adapter(again)
    assert all(np.allclose(ours.pairs[name][1], theirs.pairs[name][1], atol=1e-4) for name in ours.pairs)
    with pytest.raises(InputError, match="differs from this one in: refinement\n"):
        refinement.refine_adapter(*begin, **options | {"samples": 3})
    judged.write_text(JUDGED.replace("T1", "P1"))
    with pytest.raises(InputError, match=r"differs from this one in: .*judged"):
        refinement.refine_adapter(*begin, **options)

    # It is another adapter than the one it began with, for the same base weights.
    began = read_adapter(open_adapter("transcript-tiny").path)
    assert (began.rank, began.alpha) == (ours.rank, ours.alpha)
    assert any(np.abs(ours.pairs[name][1] - began.pairs[name][1]).max() > 1e-4 for name in ours.pairs)
    adapter = open_adapter(refined)
    assert adapter.facts.data == ("fluents:train", "mine.jsonl", "judged.txt")
    trace = fl.track(TRACES[0].procedure, adapter=refined)
    assert trace.provenance.model == f"smollm2-135m-instruct + {adapter.name}"
    assert trace.changes
