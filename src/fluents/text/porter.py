"""Porter's stemmer ("An algorithm for suffix stripping", 1980) with the departures NLTK makes from it by default.

The published evaluator stems with NLTK's code, so its numbers come out with these stems and no others. NLTK itself
would import scipy, and take a second, for this one function; the tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Rules: TypeAlias = Sequence[tuple[str, str]]
"""(suffix, what takes its place): the first suffix that fits decides, whether or not its condition holds."""

_STEMS = ("sky", "news", "inning", "outing", "canning", "howe", "proceed", "exceed", "succeed")
_IRREGULAR = (
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
    if word in _IRREGULAR:
        return _IRREGULAR[word]
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
