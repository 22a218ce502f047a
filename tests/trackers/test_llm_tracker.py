"""The llm tracker, all of it, with a scripted model: every form and switch, every way an answer can fail."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from fluents import jsonl
from fluents.errors import FluentsError, InputError, UnknownNameError
from fluents.llm import LanguageModel, NoAnswerError, Question
from fluents.records import Procedure, StateChange, Trace
from fluents.trackers import Listener, open_tracker
from fluents.trackers.llm.pipeline import NO_ANSWER, NOT_VERIFIED
from fluents.trackers.llm.settings import FORMS, Form, LlmSettings
from fluents.trackers.llm.tracker import GivenPairs, LlmTracker
from fluents.version import __version__
from scripted import Script, attribute_in, pairs, states, step_in, thing_in, water_heats

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it over the leaves.", "Wait."))
FOUND = {1: {"water": ["temperature"]}, 2: {"water": ["place"], "leaves": ["wetness", "colour"]}, 3: {}}
STATES = {"temperature": ("cold", "hot"), "place": ("in the kettle", "in the pot"), "wetness": ("dry", "wet")}


def tea_answer(question: Question) -> str:
    """A model that knows how tea is made; it holds that the leaves keep their colour."""
    if question.name == "schemata-1":
        return pairs(**FOUND[step_in(question.prompt)])
    if question.name == "verify-1":
        return json.dumps({"changes": attribute_in(question.prompt) != "colour"})
    if question.name == "changes-of-1":
        attributes = FOUND[step_in(question.prompt)][thing_in(question.prompt)]
        told = [(a, *STATES.get(a, ("green", "green"))) for a in attributes]
        return json.dumps({"changes": [{"attribute": a, "before": b, "after": c} for a, b, c in told]})
    if question.name == "complete-1":
        step = step_in(question.prompt)
        lines = [
            f"{a} of {e} was {STATES[a][0]} before and {STATES[a][1]} afterwards"
            for e in FOUND[step]
            for a in FOUND[step][e]
            if a in STATES
        ]
        return "\n".join(lines) or "there will be no change"
    return states(*STATES.get(attribute_in(question.prompt), ("green", "green")))


def said(trace: Trace) -> list[tuple[int, str, str, str, str]]:
    return [(c.step, c.entity, c.attribute, c.before, c.after) for c in trace.changes]


WHOLE_TEA = [
    (1, "water", "temperature", "cold", "hot"),
    (2, "water", "place", "in the kettle", "in the pot"),
    (2, "leaves", "wetness", "dry", "wet"),
]


def tracked(answer: Any, procedure: Procedure = TEA, **settings: Any) -> Trace:
    trace = LlmTracker(LanguageModel(Script(answer), "script"), LlmSettings(**settings)).track(procedure)
    assert jsonl.loads(jsonl.dumps(trace)) == trace
    return trace


# The forms


def test_schemata_are_changes_without_states() -> None:
    assert said(tracked(tea_answer, form="schemata")) == [
        (1, "water", "temperature", "", ""),
        (2, "water", "place", "", ""),
        (2, "leaves", "wetness", "", ""),
        (2, "leaves", "colour", "", ""),
    ]


@pytest.mark.parametrize("settings", [{"form": "states"}, {"form": "states", "econd": True}, {"form": "complete"}])
def test_states_econd_and_complete_give_whole_changes(settings: dict[str, Any]) -> None:
    trace = tracked(tea_answer, **settings)
    assert said(trace) == WHOLE_TEA, "a state that stays the same is no change"
    assert trace.covered is None
    assert trace.rejects == ()
    assert [change.mentioned for change in trace.changes] == [True, True, True]


def test_whole_asks_once_and_reads_by_step_number() -> None:
    def answer(_: Question) -> str:
        items = [dict(zip(("entity", "attribute", "before", "after"), c[1:], strict=True)) for c in WHOLE_TEA]
        return json.dumps(
            {
                "steps": [
                    {"step": 9, "changes": items},
                    {"step": 3, "changes": []},
                    {"step": 2, "changes": items[1:]},
                    {"step": 1, "changes": items[:1]},
                ]
            }
        )

    model = Script(answer)
    trace = LlmTracker(LanguageModel(model, "script"), LlmSettings(form="whole")).track(TEA)
    assert said(trace) == WHOLE_TEA
    assert [(r.step, "unknown step" in r.reason) for r in trace.rejects] == [(None, True)]
    assert len(model.asked) == 1
    assert model.asked[0].max_tokens > 1024, "a longer answer than for a step"


def test_what_whole_leaves_out_is_asked_for_again_then_taken_as_it_is() -> None:
    """The steps that are there are kept; one that is not is told apart from one without changes."""
    model = Script(lambda _: json.dumps({"steps": [{"step": 2, "changes": []}]}))
    trace = LlmTracker(LanguageModel(model, "script"), LlmSettings(form="whole")).track(TEA)
    assert len(model.asked) == 2
    assert "step 1 is missing" in model.asked[1].system
    assert trace.covered == (2,)
    assert [(r.step, r.reason) for r in trace.rejects] == [(1, NO_ANSWER), (3, NO_ANSWER)]


# Answers that fail


def test_an_unreadable_answer_is_asked_for_again_with_the_reason_then_recorded() -> None:
    def answer(question: Question) -> str:
        return "I would rather talk." if step_in(question.prompt) == 2 else tea_answer(question)

    model = Script(answer)
    trace = LlmTracker(LanguageModel(model, "script"), LlmSettings()).track(TEA)
    assert said(trace) == WHOLE_TEA[:1]
    assert trace.covered == (1, 3), "step 2 was not answered, which is not the same as no change"
    assert [(r.step, r.text, r.position) for r in trace.rejects] == [(2, "I would rather talk.", None)]
    assert sum(step_in(q.prompt) == 2 for q in model.asked) == 2


def test_a_second_answer_that_can_be_read_is_taken() -> None:
    model = Script(lambda q: tea_answer(q) if "could not be read" in q.system else "Well…")
    trace = LlmTracker(LanguageModel(model, "script"), LlmSettings(form="complete")).track(TEA)
    assert said(trace) == WHOLE_TEA
    assert trace.rejects == ()
    assert len(model.asked) == 6


def test_one_pair_without_states_costs_that_pair_only() -> None:
    def answer(question: Question) -> str:
        if question.name == "states-1" and attribute_in(question.prompt) in ("place", "temperature"):
            return "{}"
        return tea_answer(question)

    trace = tracked(answer)
    assert said(trace) == [WHOLE_TEA[2]]
    assert trace.covered == (2, 3), "of step 1 nothing is known"
    assert [r.step for r in trace.rejects] == [1, 2]


def test_a_question_that_gets_no_answer_is_a_reject() -> None:
    def answer(question: Question) -> str:
        if step_in(question.prompt) == 1:
            raise NoAnswerError("no answer after 3 tries")
        return tea_answer(question)

    trace = tracked(answer)
    assert trace.covered == (2, 3)
    assert trace.rejects[0].reason == "schemata-1: no answer after 3 tries"


def test_a_line_of_a_complete_answer_keeps_its_place_among_the_answers() -> None:
    trace = tracked(lambda _: "Here you are:\nheat of pot was cold before and hot afterwards", form="complete")
    assert [(r.step, r.position) for r in trace.rejects] == [(1, 0), (2, 0), (3, 0)]


# Switches


def test_verification_drops_what_does_not_change_and_says_so() -> None:
    trace = tracked(tea_answer, form="schemata", verify=True)
    assert ("leaves", "colour") not in {(c.entity, c.attribute) for c in trace.changes}
    assert [(r.step, r.text, r.reason, r.position) for r in trace.rejects] == [
        (2, "leaves | colour", NOT_VERIFIED, None)
    ]
    assert trace.provenance.decoding["removed"] == 1
    assert trace.covered is None


def test_verification_comes_before_states_are_asked_for() -> None:
    model = Script(tea_answer)
    LlmTracker(LanguageModel(model, "script"), LlmSettings(verify=True)).track(TEA)
    assert len(model.prompts("verify-1")) == 4
    assert len(model.prompts("states-1")) == 3


def test_what_verification_does_not_answer_is_kept() -> None:
    trace = tracked(lambda q: "Hm." if q.name == "verify-1" else tea_answer(q), form="complete", verify=True)
    assert said(trace) == WHOLE_TEA
    assert {r.reason.partition(":")[0] for r in trace.rejects} == {"verify-1"}


@pytest.mark.parametrize("form", ["schemata", "states", "complete"])
def test_samples_are_agreed_on_with_support(form: str) -> None:
    """Three of four samples see the tea; one sees a dragon."""

    def answer(question: Question) -> str:
        if question.seed % 4 or question.name == "states-1":
            return tea_answer(question)
        if question.name == "complete-1":
            return "mood of dragon was calm before and angry afterwards"
        return pairs(dragon=["mood"])

    trace = tracked(answer, form=form, samples=4)
    assert {c.entity for c in trace.changes} == {"water", "leaves"}
    assert all(c.support is not None and 0 < c.support < 1 for c in trace.changes)
    if form == "schemata":
        assert len(trace.at(2)) == 3, "two attributes of one entity stay two"
    assert trace.provenance.decoding["temperature"] == 0.7


def test_samples_have_seeds_of_their_own_and_are_drawn() -> None:
    model = Script(tea_answer)
    LlmTracker(LanguageModel(model, "script"), LlmSettings(form="schemata", samples=3, seed=4)).track(TEA)
    assert len({q.seed for q in model.asked}) == 3
    assert {q.temperature for q in model.asked} == {0.7}


def test_memory_tells_later_steps_what_earlier_ones_left_and_carries_names() -> None:
    def answer(question: Question) -> str:
        step = step_in(question.prompt)
        if question.name == "schemata-1":
            return pairs(**{("The Water" if step == 1 else "water"): ["temperature"]})
        return states(*{1: ("cold", "hot"), 2: ("very hot", "warm"), 3: ("warm", "cold")}[step])

    model = Script(answer)
    trace = LlmTracker(LanguageModel(model, "script"), LlmSettings(memory=True)).track(TEA)
    assert {c.entity for c in trace.changes} == {"The Water"}
    known = ['- "temperature" of "The Water" is ' in prompt for prompt in model.prompts("schemata-1")]
    assert known == [False, True, True]
    assert ' is "hot"' not in model.prompts("schemata-1")[2], "only the last state is known"


def test_at_most_so_many_changes() -> None:
    assert [len(tracked(tea_answer, most=1).at(step)) for step in (1, 2, 3)] == [1, 1, 0]


def test_switches_that_do_not_go_together_are_refused() -> None:
    poem: Any = "poem"
    with pytest.raises(UnknownNameError, match="one of: schemata"):
        LlmSettings(form=poem)
    refused: list[dict[str, Any]] = [
        {"form": "whole", "memory": True},
        {"form": "complete", "econd": True},
        {"temperature": math.nan},
        {"temperature": -0.1},
        {"samples": 0},
        {"samples": 10**14},
    ]
    for wrong in refused:
        with pytest.raises(InputError):
            LlmSettings(**wrong)
    given, nobody = GivenPairs([]), LanguageModel(Script(tea_answer), "script")
    for settings in (LlmSettings(form="complete"), LlmSettings(verify=True)):
        with pytest.raises(InputError, match="`pairs`"):
            LlmTracker(nobody, settings, pairs=given)
    with pytest.raises(InputError, match="`shots` has no effect without `examples`"):
        LlmTracker(nobody, LlmSettings(shots=1))


# Given pairs


GOLD = Trace(
    procedure=TEA,
    changes=(
        StateChange(step=1, entity="water", attribute="temperature", before="secret", after="gold"),
        StateChange(step=2, entity="leaves", attribute="colour", before="secret", after="gold"),
    ),
    covered=(1, 2),
)


def test_given_pairs_are_each_answered_and_nothing_of_the_gold_is_told() -> None:
    model = Script(tea_answer)
    trace = LlmTracker(LanguageModel(model, "script"), LlmSettings(), pairs=GivenPairs([GOLD], "gold.jsonl")).track(TEA)
    assert said(trace) == [(1, "water", "temperature", "cold", "hot"), (2, "leaves", "colour", "green", "green")]
    assert trace.covered == GOLD.covered
    assert {q.name for q in model.asked} == {"states-1"}
    assert not any("secret" in q.prompt or "gold" in q.prompt for q in model.asked)
    assert trace.provenance.decoding["pairs"] == "gold.jsonl"


def test_pairs_of_other_procedures_are_refused() -> None:
    for other in (TEA.replace(id="coffee"), TEA.replace(steps=TEA.steps[:2])):
        with pytest.raises(InputError, match="pairs"):
            LlmTracker(LanguageModel(Script(tea_answer), "script"), LlmSettings(), pairs=GivenPairs([GOLD])).track(
                other
            )


# The whole


def test_provenance_says_how_it_was_made() -> None:
    tracker = LlmTracker(LanguageModel(Script(tea_answer), "tiny"), LlmSettings(seed=7))
    made = tracker.track(TEA).provenance
    assert (made.tracker, made.model, made.seed, made.version) == ("llm", "tiny", 7, __version__)
    assert made.prompt == "schemata-1 + states-1"
    assert made.decoding["form"] == "states"


def test_a_procedure_without_steps_asks_nothing() -> None:
    for form in FORMS:
        model = Script(tea_answer)
        assert (
            LlmTracker(LanguageModel(model, "script"), LlmSettings(form=form))
            .track(Procedure(id="none", steps=()))
            .changes
            == ()
        )
        assert model.asked == []


def test_an_endpoint_that_is_down_ends_the_run() -> None:
    def down(_: Question) -> str:
        raise FluentsError("the endpoint is down")

    with pytest.raises(FluentsError, match="down"):
        LlmTracker(LanguageModel(Script(down), "script"), replace(LlmSettings(), form="complete")).track(TEA)


class Heard(Listener):
    def __init__(self) -> None:
        self.progress: list[float] = []
        self.steps: list[Trace] = []

    def on_progress(self, procedure: Procedure, steps: float) -> None:  # noqa: ARG002
        self.progress.append(steps)

    def on_step(self, trace: Trace) -> None:
        self.steps.append(trace)


@pytest.mark.parametrize("settings", [LlmSettings(), LlmSettings(memory=True), LlmSettings(verify=True)])
def test_progress_never_goes_back_and_steps_are_reported_as_they_are_finished(settings: LlmSettings) -> None:
    heard = Heard()
    trace = LlmTracker(LanguageModel(Script(tea_answer), "script", workers=1), settings).track(TEA, heard)
    assert heard.progress == sorted(heard.progress)
    assert 0 < heard.progress[0] <= heard.progress[-1] <= len(TEA.steps)
    assert [len(partial.covered_steps) for partial in heard.steps] == [1, 2, 3]
    assert heard.steps[-1] == trace


@pytest.mark.parametrize("form", ["schemata", "states", "complete", "whole"])
@pytest.mark.parametrize("memory", [False, True])
def test_steps_that_were_answered_are_not_asked_again(form: Form, memory: bool) -> None:
    """The same trace comes out, whichever step was missing; the whole form asks once more about all."""
    if memory and form in ("schemata", "whole"):
        return
    answer = (lambda question: water_heats(question.prompt)) if form == "whole" else tea_answer
    settings = LlmSettings(form=form, memory=memory)
    whole = LlmTracker(LanguageModel(Script(answer), "script"), settings).track(TEA)
    for missing in (1, 2, 3):
        covered = tuple(step for step in (1, 2, 3) if step != missing)
        kept = tuple(change for change in whole.changes if change.step != missing)
        model = Script(answer)
        again = LlmTracker(LanguageModel(model, "script"), settings).track(
            TEA, done=whole.replace(changes=kept, covered=covered)
        )
        assert [c.step for c in again.changes] == [c.step for c in whole.changes]
        assert again.covered is None
        if form != "whole":
            assert {step_in(question.prompt) for question in model.asked} == {missing}
        if not memory:
            assert again == whole


def test_an_open_model_is_tracked_with_as_it_is() -> None:
    with open_tracker(model=LanguageModel(Script(tea_answer), "script", max_tokens=99)) as tracker:
        trace = tracker.track(TEA)
    assert trace.changes == tracked(tea_answer).changes
    assert (trace.provenance.model, trace.provenance.decoding["max_tokens"]) == ("script", 99)
