"""Planning domains and problems as values, and as standard PDDL.

What fluents reads and writes: typing, negation, disjunction, equality, quantifiers, conditional effects and constants.
Numbers, durations and derived predicates are refused, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

OBJECT = "object"
"""The type that every other one has above it."""
EQUALS = "="


@dataclass(frozen=True, order=True)
class Atom:
    """A predicate of some names; of variables too, where they stand for objects: (at ?x kitchen)."""

    predicate: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({' '.join((self.predicate, *self.arguments))})"

    def bind(self, binding: Mapping[str, str]) -> Atom:
        """The atom with objects for the variables that the binding names."""
        return Atom(self.predicate, tuple(binding.get(name, name) for name in self.arguments))


@dataclass(frozen=True)
class Typed:
    """A variable, an object or a type, and the types it has; more than one is PDDL's `either`."""

    name: str
    types: tuple[str, ...] = (OBJECT,)


Word: TypeAlias = Literal["and", "or", "not", "forall", "exists"]


@dataclass(frozen=True)
class Connective:
    """A condition made of others: `and`, `or`, `not` of one, `forall` and `exists` of one with variables."""

    word: Word
    parts: tuple[Condition, ...]
    variables: tuple[Typed, ...] = ()


Condition: TypeAlias = Atom | Connective
TRUE = Connective("and", ())


@dataclass(frozen=True)
class Effect:
    """An atom becomes true or false, for all values of the variables with which the condition held before."""

    atom: Atom
    positive: bool = True
    condition: Condition = TRUE
    variables: tuple[Typed, ...] = ()


@dataclass(frozen=True)
class Predicate:
    name: str
    parameters: tuple[Typed, ...] = ()


@dataclass(frozen=True)
class Action:
    name: str
    parameters: tuple[Typed, ...] = ()
    precondition: Condition = TRUE
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True)
class Domain:
    """What can be done."""

    name: str
    requirements: tuple[str, ...] = (":strips",)
    types: tuple[Typed, ...] = ()
    constants: tuple[Typed, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    actions: tuple[Action, ...] = ()

    def supertypes(self) -> dict[str, frozenset[str]]:
        """Type → itself and every type above it."""
        parents = {one.name: one.types for one in self.types}
        found = {OBJECT: frozenset({OBJECT})}
        for name in parents:
            above, todo = {OBJECT}, [name]
            while todo:
                one = todo.pop()
                if one not in above:
                    above.add(one)
                    todo += parents.get(one, ())
            found[name] = frozenset(above)
        return found

    def __str__(self) -> str:
        lines = [f"(define (domain {self.name})", f"  (:requirements {' '.join(self.requirements)})"]
        lines += _section("types", self.types)
        lines += _section("constants", self.constants)
        lines += ["  (:predicates"] if self.predicates else []
        lines += [f"    ({' '.join([one.name, *_typed(one.parameters)])})" for one in self.predicates]
        lines += ["  )"] if self.predicates else []
        for action in self.actions:
            effects = " ".join(map(_effect, action.effects))
            lines += [
                f"  (:action {action.name}",
                f"    :parameters ({' '.join(_typed(action.parameters))})",
                f"    :precondition {condition_pddl(action.precondition)}",
                f"    :effect (and{' ' * bool(effects)}{effects}))",
            ]
        return "\n".join((*lines, ")", ""))


@dataclass(frozen=True)
class Problem:
    """Where it begins, and what is wanted."""

    name: str
    domain: str
    objects: tuple[Typed, ...] = ()
    init: tuple[Atom, ...] = ()
    goal: Condition = TRUE

    def __str__(self) -> str:
        lines = [f"(define (problem {self.name})", f"  (:domain {self.domain})"]
        lines += _section("objects", self.objects)
        lines += ["  (:init", *(f"    {atom}" for atom in self.init), "  )"]
        return "\n".join((*lines, f"  (:goal {condition_pddl(self.goal)})", ")", ""))


def condition_pddl(condition: Condition) -> str:
    """A condition as PDDL."""
    if isinstance(condition, Atom):
        return str(condition)
    parts = [condition_pddl(part) for part in condition.parts]
    variables = [f"({' '.join(_typed(condition.variables))})"] if condition.variables else []
    return f"({' '.join([condition.word, *variables, *parts])})"


def atoms_of(condition: Condition, positive: bool = True) -> Iterator[tuple[Atom, bool]]:
    """The atoms in a condition, each with whether it stands there without a `not`."""
    if isinstance(condition, Atom):
        yield condition, positive
        return
    for part in condition.parts:
        yield from atoms_of(part, positive != (condition.word == "not"))


def _effect(effect: Effect) -> str:
    text = str(effect.atom) if effect.positive else f"(not {effect.atom})"
    if effect.condition != TRUE:
        text = f"(when {condition_pddl(effect.condition)} {text})"
    return f"(forall ({' '.join(_typed(effect.variables))}) {text})" if effect.variables else text


def _section(name: str, items: tuple[Typed, ...]) -> list[str]:
    return [f"  (:{name}", *(f"    {line}" for line in _typed(items)), "  )"] if items else []


def _typed(items: Iterable[Typed]) -> list[str]:
    """Each name with its type, or names alone where all are objects."""
    items = tuple(items)
    if all(item.types == (OBJECT,) for item in items):
        return [item.name for item in items]
    kinds = [item.types[0] if len(item.types) == 1 else f"(either {' '.join(item.types)})" for item in items]
    return [f"{item.name} - {kind}" for item, kind in zip(items, kinds, strict=True)]


_QUANTIFIED = frozenset({":existential-preconditions", ":universal-preconditions"})
_ADL = _QUANTIFIED | {":typing", ":negative-preconditions", ":disjunctive-preconditions", ":equality"}
_IMPLIED = {":adl": _ADL | {":conditional-effects"}, ":quantified-preconditions": _QUANTIFIED}


def unmet_requirements(domain: Domain, goal: Condition = TRUE) -> list[str]:
    """The requirements that the domain, or a goal of it, uses and does not declare."""
    declared = set(domain.requirements)
    for name in domain.requirements:
        declared |= _IMPLIED.get(name, frozenset())
    return [name for name in sorted(set(_used(domain, goal))) if name not in declared]


def _used(domain: Domain, goal: Condition) -> Iterator[str]:
    lists = [domain.constants, *(one.parameters for one in domain.predicates)]
    lists += [action.parameters for action in domain.actions]
    if domain.types or any(one.types != (OBJECT,) for items in lists for one in items):
        yield ":typing"
    for action in domain.actions:
        yield from _needs(action.precondition)
        for effect in action.effects:
            yield from _needs(effect.condition)
            if effect.condition != TRUE or effect.variables:
                yield ":conditional-effects"
    yield from _needs(goal)


def _needs(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Atom):
        if condition.predicate == EQUALS:
            yield ":equality"
        return
    words = {"or": ":disjunctive-preconditions", "not": ":negative-preconditions"}
    words |= {"forall": ":universal-preconditions", "exists": ":existential-preconditions"}
    inner = condition.parts[0] if condition.parts else TRUE
    unequal = condition.word == "not" and isinstance(inner, Atom) and inner.predicate == EQUALS
    if condition.word in words and not unequal:
        yield words[condition.word]
    for part in condition.parts:
        yield from _needs(part)
