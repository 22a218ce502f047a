"""The built-in planner: breadth first, so that a plan is as short as can be; for small problems, without dependencies.

Of plans equally short it finds the one whose actions stand first in the domain. A state is a number, its bits facts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from fluents.planning.grounding import Reachability, TooLargeError, Unreachable, conjuncts
from fluents.planning.model import EQUALS, Atom, Condition, condition_pddl
from fluents.planning.states import PlanStep, World

Clauses: TypeAlias = tuple[tuple[int, int], ...]
"""Ways for a condition to hold: bits that must be set, and bits that must not."""
MAX_CLAUSES = 1_000


@dataclass(frozen=True)
class SearchResult:
    """A plan, or why there is none."""

    plan: tuple[PlanStep, ...] | None
    unreachable: tuple[Unreachable, ...] = ()


def search(world: World) -> SearchResult:
    """The shortest plan, or none and the reasons. Raises TooLargeError where the problem is not small."""
    reached = Reachability(world)
    if not reached.possible(world.problem.goal, {}):
        return SearchResult(None, tuple(reached.explain()))
    bits = _Bits(reached)
    steps = []
    places = {name: place for place, name in enumerate(world.actions)}
    for step in sorted(reached.steps, key=lambda step: places[step.action]):
        action, binding = world.bound(step)
        effects = [
            (bits.clauses(effect.condition, whole), bits.of(effect.atom.bind(whole)), effect.positive)
            for effect in action.effects
            for whole in ({**binding, **inner} for inner in world.bindings(effect.variables))
        ]
        steps.append((step, bits.clauses(action.precondition, binding), effects))
    start = sum(bits.of(fact) for fact in world.init)
    goal = bits.clauses(world.problem.goal, {})
    came_from: dict[int, tuple[int, PlanStep] | None] = {start: None}
    todo = deque([start])
    while todo:
        state = todo.popleft()
        if _any(goal, state):
            return SearchResult(_path(came_from, state))
        for step, precondition, effects in steps:
            if _any(precondition, state):
                added = removed = 0
                for condition, bit, positive in effects:
                    if _any(condition, state):
                        added, removed = (added | bit, removed) if positive else (added, removed | bit)
                after = state & ~removed | added
                if after not in came_from:
                    came_from[after] = state, step
                    todo.append(after)
    return SearchResult(None, tuple(_never(world, bits, came_from)))


def _never(world: World, bits: _Bits, states: Iterable[int]) -> list[Unreachable]:
    """The parts of the goal that hold in no state at all; if each holds in some, they never hold together."""
    parts = conjuncts(world.problem.goal)
    clauses = {part: bits.clauses(part, {}) for part in parts}
    found = [part for part in parts if not any(_any(clauses[part], state) for state in states)]
    if found:
        return [Unreachable(condition_pddl(part), "no state that can be reached makes it true") for part in found]
    return [Unreachable(condition_pddl(world.problem.goal), "each part can be reached, but never all together")]


def _any(clauses: Clauses, state: int) -> bool:
    return any(state & true == true and not state & false for true, false in clauses)


def _path(came_from: Mapping[int, tuple[int, PlanStep] | None], state: int) -> tuple[PlanStep, ...]:
    steps = []
    while (origin := came_from[state]) is not None:
        state, step = origin
        steps.append(step)
    return tuple(reversed(steps))


class _Bits:
    """A bit for each fact that changes."""

    def __init__(self, reached: Reachability) -> None:
        self._world = reached.world
        changing = sorted((reached.facts - self._world.init) | reached.removed)
        self._bits = {fact: 1 << place for place, fact in enumerate(changing)}

    def of(self, fact: Atom) -> int:
        return self._bits.get(fact, 0)

    def clauses(self, condition: Condition, binding: Mapping[str, str], positive: bool = True) -> Clauses:
        """The ways for a condition (or its opposite) to hold; what never changes is settled here."""
        if isinstance(condition, Atom):
            fact = condition.bind(binding)
            if (bit := self.of(fact)) and fact.predicate != EQUALS:
                return ((bit, 0),) if positive else ((0, bit),)
            return ((0, 0),) if self._world.holds(fact, self._world.init, {}) == positive else ()
        if condition.word == "not":
            return self.clauses(condition.parts[0], binding, not positive)
        if condition.word in ("and", "or"):
            parts = [self.clauses(part, binding, positive) for part in condition.parts]
        else:
            bound = ({**binding, **inner} for inner in self._world.bindings(condition.variables))
            parts = [self.clauses(condition.parts[0], one, positive) for one in bound]
        if (condition.word in ("or", "exists")) == positive:
            return tuple(dict.fromkeys(clause for part in parts for clause in part))
        whole: Clauses = ((0, 0),)
        for part in parts:
            both = ((a | c, b | d) for (a, b), (c, d) in product(whole, part))
            whole = tuple(dict.fromkeys((true, false) for true, false in both if not true & false))
            if len(whole) > MAX_CLAUSES:
                raise TooLargeError(
                    f"a condition has more than {MAX_CLAUSES:,} alternatives: too many for this planner"
                )
        return whole
