"""When two wordings are one name or one state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.text.matchers import same_state
from fluents.text.names import plain_name

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hot", "Hot"),
        ("in bowl", "in the large bowl"),
        ("in a bowl", "inside bowls"),
        ("chopped", "finely chopped"),
        ("on", "ON"),
    ],
)
def test_states_in_other_words(one: str, other: str) -> None:
    assert same_state(one, other)
    assert same_state(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("in pan", "in oven"),
        ("in hot water", "in cold water"),
        ("turned on", "turned off"),
        ("in oven", "out of oven"),
        ("cooked", "not cooked"),
        ("cooked", "isn’t cooked"),
        ("on", "off"),
        ("+", "-"),
        ("", "hot"),
    ],
)
def test_states_that_share_words_and_differ(one: str, other: str) -> None:
    assert not same_state(one, other)
    assert not same_state(other, one)


def test_names() -> None:
    assert plain_name("The Onions") == plain_name("onion") == "onion"
    assert plain_name(" + ") == "+"
    assert plain_name("The") == plain_name("the") != ""


@given(texts, texts)
def test_a_name_is_as_plain_as_it_gets_and_equal_names_are_equal_states(one: str, other: str) -> None:
    assert same_state(one, one)
    if plain_name(one) == plain_name(other):
        assert same_state(one, other)
        assert same_state(other, one)
