"""Names as they are compared: the one place where wordings are normalised.

From the least change to the most: `one_line` keeps all but white space, `fold` drops case, `plain_name` articles and
plurals too, `bare_name` pointing words and irregular plurals as well.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from fluents.records import Procedure

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_ARTICLES = frozenset({"a", "an", "the"})


def one_line(text: str) -> str:
    """A text on one line, with single spaces: it cannot forge the lines of a prompt around it."""
    return " ".join(text.split())


def fold(text: str) -> str:
    """A text without case, on one line."""
    return " ".join(text.casefold().split())


def plain_name(name: str) -> str:
    """A name or state as it is compared; what has no words ("+") stands for itself."""
    return " ".join(name_words(name)) or name.strip().casefold()


def bare_name(name: str) -> str:
    """A name without case, articles, pointing words and plurals; what has no words stands for itself."""
    return " ".join(name_parts(name).words) or fold(name)


@lru_cache(maxsize=4096)
def name_words(text: str) -> tuple[str, ...]:
    """The words of a name as they are compared: case, articles and regular plurals do not count."""
    found = (match.group().casefold().replace("’", "'") for match in WORD.finditer(text))
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


_POINTING = frozenset(
    {"my", "your", "his", "her", "its", "our", "their", "this", "that", "these", "those"}
    | {"some", "any", "each", "every", "both", "all", "one", "two", "three", "several"}
)
"""Words that point at a thing and say nothing of it."""

_BEFORE_A_PLACE = frozenset(
    {"of", "in", "on", "at", "from", "with", "for", "to", "by", "inside", "under", "over", "into", "onto", "near"}
)
"""What follows one of these says more about the word before it: the *tip* of a pipe."""

_IRREGULAR = (
    {"feet": "foot", "teeth": "tooth", "geese": "goose", "mice": "mouse", "dice": "die"}
    | {"men": "man", "women": "woman", "children": "child", "people": "person"}
    | {"leave": "leaf", "knive": "knife", "halve": "half", "loave": "loaf", "shelve": "shelf", "wive": "wife"}
    | {"live": "life"}
)
"""Plurals as `name_words` gives them, which has taken a plural's s already: "leaves" comes as "leave"."""


class NameParts(NamedTuple):
    """A name taken apart."""

    words: tuple[str, ...]
    """Without articles and pointing words, each in its basic form."""
    head: str
    """The word that says what kind of thing it is; empty for a name without words."""


def name_parts(name: str) -> NameParts:
    """Take a name apart. A name of nothing but pointing words keeps them."""
    plain = tuple(_IRREGULAR.get(word, word) for word in name_words(name))
    words = tuple(word for word in plain if word not in _POINTING) or plain
    return NameParts(words, _head(words))


def _head(words: tuple[str, ...]) -> str:
    """English puts it last, or before the first preposition."""
    for place, word in enumerate(words):
        if word in _BEFORE_A_PLACE and place > 0:
            return words[place - 1]
    return words[-1] if words else ""


def mentioned(procedure: Procedure, step: int, entity: str) -> bool:
    """Whether the entity's words stand in a row in one of the steps 1 to `step`.

    Case, articles and the ends of regular plurals do not count; words are whole ("pan" is not in "company").
    """
    return any(named_in(text, entity) for text in procedure.steps[: max(0, step)])


def named_in(text: str, entity: str) -> bool:
    """Whether the entity's words stand in a row in a text, by the same rule."""
    wanted, words = name_words(entity), name_words(text)
    starts = (place for place, word in enumerate(words) if word == wanted[0])
    return bool(wanted) and any(words[start : start + len(wanted)] == wanted for start in starts)
