"""The parts of a name: its words in their basic form, and the word the others belong to."""

from __future__ import annotations

from typing import NamedTuple

from fluents.mentions import name_words

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
