"""Domains and problems that are valid: what the reader must not touch, and planners must agree on."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from hypothesis import strategies as st

from fluents.planning.model import (
    OBJECT,
    TRUE,
    Action,
    Atom,
    Condition,
    Connective,
    Domain,
    Effect,
    Predicate,
    Problem,
    Typed,
    Word,
    unmet_requirements,
)

TYPES = (Typed("thing"), Typed("cup", ("thing",)), Typed("place"))
KINDS = ("thing", "cup", "place", OBJECT)
OBJECTS = (Typed("red", ("cup",)), Typed("blue", ("cup",)), Typed("stone", ("thing",)), Typed("home", ("place",)))
BELOW = {"thing": ("red", "blue", "stone"), "cup": ("red", "blue"), "place": ("home",)}
BELOW[OBJECT] = tuple(one.name for one in OBJECTS)


@st.composite
def tasks(draw: st.DrawFn, *, simple: bool = False) -> tuple[Domain, Problem]:
    """A small domain with a problem of it; `simple`: conjunctions of literals only, as every planner takes them."""
    predicates = tuple(
        Predicate(f"p{number}", tuple(Typed(f"?x{place}", (kind,)) for place, kind in enumerate(kinds)))
        for number, kinds in enumerate(
            draw(st.lists(st.lists(st.sampled_from(KINDS), max_size=2), min_size=1, max_size=4))
        )
    )
    actions = []
    for number in range(draw(st.integers(1, 4))):
        variables: dict[str, str] = {}
        precondition = draw(_conditions(predicates, variables, 0 if simple else 2))
        effects = draw(st.lists(_effects(predicates, variables, simple), min_size=1, max_size=3))
        parameters = tuple(Typed(name, (kind,)) for name, kind in variables.items())
        actions.append(Action(f"act-{number}", parameters, precondition, tuple(effects)))
    domain = Domain("made", (":strips",), TYPES, (), predicates, tuple(actions))
    init = draw(st.lists(_facts(predicates), max_size=4, unique=True))
    goal = Connective("and", tuple(draw(st.lists(_facts(predicates), min_size=1, max_size=2, unique=True))))
    missing = tuple(unmet_requirements(domain, goal))
    problem = Problem("made-up", "made", OBJECTS, tuple(init), goal)
    return replace(domain, requirements=(":strips", *missing)), problem


@st.composite
def _facts(draw: st.DrawFn, predicates: tuple[Predicate, ...]) -> Atom:
    predicate = draw(st.sampled_from(predicates))
    return Atom(predicate.name, tuple(draw(st.sampled_from(BELOW[slot.types[0]])) for slot in predicate.parameters))


@st.composite
def _atoms(draw: st.DrawFn, predicates: tuple[Predicate, ...], variables: dict[str, str]) -> Atom:
    predicate = draw(st.sampled_from(predicates))
    arguments = []
    for slot in predicate.parameters:
        name = f"?{slot.types[0]}{draw(st.integers(0, 1))}"
        variables[name] = slot.types[0]
        arguments.append(name)
    return Atom(predicate.name, tuple(arguments))


@st.composite
def _conditions(draw: st.DrawFn, predicates: tuple[Predicate, ...], variables: dict[str, str], depth: int) -> Condition:
    word: Word = draw(st.sampled_from(get_args(Word))) if depth else "and"
    parts: list[Condition] = []
    for _ in range(draw(st.integers(0, 2)) if word in ("and", "or") else 1):
        inner = _conditions(predicates, variables, depth - 1) if depth else _literals(predicates, variables)
        parts.append(draw(inner))
    if word in ("forall", "exists"):
        bound = {name: kind for name, kind in variables.items() if name.endswith("0")} or {"?v": OBJECT}
        return Connective(word, tuple(parts), tuple(Typed(name, (kind,)) for name, kind in bound.items()))
    return Connective(word, tuple(parts))


@st.composite
def _literals(draw: st.DrawFn, predicates: tuple[Predicate, ...], variables: dict[str, str]) -> Condition:
    atom = draw(_atoms(predicates, variables))
    return atom if draw(st.booleans()) else Connective("not", (atom,))


@st.composite
def _effects(draw: st.DrawFn, predicates: tuple[Predicate, ...], variables: dict[str, str], simple: bool) -> Effect:
    atom = draw(_atoms(predicates, variables))
    condition = TRUE if simple or draw(st.booleans()) else draw(_conditions(predicates, variables, 1))
    bound = () if simple or draw(st.booleans()) else (Typed("?w", ("cup",)),)
    return Effect(atom, draw(st.booleans()), condition, bound)
