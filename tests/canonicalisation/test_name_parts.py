"""Names taken apart: what is the same word, and which word the others belong to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.canonicalisation.name_facts import parts_of


@pytest.mark.parametrize(
    ("one", "other"),
    [("the cord", "Cord"), ("both feet", "your foot"), ("tea leaves", "tea leaf"), ("knives", "a knife")],
)
def test_articles_pointing_words_and_plurals_do_not_count(one: str, other: str) -> None:
    assert parts_of(one) == parts_of(other)


@pytest.mark.parametrize(
    ("name", "head"), [("kitchen towel", "towel"), ("tip of the pipe", "tip"), ("hole in ground", "hole"), ("?!", "")]
)
def test_the_head_is_the_last_word_or_the_one_before_a_preposition(name: str, head: str) -> None:
    assert parts_of(name).head == head


def test_a_name_of_pointing_words_alone_keeps_them() -> None:
    assert parts_of("all of these").words != ()
    assert parts_of("this").words == ("this",)


@given(st.text())
def test_any_text_has_parts_and_its_head_is_one_of_its_words(text: str) -> None:
    parts = parts_of(text)
    assert parts.head in {*parts.words, ""}
