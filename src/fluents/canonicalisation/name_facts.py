"""What a trace says under each name: the ground on which names are held against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from fluents.records import StateChange
from fluents.text.mentions import name_words

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


def named(changes: Iterable[StateChange], field: Field) -> list[NameGroup]:
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
    return folded(facts, times, together)


def fact_of(change: StateChange) -> Fact:
    return Fact(change.step, squashed(change.before), squashed(change.after))


def folded(
    facts: Mapping[str, Collection[Fact]], times: Mapping[str, int], together: Iterable[Sequence[str]] = ()
) -> list[NameGroup]:
    """Names with their facts, those of the same words as one, and those that stand together likewise."""
    ordered = best_first(facts, times)
    by_words: dict[Hashable, list[str]] = {}
    for name in ordered:
        by_words.setdefault(parts_of(name).words or squashed(name), []).append(name)
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


def squashed(text: str) -> str:
    """As compared: lower case, white space in order."""
    return " ".join(text.casefold().split())


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


_EMPTY = frozenset(
    {"my", "your", "his", "her", "its", "our", "their", "this", "that", "these", "those"}
    | {"some", "any", "each", "every", "both", "all", "one", "two", "three", "several"}
)
"""Words that point at a thing and say nothing of it."""

_BEFORE_A_PLACE = frozenset(
    {"of", "in", "on", "at", "from", "with", "for", "to", "by", "inside", "under", "over", "into", "onto", "near"}
)
"""What follows one of these says more about the word before it: the *tip* of a pipe."""

_IRREGULAR = {
    "feet": "foot",
    "teeth": "tooth",
    "geese": "goose",
    "mice": "mouse",
    "men": "man",
    "women": "woman",
    "children": "child",
    "people": "person",
    "leaves": "leaf",
    "knives": "knife",
    "halves": "half",
    "loaves": "loaf",
    "shelves": "shelf",
    "wives": "wife",
    "lives": "life",
    "dice": "die",
}
_IRREGULAR |= {plural[:-1]: singular for plural, singular in _IRREGULAR.items() if plural.endswith("s")}
# `name_words` has taken the plural's s already: "leaves" comes as "leave"


class Parts(NamedTuple):
    """A name taken apart."""

    words: tuple[str, ...]
    """Without articles and pointing words, each in its basic form."""
    head: str
    """The word that says what kind of thing it is; empty for a name without words."""


def parts_of(name: str) -> Parts:
    """Take a name apart. A name of nothing but pointing words keeps them."""
    plain = tuple(_IRREGULAR.get(word, word) for word in name_words(name))
    words = tuple(word for word in plain if word not in _EMPTY) or plain
    return Parts(words, _head(words))


def _head(words: tuple[str, ...]) -> str:
    """English puts it last, or before the first preposition."""
    for place, word in enumerate(words):
        if word in _BEFORE_A_PLACE and place > 0:
            return words[place - 1]
    return words[-1] if words else ""
