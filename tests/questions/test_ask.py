"""fl.ask: ratings before step 1 and after each step, their support, the three settings of states."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from windy_room import QUESTION, TEXT, TRACE, sensible

import fluents as fl
from fluents.errors import FluentsError
from fluents.llm import LanguageModel
from fluents.questions import States, kept_states
from fluents.questions.prompted_judge import PromptedJudge
from fluents.records import Procedure, StateChange, Trace
from fluents.task_records import CrepeCase, Likelihood
from scripted import Script


def told(answer: CrepeCase) -> list[tuple[int, float | None, str]]:
    return [(one.step, one.rating, one.change) for one in answer.likelihoods]


def model(script: Script) -> LanguageModel:
    return LanguageModel(script, "parrot", workers=1)


def test_a_model_that_thinks_about_states_sees_the_light_go_out_and_on() -> None:
    script = Script(lambda question: sensible(question.prompt))
    answer = fl.ask(TRACE, QUESTION, method="prompted", model=model(script))
    ratings = [(0, 1, "no change"), (1, 1, "no change"), (2, 5, "more likely"), (3, 1, "less likely")]
    assert told(answer) == [*ratings, (4, 5, "more likely")]
    assert [[(c.entity, c.after) for c in one.support] for one in answer.likelihoods][2:4] == [
        [("room", "lit")],
        [("room", "dark")],
    ]
    assert answer.provenance.model == "parrot"
    assert answer.provenance.prompt == "likelihood-1"


def test_without_states_none_is_shown_and_with_salient_ones_fewer() -> None:
    shown = {}
    for states in get_args(States):
        script = Script(lambda question: sensible(question.prompt))
        answer = fl.ask(TRACE, QUESTION, states=states, method="prompted", model=model(script))
        shown[states] = sum(question.prompt.count("before the step") for question in script.asked)
        assert answer.provenance.decoding["states"] == states
    assert 0 == shown["none"] < shown["salient"] < shown["all"]


def test_offline_follows_the_brightness_of_the_room_and_names_it() -> None:
    answer = fl.ask(TRACE, "The room is lit.")
    changes = ["no change", "no change", "more likely", "less likely", "more likely"]
    assert told(answer) == list(zip(range(5), (1, 1, 5, 1, 5), changes, strict=True))
    assert all(TRACE.changes[4] in one.support for one in answer.likelihoods[2:3])
    assert all(one.reason for one in answer.likelihoods)


def test_offline_guesses_where_the_states_use_other_words() -> None:
    """It is wrong about the last step, where it tends to "less likely"."""
    answer = fl.ask(TRACE, "The room is bright enough to read in.")
    assert [one.change for one in answer.likelihoods[1:4]] == ["no change", "more likely", "less likely"]
    assert (answer.likelihoods[2].reason or "").startswith("a guess from similarity")


def test_offline_cannot_tell_what_nothing_has_to_do_with() -> None:
    answer = fl.ask(TRACE, "The bank raises its interest.")
    assert told(answer) == [(step, None, "cannot tell") for step in range(5)]


def test_a_text_is_not_tracked_where_no_states_are_wanted() -> None:
    answer = fl.ask(TEXT, QUESTION, states="none")
    assert answer.procedure.steps == TRACE.procedure.steps
    assert not any(one.support for one in answer.likelihoods)


@pytest.mark.slow
@pytest.mark.usefixtures("model_cache")
def test_a_text_is_tracked_and_asked_by_the_embedded_model() -> None:
    answer = fl.ask(TEXT, QUESTION)
    assert [one.step for one in answer.likelihoods] == [0, 1, 2, 3, 4]
    assert answer.provenance.decoding["entities"] != 0


def test_a_crepe_case_is_asked_about_its_events_and_never_shows_its_own_states() -> None:
    procedure = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it."))
    gold = (
        Likelihood(step=1, change="more likely", event="Steam rises."),
        Likelihood(step=1, change="more likely", entity="water", attribute="hot"),
    )
    script = Script(lambda _: '{"change": "less"}')
    answer = fl.ask(
        CrepeCase(procedure=procedure, likelihoods=gold), states="none", method="prompted", model=model(script)
    )
    assert [(one.step, one.event, one.change) for one in answer.likelihoods] == [
        (1, "Steam rises.", "less likely"),
        (2, "Steam rises.", "less likely"),
    ]
    assert all(one.predicted for one in answer.likelihoods)
    assert "hot" not in "".join(question.prompt for question in script.asked)


def test_a_crepe_case_without_events_has_an_answer_without_judgements() -> None:
    """CREPE's test split has some."""
    assert fl.ask(CrepeCase(procedure=TRACE.procedure), states="none").likelihoods == ()


def test_salience_is_the_built_in_raters_whatever_else_rated_the_trace() -> None:
    human = tuple(fl.rate_salience(TRACE).salience[0].replace(rater=name, step=1) for name in ("A1", "A2"))
    kept = kept_states(TRACE.replace(salience=human), "salient", 4)
    assert 0 < len(kept.changes) < len(TRACE.changes)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"states": "some"}, "states"),
        ({"min_salience": 3}, "`min_salience` works only with `states` salient"),
        ({"model": "any"}, "`model` works only with `method` prompted"),
        ({"question": " "}, "no question"),
        ({"question": None}, "no question"),
        ({"method": "guess"}, "method"),
    ],
)
def test_what_does_not_go_together_is_an_error(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(FluentsError, match=expected):
        fl.ask(TRACE, **{"question": QUESTION, **wrong})


@pytest.mark.parametrize("states", ["none", "all", "salient"])
def test_a_trace_without_changes_is_an_answer_too(states: States) -> None:
    bare = Trace(procedure=Procedure(steps=("Wait.",)))
    assert len(fl.ask(bare, QUESTION, states=states).likelihoods) == 2


def test_a_judge_of_ones_own() -> None:
    judge = PromptedJudge(model(Script(lambda _: '{"states": [], "reason": "why", "rating": 2}')))
    heat = StateChange(step=1, entity="tea", attribute="heat", before="", after="hot")
    answer = fl.ask(Trace(procedure=Procedure(steps=("Wait.",)), changes=(heat,)), QUESTION, method=judge)
    assert told(answer) == [(0, 2, "no change"), (1, 2, "no change")]


def test_a_name_of_a_file_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "soup.md").write_text("Boil it.")
    with pytest.raises(FluentsError):
        fl.ask(str(tmp_path / "soup.md"), QUESTION)
