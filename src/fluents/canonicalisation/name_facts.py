"""What a trace says under each name: the evidence by which names are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from fluents.records import StateChange
from fluents.text.names import fold, name_parts

Field: TypeAlias = Literal["entity", "attribute"]


class Fact(NamedTuple):
    """One change, as evidence: equal facts under two names speak for one thing."""

    step: int
    before: str
    after: str


@dataclass(frozen=True)
class NameGroup:
    """Names that surely mean one thing, and what the trace says under them."""

    names: tuple[str, ...]
    """The one to call it by comes first."""
    facts: frozenset[Fact] = frozenset()

    @property
    def name(self) -> str:
        return self.names[0]


def names_in(changes: Iterable[StateChange], field: Field) -> list[NameGroup]:
    """Every name the changes have in a field; names of the same words, or given as wordings of one change, as one.

    What comes out does not depend on the order of the changes.
    """
    facts: dict[str, set[Fact]] = {}
    times: Counter[str] = Counter()
    together: list[tuple[str, ...]] = []
    for change in changes:
        fact = fact_of(change)
        wordings = wordings_of(change, field)
        together.append(wordings)
        for wording in wordings:
            facts.setdefault(wording, set()).add(fact)
            times[wording] += 1
    return group_names(facts, times, together)


def fact_of(change: StateChange) -> Fact:
    return Fact(change.step, fold(change.before), fold(change.after))


def group_names(
    facts: Mapping[str, Collection[Fact]], times: Mapping[str, int], together: Iterable[Sequence[str]] = ()
) -> list[NameGroup]:
    """Names with their facts, those of the same words as one, and those that stand together likewise."""
    ordered = best_first(facts, times)
    by_words: dict[Hashable, list[str]] = {}
    for name in ordered:
        by_words.setdefault(name_parts(name).words or fold(name), []).append(name)
    leader = _leaders(ordered, [*by_words.values(), *together])
    groups: dict[str, list[str]] = {}
    for name in ordered:
        groups.setdefault(leader[name], []).append(name)
    found = [
        NameGroup(tuple(names), frozenset(fact for name in names for fact in facts[name])) for names in groups.values()
    ]
    return sorted(found, key=lambda one: one.names)


def best_first(names: Iterable[str], times: Mapping[str, int]) -> list[str]:
    """The name said most often first; then the shorter; then by the alphabet."""
    return sorted(names, key=lambda name: (-times.get(name, 0), len(name), name))


def wordings_of(change: StateChange, field: Field) -> tuple[str, ...]:
    """The field of a change, and its other wordings that say something."""
    others = change.alternatives.entity if field == "entity" else change.alternatives.attribute
    word = change.entity if field == "entity" else change.attribute
    return tuple(dict.fromkeys((word, *(other for other in others if other.strip()))))


def _leaders(names: Sequence[str], groups: Iterable[Sequence[str]]) -> dict[str, str]:
    """One name for all that are joined by any chain of groups (union-find)."""
    above = {name: name for name in names}

    def top(name: str) -> str:
        while above[name] != name:
            above[name] = above[above[name]]
            name = above[name]
        return name

    for first, *others in groups:
        for other in others:
            above[top(other)] = top(first)
    return {name: top(name) for name in names}
