"""A domain and a problem in the making: what is used and not declared gets declared, and uses are made to fit.

Every repair is noted at the symbol that needed it. All passes are linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, product
from typing import NoReturn, TypeAlias

from fluents.planning.expressions import Symbol
from fluents.planning.model import (
    EQUALS,
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
    unmet_requirements,
)

Types: TypeAlias = tuple[str, ...]
Scope: TypeAlias = Mapping[str, Types]
"""Name → its types."""

MAX_TYPES = 1_000
MAX_WAYS = 200
"""Ways to complete an atom that are looked at: where there are more, the intent is not plain."""


def repair(name: str, message: str) -> None:
    """Note what was changed at a name."""
    if isinstance(name, Symbol):
        name.text.repair(name.offset, message)


def fail(name: str, message: str) -> NoReturn:
    if isinstance(name, Symbol):
        name.text.fail(name.offset, message)
    raise AssertionError(message)


def renamed(name: str, new: str) -> str:
    """Another name, at the same place."""
    return name.text.symbol(new, name.offset) if isinstance(name, Symbol) else new


@dataclass
class ActionDraft:
    """An action to which variables may still be added."""

    name: str
    parameters: dict[str, Types] = field(default_factory=dict)
    precondition: Condition = TRUE
    effects: list[Effect] = field(default_factory=list)


@dataclass(frozen=True)
class _Use:
    """An atom where it stands: the quantified variables around it, and its action; none in a problem."""

    atom: Atom
    inner: Scope
    action: ActionDraft | None

    def scope(self, name: str) -> Types | None:
        return self.inner.get(name) or (self.action.parameters.get(name) if self.action else None)


@dataclass
class PddlDraft:
    """What the reader fills and `complete` makes valid."""

    name: str = "domain"
    requirements: list[str] = field(default_factory=list)
    types: dict[str, Types] = field(default_factory=dict)
    constants: dict[str, Types] = field(default_factory=dict)
    predicates: dict[str, list[Typed]] = field(default_factory=dict)
    actions: dict[str, ActionDraft] = field(default_factory=dict)
    problem_name: str = "problem"
    objects: dict[str, Types] = field(default_factory=dict)
    init: dict[Atom, None] = field(default_factory=dict)
    goal: Condition = TRUE
    changed: set[str] = field(default_factory=set)
    """Predicates whose declaration was dropped, to be made anew from their uses."""

    def domain(self) -> Domain:
        return Domain(
            self.name,
            tuple(dict.fromkeys(self.requirements)),
            _typed(self.types),
            _typed(self.constants),
            tuple(Predicate(name, tuple(slots)) for name, slots in self.predicates.items()),
            tuple(
                Action(name, _typed(one.parameters), one.precondition, tuple(one.effects))
                for name, one in self.actions.items()
            ),
        )

    def problem(self) -> Problem:
        return Problem(self.problem_name, self.name, _typed(self.objects), tuple(self.init), self.goal)

    def complete(self) -> None:
        """Declare what is used and not declared, and make uses fit declarations."""
        self._complete_types()
        self._above = self.domain().supertypes()
        self._settle_predicates()
        self._best = self._best_types()
        self._declare_variables()
        self._declare_names()
        self._declare_predicates()
        self._widen()
        missing = unmet_requirements(self.domain(), self.goal)
        if missing:
            repair(self.name, f"{', '.join(missing)} is used but not required: added to :requirements")
            self.requirements += missing

    def _complete_types(self) -> None:
        lists: list[Iterable[Types]] = [self.types.values(), self.constants.values(), self.objects.values()]
        lists += [[slot.types for slot in slots] for slots in self.predicates.values()]
        lists += [one.parameters.values() for one in self.actions.values()]
        lists += [[one.types for one in variables] for variables in self._quantified()]
        for name in [name for types in lists for one in types for name in one]:
            if name != OBJECT and name not in self.types:
                self.types[name] = (OBJECT,)
                repair(name, f"type {name} is not declared: added")
        for name in self.types:
            if len(self.types) > MAX_TYPES:
                fail(name, f"more than {MAX_TYPES:,} types are not supported")
            todo, seen = list(self.types[name]), set()
            while todo:
                one = todo.pop()
                if one == name:
                    repair(name, f"type {name} is its own supertype: made a subtype of object")
                    self.types[name] = (OBJECT,)
                    break
                if one not in seen:
                    seen.add(one)
                    todo += self.types.get(one, ())

    def _quantified(self) -> Iterator[tuple[Typed, ...]]:
        for one in self.actions.values():
            yield from _variables_of(one.precondition)
            for effect in one.effects:
                yield effect.variables
                yield from _variables_of(effect.condition)
        yield from _variables_of(self.goal)

    def _uses(self) -> list[_Use]:
        """Every atom that is used."""
        found: list[_Use] = []
        for one in self.actions.values():
            found += (_Use(atom, inner, one) for atom, inner in _scoped(one.precondition, {}))
            for effect in one.effects:
                around = {variable.name: variable.types for variable in effect.variables}
                found.append(_Use(effect.atom, around, one))
                found += (_Use(atom, inner, one) for atom, inner in _scoped(effect.condition, around))
        found += (_Use(atom, {}, None) for atom in self.init)
        found += (_Use(atom, inner, None) for atom, inner in _scoped(self.goal, {}))
        return found

    def _rewrite(self, changes: Sequence[tuple[_Use, Atom]]) -> None:
        """Put other atoms in the place of some."""
        by_action: dict[int, dict[Atom, Atom]] = defaultdict(dict)
        for use, new in changes:
            by_action[id(use.action)][use.atom] = new
        for one in self.actions.values():
            if mine := by_action.get(id(one)):
                one.precondition = _replaced(one.precondition, mine)
                one.effects = [
                    Effect(mine.get(e.atom, e.atom), e.positive, _replaced(e.condition, mine), e.variables)
                    for e in one.effects
                ]
        mine = by_action[id(None)]
        self.init = {mine.get(atom, atom): None for atom in self.init}
        self.goal = _replaced(self.goal, mine)

    def _settle_predicates(self) -> None:
        """Names that are meant, and numbers of arguments."""
        uses = self._uses()
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for use in uses:
            counts[use.atom.predicate][len(use.atom.arguments)] += 1
        alike = {_bare(name): name for name in self.predicates}
        changes: list[tuple[_Use, Atom]] = []
        for use in uses:
            name, count = use.atom.predicate, len(use.atom.arguments)
            declared = self.predicates.get(name)
            if name == EQUALS:
                if count != 2:
                    fail(name, f"= takes two arguments, not {count}")
            elif declared is None and name not in self.changed:
                near = alike.get(_bare(name), "")
                if near and len(self.predicates.get(near, ())) == count:
                    repair(name, f"predicate {name} is not declared: read as {near}")
                    changes.append((use, Atom(renamed(name, near), use.atom.arguments)))
            elif declared is not None and len(declared) != count:
                wrong = f"{name} is declared with {_arguments(len(declared))}, but used with {count}"
                if len(counts[name]) == 1:
                    repair(name, f"{wrong}: declaration changed")
                    del self.predicates[name]
                    self.changed.add(name)
                    continue
                new = self._completed(use, declared, uses)
                repair(name, f"{wrong}: {use.atom} is read as {new}")
                changes.append((use, new))
        self._rewrite(changes)

    def _completed(self, use: _Use, slots: Sequence[Typed], uses: Sequence[_Use]) -> Atom:
        """The only way to give an atom as many arguments as it should have, in their order and with types that fit.

        Where there are several, one that the same action speaks of elsewhere; else a predicate of its own.
        """
        given, count = use.atom.arguments, len(slots)
        known = {**self.constants, **self.objects, **(use.action.parameters if use.action else {}), **use.inner}
        ways: Iterable[Sequence[str]] = combinations(given, count)
        if len(given) < count:
            here = use.action.parameters if use.action else known
            others = [name for name in here if name not in given]
            ways = (
                _merged(given, places, fillers, count)
                for places in combinations(range(count), count - len(given))
                for fillers in product(others, repeat=count - len(given))
            )
        fitting = {
            Atom(use.atom.predicate, tuple(way))
            for way in islice(ways, MAX_WAYS)
            if all(self._fits(known.get(one, (OBJECT,)), slot.types) for one, slot in zip(way, slots, strict=True))
        }
        if len(fitting) > 1:
            fitting &= {other.atom for other in uses if other.action is use.action}
        own = renamed(use.atom.predicate, f"{use.atom.predicate}-{len(given)}")
        return fitting.pop() if len(fitting) == 1 else Atom(own, given)

    def _best_types(self) -> dict[tuple[int, str], str]:
        """(action, name) → the most specific type of the places where the name stands; action 0: everywhere."""
        best: dict[tuple[int, str], str] = {}
        for use in self._uses():
            for name, slot in zip(use.atom.arguments, self.predicates.get(use.atom.predicate, ()), strict=False):
                for owner in (0, id(use.action)):
                    if len(slot.types) == 1 and best.get((owner, name), OBJECT) in self._above[slot.types[0]]:
                        best[owner, name] = slot.types[0]
        return best

    def _fitting(self, name: str, action: ActionDraft | None) -> Types:
        """The type of the same name, or else what the places take where the name stands."""
        same = name.lstrip("?")
        return (same if same in self.types else self._best.get((id(action) if action else 0, name), OBJECT),)

    def _declare_variables(self) -> None:
        changes: list[tuple[_Use, Atom]] = []
        for use in self._uses():
            arguments = list(use.atom.arguments)
            for place, name in enumerate(arguments):
                if name[0] != "?":
                    is_object = name in self.constants or (use.action is None and name in self.objects)
                    if use.scope(f"?{name}") and not is_object:
                        repair(name, f"{name} has no question mark: read as ?{name}")
                        arguments[place] = renamed(name, f"?{name}")
                elif use.scope(name):
                    continue
                elif use.action is None:
                    arguments[place] = self._only_fit(name, use.atom, place)
                else:
                    use.action.parameters[name] = self._fitting(name, use.action)
                    repair(name, f"{name} is not a parameter of {use.action.name}: added")
            if tuple(arguments) != use.atom.arguments:
                changes.append((use, Atom(use.atom.predicate, tuple(arguments))))
        self._rewrite(changes)

    def _only_fit(self, name: str, atom: Atom, place: int) -> str:
        """The one object that can be meant by a variable in a problem."""
        slots = self.predicates.get(atom.predicate, ())
        known = (self.constants | self.objects).items()
        fits = [one for one, types in known if slots and self._fits(types, slots[place].types)]
        if len(fits) != 1:
            fail(name, f"the variable {name} is used outside an action: write an object instead")
        repair(name, f"variable {name} outside an action: read as {fits[0]}, the only object that fits")
        return renamed(name, fits[0])

    def _declare_names(self) -> None:
        for use in self._uses():
            for name in use.atom.arguments:
                if name[0] == "?" or name in self.constants:
                    continue
                if use.action is not None:
                    self.constants[name] = self.objects.get(name) or self._fitting(name, None)
                    repair(name, f"{name} is not declared in the domain: added as a constant")
                elif name not in self.objects:
                    self.objects[name] = self._fitting(name, None)
                    repair(name, f"object {name} is not declared: added with type {self.objects[name][0]}")
        for name in [name for name in self.objects if name in self.constants]:
            repair(name, f"object {name} is already a constant of the domain: ignored")
            del self.objects[name]

    def _declare_predicates(self) -> None:
        added: set[str] = set()
        for use in self._uses():
            name = use.atom.predicate
            if name == EQUALS or (name in self.predicates and name not in added):
                continue
            types = [self._types_of(use, argument) for argument in use.atom.arguments]
            if name not in self.predicates:
                added.add(name)
                if name not in self.changed:
                    repair(name, f"predicate {name} is not declared: added")
                self.predicates[name] = [Typed(f"?x{place}", one) for place, one in enumerate(types, start=1)]
            elif len(types) != len(self.predicates[name]):
                fail(name, f"{name} is used with different numbers of arguments: declare it in :predicates")
            else:
                slots = self.predicates[name]
                slots[:] = [Typed(slot.name, self._common(slot.types, t)) for slot, t in zip(slots, types, strict=True)]

    def _widen(self) -> None:
        """A declaration that is narrower than a use says nothing that matters: it grows."""
        for use in self._uses():
            slots = self.predicates.get(use.atom.predicate, [])
            for place, (name, slot) in enumerate(zip(use.atom.arguments, slots, strict=False)):
                types = self._types_of(use, name)
                if not self._fits(types, slot.types):
                    slots[place] = Typed(slot.name, self._common(slot.types, types))
                    taken, now = " or ".join(slot.types), " or ".join(slots[place].types)
                    is_ = " or ".join(types)
                    found = f"{name} has type {is_}, but {use.atom.predicate} takes {taken}"
                    repair(name, f"{found}: {use.atom.predicate} changed to take {now}")

    def _types_of(self, use: _Use, name: str) -> Types:
        return use.scope(name) or self.constants.get(name) or self.objects.get(name) or (OBJECT,)

    def _fits(self, types: Types, slot: Types) -> bool:
        return all(any(wanted in self._above[one] for wanted in slot) for one in types)

    def _common(self, one: Types, other: Types) -> Types:
        """The most specific type above all of these."""
        if self._fits(other, one):
            return one
        shared = frozenset.intersection(*(self._above[name] for name in (*one, *other)))
        return (max(shared, key=lambda name: (len(self._above[name]), name)),)


def _typed(items: Scope) -> tuple[Typed, ...]:
    return tuple(Typed(name, types) for name, types in items.items())


def _arguments(count: int) -> str:
    return f"{count} argument{'s' * (count != 1)}"


def _bare(name: str) -> str:
    return re.sub("[-_]", "", name)


def _merged(given: Sequence[str], places: Sequence[int], fillers: Sequence[str], count: int) -> list[str]:
    rest, filled = iter(given), dict(zip(places, fillers, strict=True))
    return [filled[place] if place in filled else next(rest) for place in range(count)]


def _variables_of(condition: Condition) -> Iterator[tuple[Typed, ...]]:
    if isinstance(condition, Connective):
        yield condition.variables
        for part in condition.parts:
            yield from _variables_of(part)


def _scoped(condition: Condition, around: Scope) -> Iterator[tuple[Atom, Scope]]:
    if isinstance(condition, Atom):
        yield condition, around
        return
    inner = {**around, **{one.name: one.types for one in condition.variables}} if condition.variables else around
    for part in condition.parts:
        yield from _scoped(part, inner)


def _replaced(condition: Condition, change: Mapping[Atom, Atom]) -> Condition:
    if isinstance(condition, Atom):
        return change.get(condition, condition)
    return Connective(condition.word, tuple(_replaced(part, change) for part in condition.parts), condition.variables)
