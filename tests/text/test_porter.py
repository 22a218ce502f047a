"""Stems, against NLTK's: the published evaluator's numbers depend on them."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from fluents.text.porter import _STEP_2, _STEP_3, _STEP_4, porter_stem

NLTK = PorterStemmer()


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("dishes", "dish"),
        ("kneading", "knead"),
        ("chopped", "chop"),
        ("filling", "fill"),
        ("sized", "size"),
        ("sky", "sky"),
        ("enjoy", "enjoy"),
        ("ties", "tie"),
        ("dried", "dri"),
        ("as", "as"),
        ("s", "s"),
        ("", ""),
    ],
)
def test_stems_by_hand(word: str, stem: str) -> None:
    assert porter_stem(word) == stem


beginnings = st.text("aeiouybcdlmnrstwxz1é", max_size=6)
endings = st.sampled_from(
    ["", "s", "ies", "sses", "ss", "ied", "eed", "ed", "ing", "y", "e", "ll", "logi", "alli", "at", "bl", "iz"]
    + [suffix for suffix, _ in (*_STEP_2, *_STEP_3)]
    + list(_STEP_4)
)


@settings(max_examples=500)
@given(st.builds(lambda *parts: "".join(parts), beginnings, endings, endings))
@example("skies")
@example("ied")
@example("yyy")
def test_stems_are_those_of_nltk(word: str) -> None:
    assert porter_stem(word) == NLTK.stem(word)


def test_a_monstrous_word_does_not_recurse() -> None:
    assert porter_stem("y" * 100_000 + "ed").startswith("yyy")
