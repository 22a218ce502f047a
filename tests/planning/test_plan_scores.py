"""Predicted domains against gold ones: what is right is counted whatever its variables are called."""

from __future__ import annotations

import pytest

from fluents.errors import InputError
from fluents.planning.plan_scores import plan_score, planning_tasks
from fluents.records import Procedure
from fluents.task_records import PddlTask

DOMAIN = """(define (domain kettle)
  (:requirements :strips :typing)
  (:types kettle place)
  (:predicates (at ?k - kettle ?p - place) (hot ?k - kettle) (stove ?p - place))
  (:action carry :parameters (?k - kettle ?from - place ?to - place)
    :precondition (and (at ?k ?from)) :effect (and (at ?k ?to) (not (at ?k ?from))))
  (:action boil_water :parameters (?k - kettle ?p - place)
    :precondition (and (at ?k ?p) (stove ?p)) :effect (and (hot ?k))))
"""
PROBLEM = """(define (problem tea) (:domain kettle) (:objects pot - kettle hob sink - place)
  (:init (at pot sink) (stove hob)) (:goal (and (hot pot))))
"""


def task(domain: str, id: str = "kettle") -> PddlTask:
    procedure = Procedure(id=id, goal="Boil water", steps=("Carry it to the stove.", "Boil it."))
    return PddlTask(
        procedure=procedure, text="", domain=domain, domain_header="", actions="", action_step_map="",
        problems={"tea": PROBLEM},
    )  # fmt: skip


def scored(domain: str) -> dict[str, dict[str, float]]:
    found = plan_score([task(DOMAIN)], [task(domain)], planner="built-in")
    return {row: {name: round(value, 1) for name, value in columns.items()} for row, columns in found.rows.items()}


def test_gold_is_right_whatever_its_variables_are_called() -> None:
    for domain in (DOMAIN, DOMAIN.replace("?to", "?x").replace("?from", "?to"), DOMAIN.replace("boil_", "boil-")):
        found = scored(domain)
        assert found["preconditions"]["f1"] == found["effects"]["f1"] == found["actions right"]["share"] == 100
    assert scored(DOMAIN)["problems solved"] == {"share": 100}


def test_a_plan_must_be_one_in_the_gold_domain_too() -> None:
    """Water that boils anywhere: a plan of one step, which the gold domain does not allow."""
    found = scored(DOMAIN.replace("(and (at ?k ?p) (stove ?p))", "(and (at ?k ?p))"))
    assert (found["problems planned"], found["problems solved"]) == ({"share": 100}, {"share": 0})
    assert found["preconditions"] == {"precision": 100, "recall": 66.7, "f1": 80}
    assert found["actions right"]["share"] == 50


def test_what_is_missing_or_cannot_be_read_counts_as_nothing() -> None:
    found = plan_score([task(DOMAIN)], [task("sorry")], planner="built-in")
    assert found.rows["effects"]["recall"] == 0
    assert found.rows["problems solved"]["share"] == 0
    assert found.warnings == ("kettle: the domain cannot be read",)
    assert plan_score([task(DOMAIN)], [], planner="built-in").warnings == ("kettle: no prediction",)


def test_predictions_for_other_tasks_are_an_error() -> None:
    with pytest.raises(InputError, match="contain the task other, which is not in the gold"):
        plan_score([task(DOMAIN)], [task(DOMAIN, "other")])
    with pytest.raises(InputError, match="not a planning task"):
        list(planning_tasks([Procedure(steps=("Wait.",))], "mine.jsonl"))
