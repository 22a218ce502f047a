"""Names taken apart: what is the same word, and which word the others belong to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.text.names import name_parts


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
