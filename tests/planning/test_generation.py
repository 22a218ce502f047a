"""Domains and problems that a language model writes: read, solved, and sent back with what the planner says."""

from __future__ import annotations

import pytest
from rainy_woods import TRACE

from fluents.errors import InputError
from fluents.llm import LanguageModel, Question
from fluents.planning.generation import predict_domains
from fluents.planning.reader import read_pddl
from fluents.planning.trace_plan import TracePlan, plan
from fluents.task_records import PddlTask
from scripted import Script

DOMAIN = """Here is the domain:
```pddl
(define (domain rainy-woods)
  (:requirements :strips)
  (:predicates (sheltered ?c - camper) (out ?p - pot) (full ?p - pot) (quenched ?c))
  (:action find-shelter :parameters (?c - camper) :effect (sheltered ?c))
  (:action put-out :parameters (?p -pot) :effect (out ?p))
  (:action wait :parameters (?c - camper ?p - pot) :precondition (and (sheltered ?c) (out ?p)) :effect (dry ?c))
  (:action drink :parameters (?c - camper ?p - pot) :precondition (full ?p) :effect (quenched ?c)))
```"""
PROBLEM = """(define (problem drink-water) (:domain rainy-woods) (:objects anna - camper kettle - pot)
  (:init) (:goal (quenched anna))"""
BETTER = DOMAIN.replace("(dry ?c)", "(and (dry ?c) (full ?p))") + "\n" + PROBLEM


def prompted(script: Script, side_effects: bool = True) -> TracePlan:
    return plan(
        TRACE, "the camper is not thirsty", method="prompted", model=LanguageModel(script, "test"),
        planner="built-in", side_effects=side_effects,
    )  # fmt: skip


def answers(domain: str, problem: str, better: str) -> Script:
    def answer(question: Question) -> str:
        return {"plan-domain-1": domain, "plan-problem-1": problem}.get(question.name, better)

    return Script(answer)


def test_an_empty_goal_is_no_question_for_a_model() -> None:
    """It was replaced by the goal of the procedure, and nothing said so."""
    script = answers(DOMAIN, PROBLEM, BETTER)
    with pytest.raises(InputError, match="the goal is empty"):
        plan(TRACE, " ", method="prompted", model=LanguageModel(script, "test"), planner="built-in")
    assert not script.asked


def test_what_the_planner_says_goes_back_to_the_model() -> None:
    script = answers(DOMAIN, PROBLEM, BETTER)
    found = prompted(script)
    assert [question.name for question in script.asked] == ["plan-domain-1", "plan-problem-1", "plan-repair-1"]
    assert (
        "- (quenched anna): drink needs (full ?pot)\n- (full ?pot): no action makes it true" in script.asked[2].prompt
    )
    assert [step.action for step in found.solution.plan] == ["find-shelter", "put-out", "wait", "drink"]
    assert found.attempts == (
        "no plan: (quenched anna): drink needs (full ?pot); (full ?pot): no action makes it true",
    )
    assert "predicate dry is not declared: added" in {repair.message for repair in found.repairs}
    assert found.trace is not None
    assert found.trace.id == TRACE.id


def test_states_are_shown_unless_they_are_not_wanted() -> None:
    line = 'Step 3: "content" of "pot" from "empty" to "full of rainwater"'
    for shown in (True, False):
        script = answers(DOMAIN, PROBLEM, BETTER)
        prompted(script, side_effects=shown)
        assert [line in question.prompt for question in script.asked] == [shown, False, shown]


def test_a_model_that_does_not_get_better_is_asked_no_more() -> None:
    script = answers(DOMAIN, PROBLEM, DOMAIN + PROBLEM)
    found = prompted(script)
    assert found.solution.status == "unsolvable"
    assert len(found.attempts) == 2
    assert len(script.asked) == 4


def test_nothing_is_invented_where_nothing_can_be_read() -> None:
    found = prompted(answers("I would rather not.", PROBLEM, BETTER))
    assert found.domain is None
    assert found.solution.reason == "the answers of the language model could not be read"
    assert found.attempts == ("plan-domain-1: the PDDL text contains no domain",)
    found = prompted(answers(DOMAIN, "no", BETTER))
    assert found.domain is not None
    assert found.problem is None


def test_actions_are_written_for_given_types_and_predicates() -> None:
    header = "(define (domain kettle) (:requirements :strips) (:predicates (hot ?k))"
    actions = "(:action boil ; heat the kettle"
    task = PddlTask(
        procedure=TRACE.procedure, text="", domain="", domain_header=header, actions=actions, action_step_map="",
        problems={},
    )  # fmt: skip
    answer = "Sure:\n```pddl\n(:action boil :parameters (?k) :effect (hot ?k))\n```\nDone."
    script = Script(lambda _: answer)
    [done] = predict_domains([task], LanguageModel(script, "test"))
    assert read_pddl(done.domain, strict=True).domain.actions[0].name == "boil"
    assert f"Domain:\n{header}\nActions:\n{actions}\nAnswer:" in script.asked[0].prompt
    [done] = predict_domains([task], LanguageModel(Script(lambda _: "No."), "test"))
    assert done.domain == "No."
