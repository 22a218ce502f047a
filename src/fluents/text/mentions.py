"""Whether the text has named an entity: as a span of its words, in this step or an earlier one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from fluents.records import Procedure

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_ARTICLES = frozenset({"a", "an", "the"})


def mentioned(procedure: Procedure, step: int, entity: str) -> bool:
    """Whether the entity's words stand in a row in one of the steps 1 to `step`.

    Case, articles and the ends of regular plurals do not count; words are whole ("pan" is not in "company").
    """
    return any(named_in(text, entity) for text in procedure.steps[: max(0, step)])


def named_in(text: str, entity: str) -> bool:
    """Whether the entity's words stand in a row in a text, by the same rule."""
    wanted = name_words(entity)
    return bool(wanted) and _contains(name_words(text), wanted)


@lru_cache(maxsize=4096)
def name_words(text: str) -> tuple[str, ...]:
    """The words of a name as they are compared: case, articles and regular plurals do not count."""
    found = (match.group().casefold().replace("’", "'") for match in _WORD.finditer(text))
    return tuple(_singular(word.removesuffix("'s")) for word in found if word not in _ARTICLES)


def _singular(word: str) -> str:
    """One form for a regular noun and its plural; not always a word, but the same for both."""
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes", "oes")):
        return word[:-2]
    return word[:-1]


def _contains(words: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(words[start : start + len(wanted)] == wanted for start in _starts(words, wanted[0]))


def _starts(words: Sequence[str], first: str) -> Iterator[int]:
    return (place for place, word in enumerate(words) if word == first)
