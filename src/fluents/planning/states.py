"""What holds in a state, what an action makes of it, and a plan replayed step by step. The judge of every planner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypeAlias

from fluents.errors import InputError
from fluents.planning.model import EQUALS, OBJECT, Action, Atom, Condition, Domain, Problem, Typed
from fluents.records import Procedure, Provenance, StateChange, Trace
from fluents.text.names import counted

State: TypeAlias = frozenset[Atom]
"""The facts that hold; every other one does not."""


@dataclass(frozen=True)
class PlanStep:
    """An action with objects for its parameters."""

    action: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({' '.join((self.action, *self.arguments))})"


class InvalidPlanError(InputError):
    """A plan with a step that cannot be taken, or that does not reach the goal."""


class World:
    """A domain and a problem: which objects there are, and what follows what."""

    def __init__(self, domain: Domain, problem: Problem) -> None:
        self.domain, self.problem = domain, problem
        self.actions = {action.name: action for action in domain.actions}
        self._of_type: dict[str, list[str]] = {OBJECT: []}
        above = domain.supertypes()
        for one in (*domain.constants, *problem.objects):
            for name in dict.fromkeys(name for kind in one.types for name in above.get(kind, {OBJECT})):
                self._of_type.setdefault(name, []).append(one.name)
        self._members = {name: frozenset(objects) for name, objects in self._of_type.items()}
        self.init: State = frozenset(problem.init)

    def values(self, variable: Typed) -> list[str]:
        """The objects that a variable can stand for, in the order they are declared."""
        if len(variable.types) == 1:
            return self._of_type.get(variable.types[0], [])
        return list(dict.fromkeys(name for kind in variable.types for name in self._of_type.get(kind, ())))

    def is_a(self, name: str, variable: Typed) -> bool:
        return any(name in self._members.get(kind, ()) for kind in variable.types)

    def bindings(self, variables: Sequence[Typed]) -> Iterator[dict[str, str]]:
        names = [variable.name for variable in variables]
        for values in product(*map(self.values, variables)):
            yield dict(zip(names, values, strict=True))

    def holds(self, condition: Condition, state: Set[Atom], binding: Mapping[str, str]) -> bool:
        """Whether a condition is true in a state."""
        if isinstance(condition, Atom):
            atom = condition.bind(binding)
            return atom.arguments[0] == atom.arguments[1] if atom.predicate == EQUALS else atom in state
        if condition.word == "not":
            return not self.holds(condition.parts[0], state, binding)
        if condition.word in ("and", "or"):
            each = (self.holds(part, state, binding) for part in condition.parts)
            return all(each) if condition.word == "and" else any(each)
        bound = ({**binding, **inner} for inner in self.bindings(condition.variables))
        each = (self.holds(condition.parts[0], state, one) for one in bound)
        return all(each) if condition.word == "forall" else any(each)

    def bound(self, step: PlanStep) -> tuple[Action, dict[str, str]]:
        """The action of a step, and what its parameters stand for."""
        action = self.actions.get(step.action)
        if action is None:
            raise InvalidPlanError(f"the domain has no action {step.action}")
        if len(step.arguments) != len(action.parameters):
            raise InvalidPlanError(
                f"{step}: the action {step.action} takes {counted(len(action.parameters), 'argument')}"
            )
        for name, variable in zip(step.arguments, action.parameters, strict=True):
            if not self.is_a(name, variable):
                raise InvalidPlanError(f"{step}: {name} is not of type {' or '.join(variable.types)}")
        return action, {v.name: name for v, name in zip(action.parameters, step.arguments, strict=True)}

    def after(self, state: State, step: PlanStep) -> State:
        """The state that a step leads to. What becomes false does so before anything becomes true."""
        action, binding = self.bound(step)
        if not self.holds(action.precondition, state, binding):
            raise InvalidPlanError(f"{step}: the precondition of this step does not hold")
        added: set[Atom] = set()
        removed: set[Atom] = set()
        for effect in action.effects:
            for inner in self.bindings(effect.variables):
                whole = {**binding, **inner}
                if self.holds(effect.condition, state, whole):
                    (added if effect.positive else removed).add(effect.atom.bind(whole))
        return (state - removed) | added

    def replay(self, plan: Iterable[PlanStep]) -> list[State]:
        """The states that a plan goes through, the first included; an InvalidPlanError where it is not one."""
        states = [self.init]
        for number, step in enumerate(plan, start=1):
            try:
                states.append(self.after(states[-1], step))
            except InvalidPlanError as error:
                raise InvalidPlanError(error.what, where=f"step {number} of the plan") from None
        if not self.holds(self.problem.goal, states[-1], {}):
            raise InvalidPlanError("the goal does not hold at the end of the plan")
        return states


Wording: TypeAlias = Mapping[Atom, tuple[str, str, str]]
"""Fact → the entity, attribute and value it stands for, where a trace was compiled."""


def replayed(
    world: World, plan: Sequence[PlanStep], *, wording: Wording | None = None, texts: Mapping[str, str] | None = None
) -> Trace:
    """A plan as a trace: its steps, and what each changes. `texts` are the steps' own words, by action."""
    states = world.replay(plan)
    changes: list[StateChange] = []
    for number, (before, after) in enumerate(pairwise(states), start=1):
        values: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
        for side, facts in enumerate((before - after, after - before)):
            for fact in sorted(facts):
                entity, attribute, value = (wording or {}).get(fact) or _worded(fact)
                values.setdefault((entity, attribute), ([], []))[side].append(value)
        for (entity, attribute), (old, new) in values.items():
            for first, second in zip(*_padded(old, new), strict=True):
                changes.append(StateChange(step=number, entity=entity, attribute=attribute, before=first, after=second))
    steps = tuple((texts or {}).get(step.action) or str(step).strip("()") for step in plan)
    return Trace(
        procedure=Procedure(id=world.problem.name, goal=world.problem.name.replace("-", " "), steps=steps),
        changes=tuple(changes),
        provenance=Provenance(tracker="plan"),
    )


def _worded(fact: Atom) -> tuple[str, str, str]:
    """(at npc camp): the place of npc is camp; (hungry npc): whether npc is hungry."""
    if not fact.arguments:
        return fact.predicate, "truth", "true"
    return fact.arguments[0], fact.predicate, " ".join(fact.arguments[1:]) or "true"


def _padded(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """As many values before as after: what is missing was, or is, not so."""
    count = max(len(old), len(new))
    old += [f"not {value}" for value in new[len(old) :]]
    new += [f"not {value}" for value in old[len(new) : count]]
    return old, new
