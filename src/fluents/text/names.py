"""Names and words as they are compared: the one place where wordings are normalised.

From the least change to the most: `one_line` keeps all but white space, `fold` drops case, `plain_name` articles and
plurals too, `bare_name` pointing words and irregular plurals as well. `porter_stem` is for single words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from fluents.records import Procedure

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_ARTICLES = frozenset({"a", "an", "the"})


def one_line(text: str) -> str:
    """A text on one line, with single spaces: it cannot forge the lines of a prompt around it."""
    return " ".join(text.split())


def fold(text: str) -> str:
    """A text without case, on one line."""
    return " ".join(text.casefold().split())


def counted(count: int, noun: str) -> str:
    """ "no steps", "1 entity", "2,000 changes"."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count:,} {noun if count == 1 else plural}" if count else f"no {plural}"


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


# Porter's stemmer ("An algorithm for suffix stripping", 1980) with the departures NLTK makes from it by default. The
# published evaluator stems with NLTK's code, so its numbers come out with these stems and no others. NLTK itself would
# import scipy, and take a second, for this one function; the tests hold the two against each other.

Rules: TypeAlias = Sequence[tuple[str, str]]
"""(suffix, what takes its place): the first suffix that fits decides, whether or not its condition holds."""

_STEMS = ("sky", "news", "inning", "outing", "canning", "howe", "proceed", "exceed", "succeed")
_IRREGULAR_STEMS = (
    {stem: stem for stem in _STEMS}
    | {"skies": "sky", "dying": "die", "lying": "lie", "tying": "tie"}
    | {"innings": "inning", "outings": "outing", "cannings": "canning"}
)

_STEP_2: Rules = [
    *[("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")],
    *[("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")],
    *[("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al")],
    *[("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful")],
]
_STEP_3: Rules = [
    *[("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")]
]
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize"),
)


def porter_stem(word: str) -> str:
    """The stem of a lower-case word."""
    if word in _IRREGULAR_STEMS:
        return _IRREGULAR_STEMS[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _past, _final_y, _double_suffix, _suffix, _residue, _final_e, _final_ll):
        word = step(word)
    return word


def _shape(word: str) -> str:
    """Vowels and consonants as "v" and "c": a y after a consonant is a vowel."""
    shape = ""
    for letter in word:
        shape += "v" if letter in "aeiou" or (letter == "y" and shape[-1:] == "c") else "c"
    return shape


def _measure(stem: str) -> int:
    """Porter's m: how many times a consonant follows a vowel."""
    return _shape(stem).count("vc")


def _short(word: str) -> bool:
    """Porter's *o, ends consonant, vowel, consonant but not w, x or y; with NLTK a vowel and a consonant alone too."""
    shape = _shape(word)
    return shape == "vc" or (shape.endswith("cvc") and word[-1] not in "wxy")


def _replaced(word: str, rules: Rules) -> str:
    for suffix, replacement in rules:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            return stem + replacement if _measure(stem) > 0 else word
    return word


def _plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    """Step 1b."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        stem = word[: -len(suffix)]
        if word.endswith(suffix) and "v" in _shape(stem):
            return _restored(stem)
    return word


def _restored(stem: str) -> str:
    """What is left without -ed or -ing gets back its e, or loses a doubled letter."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if stem[-1:] == stem[-2:-1] and _shape(stem).endswith("c"):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _short(stem) else stem


def _final_y(word: str) -> str:
    """Step 1c."""
    ends_in_y = len(word) > 2 and word.endswith("y") and _shape(word[:-1]).endswith("c")
    return word[:-1] + "i" if ends_in_y else word


def _double_suffix(word: str) -> str:
    """Step 2."""
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _double_suffix(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replaced(word, _STEP_2)


def _suffix(word: str) -> str:
    """Step 3."""
    return _replaced(word, _STEP_3)


def _residue(word: str) -> str:
    """Step 4."""
    suffix = next((suffix for suffix in _STEP_4 if word.endswith(suffix)), "")
    stem = word[: len(word) - len(suffix)]
    if _measure(stem) < 2 or (suffix == "ion" and stem[-1] not in "st"):
        return word
    return stem


def _final_e(word: str) -> str:
    """Step 5a."""
    stem = word[:-1]
    measure = _measure(stem) if word.endswith("e") else 0
    return stem if measure > 1 or (measure == 1 and not _short(stem)) else word


def _final_ll(word: str) -> str:
    """Step 5b."""
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
