"""A rehearsal shows every kind of question, built by the code that asks it, and asks each but once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluents.llm import LanguageModel
from fluents.prompts.llm import MAX_SCHEMA_STEPS
from fluents.records import Procedure
from fluents.trackers.llm.dry_run import STAND_IN, DryRun
from fluents.trackers.llm.settings import Form, LlmSettings
from fluents.trackers.llm.tracker import LlmTracker

KINDS = {
    "schemata": {"schemata-1"},
    "states": {"schemata-1", "states-1"},
    "complete": {"complete-1"},
    "whole": {"whole-1"},
}


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("form", KINDS)
def test_every_kind_of_question_is_shown(form: Form, verify: bool) -> None:
    procedure = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it.", "Wait."))
    rehearsal = DryRun(procedure)
    LlmTracker(LanguageModel(rehearsal, "none"), LlmSettings(form=form, verify=verify)).track(procedure)
    assert {question.name for question in rehearsal.asked} == KINDS[form] | ({"verify-1"} if verify else set())
    assert sum(question.name == "verify-1" for question in rehearsal.asked) == (3 if verify else 0), "one for each step"


@settings(max_examples=30)
@given(
    steps=st.integers(0, MAX_SCHEMA_STEPS + 3),
    how=st.sampled_from(
        [
            LlmSettings(form="states", econd=True, memory=True, verify=True),
            LlmSettings(form="complete", memory=True, verify=True),
            LlmSettings(form="whole", samples=2),
        ]
    ),
)
def test_its_answers_can_be_read_whatever_the_form(steps: int, how: LlmSettings) -> None:
    """Else a question would be shown twice, with an apology between."""
    procedure = Procedure(id="p", goal="Goal", steps=("Do it.",) * steps)
    rehearsal = DryRun(procedure)
    trace = LlmTracker(LanguageModel(rehearsal, "none", workers=1), how).track(procedure)
    assert not trace.rejects
    assert trace.covered is None
    assert {change.entity for change in trace.changes} == ({STAND_IN.entity} if steps else set())
    assert len(set(map(repr, rehearsal.asked))) == len(rehearsal.asked)
