"""Names taken apart: what is the same word, and which word the others belong to; and stems, against NLTK's, since the
published evaluator's numbers depend on them."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from fluents.text.names import _STEP_2, _STEP_3, _STEP_4, name_parts, porter_stem


@pytest.mark.parametrize(
    ("one", "other"),
    [("the cord", "Cord"), ("both feet", "your foot"), ("tea leaves", "tea leaf"), ("knives", "a knife")],
)
def test_articles_pointing_words_and_plurals_do_not_count(one: str, other: str) -> None:
    assert name_parts(one) == name_parts(other)


@pytest.mark.parametrize(
    ("name", "head"), [("kitchen towel", "towel"), ("tip of the pipe", "tip"), ("hole in ground", "hole"), ("?!", "")]
)
def test_the_head_is_the_last_word_or_the_one_before_a_preposition(name: str, head: str) -> None:
    assert name_parts(name).head == head


def test_a_name_of_pointing_words_alone_keeps_them() -> None:
    assert name_parts("all of these").words != ()
    assert name_parts("this").words == ("this",)


@given(st.text())
def test_any_text_has_parts_and_its_head_is_one_of_its_words(text: str) -> None:
    parts = name_parts(text)
    assert parts.head in {*parts.words, ""}


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
