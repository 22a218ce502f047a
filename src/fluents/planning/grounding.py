"""What can happen at all: actions with objects for their variables, as far as a delete relaxation reaches.

In the relaxation nothing that became true becomes false again, and the other way round. What it does not reach, no plan
reaches; it also says what is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fluents.planning.model import EQUALS, TRUE, Action, Atom, Condition, Connective, Typed, condition_pddl
from fluents.planning.states import PlanStep, World

MAX_GROUND = 200_000
"""Actions with objects for their variables; a problem with more is no small one."""
MAX_EXPLAINED = 20


class TooLargeError(Exception):
    """The problem is too large for the built-in planner."""


@dataclass(frozen=True)
class Unreachable:
    """A fact that no plan makes true (or, with `not`, false), and why."""

    fact: str
    reason: str

    def __str__(self) -> str:
        return f"{self.fact}: {self.reason}"


class Reachability:
    """The facts and actions that the relaxation reaches."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.facts = set(world.init)
        self.removed: set[Atom] = set()
        """Facts that can become false; all that do not hold at first are false anyway."""
        self.steps: dict[PlanStep, None] = {}
        self._by_predicate: dict[str, dict[Atom, None]] = defaultdict(dict)
        for fact in world.problem.init:
            self._by_predicate[fact.predicate][fact] = None
        self._spread()

    def _spread(self) -> None:
        grown = True
        while grown:
            grown = False
            for action in self.world.domain.actions:
                conditional = any(effect.condition != TRUE for effect in action.effects)
                for binding in list(self._bindings(action)):
                    step = PlanStep(action.name, tuple(binding[one.name] for one in action.parameters))
                    is_new = step not in self.steps
                    if is_new or conditional:
                        self.steps[step] = None
                        grown |= self._apply(action, binding) or is_new
                    if len(self.steps) > MAX_GROUND:
                        raise TooLargeError(
                            f"the problem has more than {MAX_GROUND:,} grounded actions: too many for this planner"
                        )

    def _apply(self, action: Action, binding: Mapping[str, str]) -> bool:
        before = len(self.facts) + len(self.removed)
        for effect in action.effects:
            for inner in self.world.bindings(effect.variables):
                whole = {**binding, **inner}
                if self.possible(effect.condition, whole):
                    atom = effect.atom.bind(whole)
                    if effect.positive:
                        self.facts.add(atom)
                        self._by_predicate[atom.predicate][atom] = None
                    else:
                        self.removed.add(atom)
        return len(self.facts) + len(self.removed) > before

    def _bindings(self, action: Action) -> Iterator[dict[str, str]]:
        """The ways to bind the parameters with which the precondition is possible."""
        wanted = [
            part for part in conjuncts(action.precondition) if isinstance(part, Atom) and part.predicate != EQUALS
        ]
        types = {one.name: one for one in action.parameters}
        for binding in self._joined(wanted, {}, types):
            free = [one for one in action.parameters if one.name not in binding]
            for rest in self.world.bindings(free):
                whole = {**binding, **rest}
                if self.possible(action.precondition, whole):
                    yield whole

    def _joined(
        self, wanted: list[Atom], binding: dict[str, str], types: Mapping[str, Typed]
    ) -> Iterator[dict[str, str]]:
        if not wanted:
            yield binding
            return

        def cost(atom: Atom) -> tuple[int, int]:
            free = sum(name in types and name not in binding for name in atom.arguments)
            return free, len(self._by_predicate[atom.predicate])

        atom = min(wanted, key=cost)
        rest = [other for other in wanted if other is not atom]
        for fact in self.matches(atom, binding):
            more = dict(binding)
            for name, value in zip(atom.arguments, fact.arguments, strict=True):
                if name in types:
                    more[name] = value
            if all(self.world.is_a(more[name], types[name]) for name in atom.arguments if name in types):
                yield from self._joined(rest, more, types)

    def matches(self, atom: Atom, binding: Mapping[str, str]) -> list[Atom]:
        """The facts reached so far that an atom can stand for."""
        meant = atom.bind(binding)
        if not any(name.startswith("?") for name in meant.arguments):
            return [meant] if meant in self.facts else []
        return [fact for fact in self._by_predicate[atom.predicate] if unified(meant, fact) is not None]

    def possible(self, condition: Condition, binding: Mapping[str, str], positive: bool = True) -> bool:
        """Whether a condition (or, if not `positive`, its opposite) can hold."""
        if isinstance(condition, Atom):
            atom = condition.bind(binding)
            if atom.predicate == EQUALS:
                return (atom.arguments[0] == atom.arguments[1]) == positive
            return atom in self.facts if positive else atom not in self.world.init or atom in self.removed
        if condition.word == "not":
            return self.possible(condition.parts[0], binding, not positive)
        if condition.word in ("and", "or"):
            each = (self.possible(part, binding, positive) for part in condition.parts)
        else:
            bound = self.world.bindings(condition.variables)
            each = (self.possible(condition.parts[0], {**binding, **inner}, positive) for inner in bound)
        return all(each) if (condition.word in ("and", "forall")) == positive else any(each)

    def explain(self) -> list[Unreachable]:
        """The parts of the goal that cannot be reached, and what they lack, down to what no action brings about."""
        todo = [part for part in conjuncts(self.world.problem.goal) if not self.possible(part, {})]
        found: dict[str, Unreachable] = {}
        while todo and len(found) < MAX_EXPLAINED:
            part = todo.pop(0)
            name = condition_pddl(part)
            literal = as_literal(part)
            if name in found:
                continue
            if literal is None:
                found[name] = Unreachable(name, "this condition can never be true")
                continue
            reasons: list[str] = []
            for action, condition, binding in self._achievers(*literal):
                lacking = [one for one in conjuncts(bind(condition, binding)) if not self._can_hold(one)]
                todo += lacking
                shown = " and ".join(map(condition_pddl, lacking))
                reasons.append(
                    f"{action} needs {shown}" if shown else f"the conditions of {action} are never true together"
                )
            found[name] = Unreachable(name, "; ".join(dict.fromkeys(reasons)) or "no action makes it true")
        return list(found.values())

    def _achievers(self, atom: Atom, positive: bool) -> Iterator[tuple[str, Condition, dict[str, str]]]:
        for action in self.world.domain.actions:
            for effect in action.effects:
                binding = unified(effect.atom, atom) if effect.positive == positive else None
                variables = (*action.parameters, *effect.variables)
                if binding is None or not all(
                    self.world.is_a(binding[one.name], one) for one in variables if one.name in binding
                ):
                    continue
                named = {one.name: f"?{one.types[0]}" for one in variables}  # what it may be says more than its name
                yield action.name, Connective("and", (action.precondition, effect.condition)), named | binding

    def _can_hold(self, part: Condition) -> bool:
        """Whether a condition can hold by itself, whatever its variables stand for."""
        literal = as_literal(part)
        if literal is None or literal[0].predicate == EQUALS:
            return True
        atom, positive = literal
        if positive:
            return bool(self.matches(atom, {}))
        return any(name.startswith("?") for name in atom.arguments) or self.possible(atom, {}, positive=False)


