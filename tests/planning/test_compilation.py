"""Traces as planning problems: valid for strict readers, solvable, in the order of the text; or the reason is named."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from rainy_woods import TRACE, WANTED

import fluents as fl
from fluents.errors import InputError
from fluents.planning import trace_plan
from fluents.planning.compilation import compile_trace
from fluents.planning.conditions import KEYWORDS
from fluents.planning.model import Connective
from fluents.planning.planners import Planner
from fluents.planning.reader import read_pddl
from fluents.planning.search import search
from fluents.planning.states import PlanStep, World
from fluents.planning.trace_plan import plan
from fluents.records import Procedure, Salience, StateChange, Trace
from strategies import traces

if find_spec("up_fast_downward") is None and os.environ.get("CI") == "true":
    pytest.fail("CI must run Fast Downward: install the extra plan")
needs_fast_downward = pytest.mark.skipif(find_spec("up_fast_downward") is None, reason="needs the extra plan")

PLANNERS = [
    "built-in",
    pytest.param("fast-downward", marks=[pytest.mark.slow, needs_fast_downward]),
]


@pytest.mark.parametrize("planner", PLANNERS)
def test_with_salient_states_the_rain_fills_the_pot_and_there_is_a_plan(planner: Planner) -> None:
    found = plan(TRACE, WANTED, planner=planner)
    assert found.steps == (1, 2, 3, 4)
    assert found.domain is not None
    third = found.domain.actions[2]
    assert "content-full-of-rainwater" in {effect.atom.predicate for effect in third.effects if effect.positive}
    assert found.trace is not None
    assert found.trace.procedure.steps == TRACE.procedure.steps
    words = {(c.step, c.entity, c.attribute, c.before, c.after) for c in found.trace.changes}
    assert words == {(c.step, c.entity, c.attribute, c.before, c.after) for c in TRACE.changes}


@pytest.mark.parametrize("planner", PLANNERS)
def test_without_them_there_is_none_and_the_reason_is_named(planner: Planner) -> None:
    found = plan(TRACE, WANTED, planner=planner, side_effects=False)
    assert found.solution.status == "unsolvable"
    assert [one.fact for one in found.solution.unreachable] == [
        "(thirst-quenched camper1)",
        "(content-full-of-rainwater ?pot)",
    ]
    assert found.solution.unreachable[1].reason == "no action makes it true"


@pytest.mark.slow
@needs_fast_downward
@pytest.mark.filterwarnings("ignore")  # of unified-planning's own
def test_the_domain_is_valid_for_unified_planning_too() -> None:
    from unified_planning.io import PDDLReader

    made = compile_trace(TRACE, goal=WANTED)
    problem = PDDLReader().parse_problem_string(str(made.domain), str(made.problem))
    assert len(problem.actions) == 4


def test_the_goal_is_the_final_states_of_salient_entities() -> None:
    goal = compile_trace(TRACE).problem.goal
    assert isinstance(goal, Connective)
    assert {str(part) for part in goal.parts} == {
        "(content-half-empty pot1)", "(location-on-the-grass pot1)", "(location-under-the-overhang camper1)",
        "(thirst-quenched camper1)", "(wetness-still-dry camper1)",
    }  # fmt: skip


def test_a_goal_that_no_state_says_is_an_error_with_what_could_be_said() -> None:
    with pytest.raises(InputError, match="no state in the trace matches 'camper happy'") as caught:
        compile_trace(TRACE, goal="pot empty, camper happy")
    assert "camper quenched" in (caught.value.fix or "")


def test_a_plan_sorted_into_the_order_of_the_text_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[object] = []
    monkeypatch.setattr(trace_plan, "check_plan", lambda _, steps: checked.append(steps))
    found = plan(TRACE, WANTED, planner="built-in")
    assert checked == [found.solution.plan]


def test_a_trace_without_changes_is_an_error() -> None:
    with pytest.raises(InputError, match="nothing to plan"):
        plan(Trace(procedure=Procedure(steps=("Wait.",))))


def text_order(trace: Trace, **options: Any) -> None:
    """The steps as the text has them are a plan, and the plan that is found has no other order."""
    made = compile_trace(trace, **options)
    reading = read_pddl(str(made.domain), str(made.problem), strict=True)
    assert (reading.domain, reading.problem) == (made.domain, made.problem)
    world = World(made.domain, made.problem)
    objects = {one.types: one.name for one in made.problem.objects}
    world.replay(
        PlanStep(action.name, tuple(objects[one.types] for one in action.parameters)) for action in made.domain.actions
    )
    assert made.text_plan() is not None
    found = search(world).plan
    assert found is not None
    taken = [made.steps[step.action] for step in found]
    assert taken == sorted(set(taken))
    if options.get("order"):
        assert taken == sorted(made.steps.values())


@given(traces().filter(lambda trace: trace.changes != ()))
def test_any_trace_becomes_strict_pddl_whose_text_is_a_plan(trace: Trace) -> None:
    made = compile_trace(trace.replace(salience=()))
    read_pddl(str(made.domain), str(made.problem), strict=True)
    assert search(World(made.domain, made.problem)).plan is not None
    assert made.text_plan() is not None


def test_where_planners_give_up_the_text_itself_is_the_plan() -> None:
    """Forty lamps lit one by one: as many states as there are sets of lamps."""
    steps = tuple(f"Light lamp number {number}." for number in range(40))
    changes = tuple(
        StateChange(step=step, entity=f"lamp {step}", attribute="light", before="off", after="on")
        for step in range(1, 41)
    )
    trace = Trace(procedure=Procedure(steps=steps), changes=changes)
    wanted = ", ".join(f"lamp {number} on" for number in range(1, 41))
    found = plan(trace, wanted, planner="built-in", memory_limit=64)
    assert found.solution.planner == "order of the text"
    assert found.steps == tuple(range(1, 41))
    assert "memory" in found.solution.reason


@pytest.mark.parametrize("order", [False, True])
def test_our_own_procedures_are_replayed_in_the_order_of_the_text(order: bool) -> None:
    for trace in fl.load("fluents:dev")[:8]:
        text_order(trace, order=order)


def test_states_that_do_not_fit_together_still_give_a_plan() -> None:
    """A later step says that the pan was warm, an earlier one left it hot: the earlier one counts."""
    steps = ("Heat the pan.", "Put the pan away.")
    changes = (
        StateChange(step=1, entity="pan", attribute="heat", before="cold", after="hot"),
        StateChange(step=1, entity="pan", attribute="heat", before="cool", after="very hot"),
        StateChange(step=2, entity="pan", attribute="heat", before="warm", after="cold"),
    )
    found = plan(Trace(procedure=Procedure(steps=steps), changes=changes), "pan hot", planner="built-in")
    assert found.steps == (1,)
    text_order(Trace(procedure=Procedure(steps=steps), changes=changes))


def test_a_state_that_nobody_knows_at_first_is_not_taken_from_later() -> None:
    changes = (
        StateChange(step=1, entity="pan", attribute="heat", before="", after="hot"),
        StateChange(step=2, entity="pan", attribute="heat", before="hot", after="cold"),
    )
    trace = Trace(procedure=Procedure(steps=("Heat the pan.", "Let the pan cool.")), changes=changes)
    assert compile_trace(trace).problem.init == ()
    assert plan(trace, "pan cold", planner="built-in").steps == (1, 2)


@pytest.mark.parametrize("attribute", ["increase", "preference", "at", "total cost"])
def test_no_name_means_something_to_a_reader_of_pddl(attribute: str) -> None:
    """A state without a letter of ASCII leaves the attribute alone as the name."""
    change = StateChange(step=1, entity="number", attribute=attribute, before="低", after="高")
    trace = Trace(procedure=Procedure(steps=("Turn it up.",)), changes=(change,))
    found = plan(trace, "number 高", planner="built-in")
    assert found.steps == (1,)
    assert found.domain is not None
    names = {one.name for one in found.domain.predicates} | {one.name for one in found.domain.types}
    assert not names & KEYWORDS


def test_of_several_raters_one_is_chosen() -> None:
    rated = TRACE.replace(salience=(*TRACE.salience, Salience(entity="pot", rater="model", value=5)))
    with pytest.raises(InputError, match="several raters"):
        compile_trace(rated)
    goal = compile_trace(rated, salience_rater="model").problem.goal
    assert "camper" not in str(goal)


def test_the_front_door_plans() -> None:
    assert fl.plan(TRACE, WANTED, planner="built-in").to_dict()["steps"] == [1, 2, 3, 4]
