"""Domains and problems as objects of unified-planning, solved by Fast Downward and checked by its validator.

Both come with the extra `plan`. Fast Downward is under the GPL-3.0: it runs as a program of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from math import prod
from threading import Lock
from typing import Any

from fluents.errors import needs_extra
from fluents.planning.grounding import TooLargeError
from fluents.planning.model import EQUALS, OBJECT, Action, Atom, Condition, Typed
from fluents.planning.states import PlanStep, World

MAX_FACTS = 20_000
"""Facts of a problem whose plan unified-planning checks: its validator keeps a value of each."""
_ALONE = Lock()


def unified_planning() -> Any:
    """The library, which takes a second to import."""
    with needs_extra("plan"):
        import unified_planning.shortcuts as up
    return up


class UnifiedProblem:
    """A world as unified-planning knows it. Kinds of names get different first letters there: it keeps them apart."""

    def __init__(self, world: World) -> None:
        self._up = up = unified_planning()
        up.get_environment().credits_stream = None
        self._world = world
        self._types: dict[str, Any] = {OBJECT: up.UserType("t-object")}
        self._fluents: dict[str, Any] = {}
        self._objects: dict[str, Any] = {}
        self._actions: dict[str, Any] = {}
        self.problem = up.Problem(world.problem.name)
        self._fill()

    def solve(self) -> tuple[tuple[PlanStep, ...] | None, str]:
        """A plan, or none, and what Fast Downward says of it."""
        with needs_extra("plan"), self._up.OneshotPlanner(name="fast-downward") as planner:
            result = planner.solve(self.problem)
        status = result.status.name.lower().replace("_", " ")
        if result.plan is None:
            return None, status
        return tuple(
            PlanStep(one.action.name[2:], tuple(argument.object().name[2:] for argument in one.actual_parameters))
            for one in result.plan.actions
        ), status

    def is_valid(self, plan: Iterable[PlanStep]) -> bool:
        """Whether unified-planning's own validator takes a plan for one."""
        from unified_planning.engines import SequentialPlanValidator, ValidationResultStatus
        from unified_planning.plans import ActionInstance, SequentialPlan

        steps = [
            ActionInstance(self._actions[step.action], tuple(self._objects[name] for name in map(str, step.arguments)))
            for step in plan
        ]
        with SequentialPlanValidator() as validator:
            found = validator.validate(self.problem, SequentialPlan(steps))
        return bool(found.status == ValidationResultStatus.VALID)

    def _fill(self) -> None:
        up, world = self._up, self._world
        parents = {one.name: one for one in world.domain.types}
        for name in sorted(parents, key=lambda name: len(world.domain.supertypes()[name])):
            self._types[name] = up.UserType(f"t-{name}", self._type(parents[name]))
        for predicate in world.domain.predicates:
            slots = {f"x{place}": self._type(slot) for place, slot in enumerate(predicate.parameters)}
            self._fluents[predicate.name] = up.Fluent(f"p-{predicate.name}", up.BoolType(), **slots)
            self.problem.add_fluent(self._fluents[predicate.name], default_initial_value=False)
        for one in (*world.domain.constants, *world.problem.objects):
            self._objects[one.name] = self.problem.add_object(f"o-{one.name}", self._type(one))
        for action in world.domain.actions:
            self._actions[action.name] = self._action(action)
            self.problem.add_action(self._actions[action.name])
        for fact in world.problem.init:
            self.problem.set_initial_value(self._condition(fact, {}), True)
        self.problem.add_goal(self._condition(world.problem.goal, {}))

    def _type(self, one: Typed) -> Any:
        if len(one.types) != 1:
            raise TooLargeError(f"{one.name} has several types, which unified-planning does not support")
        return self._types[one.types[0]]

    def _action(self, action: Action) -> Any:
        up = self._up
        made = up.InstantaneousAction(
            f"a-{action.name}", **{f"v-{one.name[1:]}": self._type(one) for one in action.parameters}
        )
        scope = {one.name: made.parameter(f"v-{one.name[1:]}") for one in action.parameters}
        made.add_precondition(self._condition(action.precondition, scope))
        added = {(e.atom, e.condition, e.variables) for e in action.effects if e.positive}
        for effect in dict.fromkeys(action.effects):
            if not effect.positive and (effect.atom, effect.condition, effect.variables) in added:
                continue  # what becomes false and true at once is true
            variables = {one.name: up.Variable(f"w-{one.name[1:]}", self._type(one)) for one in effect.variables}
            inner = scope | variables
            fluent, condition = self._condition(effect.atom, inner), self._condition(effect.condition, inner)
            made.add_effect(fluent, effect.positive, condition, forall=tuple(variables.values()))
        return made

    def _condition(self, condition: Condition, scope: Mapping[str, Any]) -> Any:
        up = self._up
        if isinstance(condition, Atom):
            arguments = [scope[name] if name in scope else self._objects[name] for name in condition.arguments]
            return (
                up.Equals(*arguments)
                if condition.predicate == EQUALS
                else self._fluents[condition.predicate](*arguments)
            )
        variables = {one.name: up.Variable(f"w-{one.name[1:]}", self._type(one)) for one in condition.variables}
        parts = [self._condition(part, {**scope, **variables}) for part in condition.parts]
        if condition.word in ("forall", "exists"):
            return (up.Forall if condition.word == "forall" else up.Exists)(parts[0], *variables.values())
        return {"and": up.And, "or": up.Or, "not": up.Not}[condition.word](*parts)


def second_opinion(world: World, plan: Iterable[PlanStep]) -> bool | None:
    """What unified-planning's validator says of a plan; None if it is not installed, fails, or would take long."""
    facts = sum(prod(len(world.values(slot)) for slot in one.parameters) for one in world.domain.predicates)
    if facts > MAX_FACTS or find_spec("unified_planning") is None:
        return None
    with warnings.catch_warnings(action="ignore"), _own_environment():  # the warnings are the library's own
        try:
            return UnifiedProblem(world).is_valid(plan)
        except Exception:  # it supports less than we do, and says so in many ways
            return None


@contextmanager
def _own_environment() -> Iterator[None]:
    """The library keeps every expression as long as its common environment: a server that plans all day needs others.

    Not all of the library works with an environment that is handed to it.
    """
    import unified_planning.environment as common

    with _ALONE:
        usual = common.GLOBAL_ENVIRONMENT
        common.GLOBAL_ENVIRONMENT = None
        try:
            yield
        finally:
            common.GLOBAL_ENVIRONMENT = usual