def conjuncts(condition: Condition) -> list[Condition]:
    """The parts of a condition that must all hold."""
    if isinstance(condition, Connective) and condition.word == "and":
        return [one for part in condition.parts for one in conjuncts(part)]
    return [condition]


def unified(first: Atom, second: Atom) -> dict[str, str] | None:
    """What the variables of the first stand for in the second; None where they cannot be the same.

    A variable of the second matches anything.
    """
    if first.predicate != second.predicate or len(first.arguments) != len(second.arguments):
        return None
    binding: dict[str, str] = {}
    for one, other in zip(first.arguments, second.arguments, strict=True):
        if other.startswith("?"):
            continue
        if (binding.setdefault(one, other) if one.startswith("?") else one) != other:
            return None
    return binding


def as_literal(condition: Condition) -> tuple[Atom, bool] | None:
    """An atom, and whether it is to be true; None for any other condition."""
    if isinstance(condition, Atom):
        return condition, True
    inner = condition.parts[0] if condition.word == "not" else None
    return (inner, False) if isinstance(inner, Atom) else None


def bind(condition: Condition, binding: Mapping[str, str]) -> Condition:
    """A condition with objects for variables."""
    if isinstance(condition, Atom):
        return condition.bind(binding)
    inner = {one.name for one in condition.variables}
    left = {name: value for name, value in binding.items() if name not in inner}
    return Connective(condition.word, tuple(bind(part, left) for part in condition.parts), condition.variables)
