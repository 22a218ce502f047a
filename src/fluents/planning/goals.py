"""Goals in words ("soup hot, bowl full") → the states of a trace that they name. What is not understood is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from fluents.errors import InputError
from fluents.text.names import name_words, plain_name

Fluent: TypeAlias = tuple[str, str]
"""An entity and one of its attributes, by their canonical names."""
Fact: TypeAlias = tuple[Fluent, str]
"""A fluent and one of its values."""

_FILLERS = frozenset(
    {"is", "are", "be", "being", "become", "get", "has", "have", "must", "should", "will", "its", "of"}
)
"""Words that a goal may have beside names: a sentence means the same without them. No negation is among them."""
_SEPARATOR = r"[,;.]|\band\b"
MAX_SHOWN = 5


@dataclass(frozen=True)
class _Match:
    """A fact, and the places of its words in a clause."""

    fact: Fact
    places: frozenset[int]


def worded_goal(goal: str, known: Set[Fact], where: str) -> dict[Fluent, str]:
    """The values that a goal names. In each clause, every word must belong to an entity, an attribute or a value.

    A goal that means something else than it seems to would give a plan for something else: so negations, surplus words
    and contradictions are errors.
    """
    wanted: dict[Fluent, str] = {}
    for clause in _clauses(goal, known):
        for fluent, value in _named(clause, known, where) if name_words(clause) else ():
            other = wanted.setdefault(fluent, value)
            if plain_name(other) != plain_name(value):
                entity, attribute = fluent
                raise InputError(
                    f"the goal gives two values for the attribute {attribute!r} of {entity!r}: {other!r} and {value!r}",
                    where=where,
                    fix="give only one of them in `goal`",
                )
    if not wanted:
        raise InputError("the goal names no state", where=where, fix=_fix(goal, known))
    return wanted


def _clauses(goal: str, known: Set[Fact]) -> Iterator[str]:
    """The parts between commas, full stops and "and", except where these belong to a name ("salt and pepper")."""
    names = {name.strip(" ,;.") for (entity, attribute), value in known for name in (entity, attribute, value)}
    longest_first = sorted(filter(re.compile(_SEPARATOR).search, names), key=len, reverse=True)
    whole = "|".join(map(re.escape, longest_first)) or "(?!)"
    start = 0
    for match in re.finditer(rf"(?<!\w)({whole})(?!\w)|{_SEPARATOR}", goal, re.IGNORECASE):
        if match[1] is None:
            yield goal[start : match.start()]
            start = match.end()
    yield goal[start:]


def _named(clause: str, known: Set[Fact], where: str) -> Sequence[Fact]:
    """The facts that a clause names; of "pot full of rainwater" not also that the pot is full."""
    words = name_words(clause)
    found = list(_matches(words, known))
    if not found:
        raise InputError(f"no state in the trace matches {clause.strip()!r}", where=where, fix=_fix(clause, known))
    found = [one for one in found if not any(one.places < other.places for other in found)]
    covered = frozenset().union(*(one.places for one in found))
    surplus = [word for place, word in enumerate(words) if place not in covered and word not in _FILLERS]
    if surplus:
        raise InputError(
            f"in the goal {clause.strip()!r}, nothing in the trace matches: {', '.join(surplus)}",
            where=where,
            fix=f"{_fix(clause, known)}. A goal cannot be negated: name the state that you want instead",
        )
    return [one.fact for one in found]


def _matches(words: Sequence[str], known: Set[Fact]) -> Iterator[_Match]:
    """Facts whose entity and value both stand in the words, in an order that does not depend on the set's."""
    for (entity, attribute), value in sorted(known):
        subject, state = _places(words, entity), _places(words, value)
        if subject and state:
            yield _Match(((entity, attribute), value), subject | state | _places(words, attribute))


def _places(words: Sequence[str], name: str) -> frozenset[int]:
    """Where the words of a name stand in a row."""
    wanted = name_words(name)
    size = len(wanted)
    starts = [start for start in range(len(words)) if wanted and tuple(words[start : start + size]) == wanted]
    return frozenset(place for start in starts for place in range(start, start + size))


def _fix(clause: str, known: Set[Fact]) -> str:
    near = sorted(known, key=lambda one: (-_shared(clause, one), one))
    shown = list(dict.fromkeys(f"{entity} {value}" for (entity, _), value in near))[:MAX_SHOWN]
    return f"set `goal` to an entity and one of its states, such as: {'; '.join(shown)}"


def _shared(clause: str, fact: Fact) -> int:
    (entity, attribute), value = fact
    return len(set(name_words(clause)) & set(name_words(f"{entity} {attribute} {value}")))
