"""From a trace to a plan: compiled by rule or written by a language model, solved, and replayed as a trace again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from fluents.canonicalisation import canonicalise
from fluents.errors import InputError
from fluents.llm import LanguageModel, open_model
from fluents.planning.compilation import MIN_SALIENCE, CompiledTrace, compile_trace
from fluents.planning.expressions import Repair
from fluents.planning.generation import generate
from fluents.planning.model import Domain, Problem
from fluents.planning.planners import Planner, Solution, check_plan, solve
from fluents.planning.states import World, replayed
from fluents.records import Trace
from fluents.salience import Keep
from fluents.scoring import check_choice, check_type

PlanMethod: TypeAlias = Literal["compiled", "prompted"]


@dataclass(frozen=True)
class TracePlan:
    """A planning domain and problem of a trace, and what came of them."""

    id: str
    goal: str
    domain: Domain | None
    """None, as `problem`, where no answer of the language model could be read."""
    problem: Problem | None
    solution: Solution
    repairs: tuple[Repair, ...] = ()
    trace: Trace | None = None
    """The plan as a trace: its steps, and what each changes. None without a plan."""
    steps: tuple[int, ...] = ()
    """The steps of the text that the plan takes, in its order; none for what a language model wrote."""
    attempts: tuple[str, ...] = ()
    """What was wrong with the language model's earlier answers."""
    goal_states: tuple[str, ...] = ()
    """What the goal was taken to mean, a sentence for each state; empty for what a language model wrote."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "id": self.id,
            "goal": self.goal,
            "goal_states": list(self.goal_states),
            **solution_dict(self.solution),
            "steps": list(self.steps),
            "repairs": [str(repair) for repair in self.repairs],
            "attempts": list(self.attempts),
            "domain": None if self.domain is None else str(self.domain),
            "problem": None if self.problem is None else str(self.problem),
        }


def solution_dict(solution: Solution) -> dict[str, Any]:
    """Plain values for JSON."""
    return {
        "status": solution.status,
        "planner": solution.planner,
        "reason": solution.reason,
        "plan": [str(step) for step in solution.plan],
        "unreachable": [{"fact": one.fact, "reason": one.reason} for one in solution.unreachable],
    }


def plan(
    trace: Trace,
    goal: str | None = None,
    *,
    method: PlanMethod = "compiled",
    min_salience: float = MIN_SALIENCE,
    salience_rater: str | None = None,
    side_effects: bool = True,
    order: bool = False,
    planner: Planner = "auto",
    time_limit: float = 60.0,
    memory_limit: int = 2048,
    model: str | LanguageModel | None = None,
    base_url: str | None = None,
) -> TracePlan:
    """Make a planning domain and problem of a trace, find a plan, and replay it.

    `goal` is what to reach, in words ("soup hot, bowl full"); without it, the final states of entities with at least
    `min_salience`, by `salience_rater` where there are several. The method "compiled" works by rule; "prompted" has a
    language model write domain and problem, and shows it the states of the entities that are salient enough. Without
    `side_effects`, steps change only what they name, and a language model is shown no states. `order` keeps compiled
    steps in the order of the text.

    `planner` is "built-in", "fast-downward" (the extra `plan`), or "auto", which tries one after the other, within
    `time_limit` seconds and `memory_limit` MiB.

    >>> found = plan(trace, "soup hot")
    >>> found.solution.plan, found.solution.unreachable
    """
    check_type("trace", trace, Trace)
    check_choice("method", method, PlanMethod)
    limits: dict[str, Any] = {"planner": planner, "time_limit": time_limit, "memory_limit": memory_limit}
    if not trace.clusters and trace.changes:
        trace = canonicalise(trace)
    if method == "prompted":
        if order:
            raise InputError("`order` works only with `method` compiled", fix="leave out `order`")
        if goal is not None and not goal.strip():
            raise InputError("the goal is empty", where=trace.id, fix="say in `goal` what to reach, or leave it out")
        shown = Keep(min_salience, rater=salience_rater) if side_effects else None
        with open_model(model, base_url) as opened:
            return _prompted(trace, goal, shown, opened, limits)
    if model is not None:
        raise InputError(
            "`model` works only with `method` prompted", fix="set `method` to prompted, or leave out `model`"
        )
    made = compile_trace(
        trace,
        goal=goal,
        min_salience=min_salience,
        salience_rater=salience_rater,
        side_effects=side_effects,
        order=order,
    )
    return _compiled(trace, goal, made, limits)


def _compiled(trace: Trace, goal: str | None, made: CompiledTrace, limits: dict[str, Any]) -> TracePlan:
    solution = solve(made.domain, made.problem, **limits)
    if solution.status == "gave-up" and (by_text := made.text_plan()) is not None:
        solution = replace(solution, status="solved", planner="order of the text", plan=by_text)
    wanted = goal or trace.procedure.goal
    found = TracePlan(trace.id, wanted, made.domain, made.problem, solution, goal_states=made.goal_states)
    if solution.status != "solved":
        return found
    solution = replace(solution, plan=made.in_text_order(solution.plan))
    check_plan(World(made.domain, made.problem), solution.plan)
    steps = tuple(made.steps[step.action] for step in solution.plan)
    texts = {action: trace.procedure.steps[number - 1] for action, number in made.steps.items()}
    again = replayed(World(made.domain, made.problem), solution.plan, wording=made.wording, texts=texts)
    procedure = again.procedure.replace(id=trace.id, goal=goal or trace.procedure.goal)
    return replace(found, solution=solution, steps=steps, trace=again.replace(procedure=procedure))


def _prompted(
    trace: Trace, goal: str | None, shown: Keep | None, model: LanguageModel, limits: dict[str, Any]
) -> TracePlan:
    made = generate(trace, model, goal=goal, shown=shown, solve=lambda d, p: solve(d, p, **limits))
    found = TracePlan(
        trace.id,
        goal or trace.procedure.goal,
        made.domain,
        made.problem,
        made.solution,
        made.repairs,
        attempts=made.attempts,
    )
    if made.solution.status != "solved" or made.domain is None or made.problem is None:
        return found
    again = replayed(World(made.domain, made.problem), made.solution.plan)
    return replace(found, trace=again.replace(procedure=again.procedure.replace(id=trace.id, goal=found.goal)))
