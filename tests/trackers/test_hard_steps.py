"""The forty hard steps and how they are judged. `benchmarks/hard_steps.py` runs all of them on every size."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fluents.records import StateChange

_BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "hard_steps.py"))
STEPS: list[Any] = list(_BENCHMARK["hard_steps"]())


def _change(entity: str, attribute: str = "state") -> StateChange:
    return StateChange(step=1, entity=entity, attribute=attribute, before="one", after="other")


def test_there_are_forty_of_all_kinds_each_with_an_answer() -> None:
    assert len(STEPS) == 40
    assert Counter(step.kind for step in STEPS).keys() == {
        "negation",
        "condition",
        "advice",
        "waiting",
        "domain",
        "repetition",
    }
    assert all(step.steps and step.wrong for step in STEPS)
    assert all(bool(step.right) == (step.expect != "none") for step in STEPS)


def test_where_nothing_changes_any_change_is_wrong() -> None:
    step = next(step for step in STEPS if step.expect == "none")
    assert step.faults([]) == []
    assert step.faults([_change("moon")]) == ["moon | state"]


def test_where_few_things_change_many_are_wrong() -> None:
    step = next(step for step in STEPS if step.goal == "Restart a garden well pump")
    assert step.faults([_change("reset knob", "position"), _change("pump")]) == []
    assert step.faults([_change("knob"), *(_change(f"thing {number}") for number in range(3))]) == ["4 changes"]


def test_elsewhere_one_expected_entity_must_change_and_nothing_wrong() -> None:
    step = next(step for step in STEPS if step.goal == "Top up the washer fluid")
    assert step.faults([_change("the reservoirs", "level")]) == []
    assert step.faults([_change("washer fluid")]) == [], "in more words"
    assert step.faults([]) == ["nothing that was expected"]
    assert step.faults([_change("reservoir"), _change("womb")]) == ["womb"]
    assert step.faults([_change("hood")]) == ["nothing that was expected"], "not wrong, but not enough"


def test_a_wrong_attribute_is_wrong_for_its_entity_only() -> None:
    step = next(step for step in STEPS if step.goal == "Wash quinoa before cooking")
    assert step.faults([_change("quinoa", "temperature")]) == ["quinoa | temperature"]
    assert step.faults([_change("quinoa", "cleanness"), _change("stove", "temperature")]) == []


@pytest.mark.parametrize("step", STEPS, ids=[step.goal for step in STEPS])
def test_every_step_can_be_answered_rightly(step: Any) -> None:
    answer = [_change(*(part.strip() for part in right.split("|"))) for right in step.right[:3]]
    assert step.faults(answer) == []
