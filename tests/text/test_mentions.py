"""An entity is mentioned where its words stand in the text so far, and only there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.records import Procedure
from fluents.text.names import mentioned

SOUP = Procedure(
    id="soup",
    steps=(
        "Wash the ripe tomatoes in a sink.",
        "Put Two Cherries, a knife and the cook\u2019s dishes on glass-topped shelves.",
    ),
)


@pytest.mark.parametrize(
    "entity", ["tomatoes", "tomato", "The Tomatoes", "ripe tomato", "SINK", "a sink", "tomato in the sink"]
)
def test_case_articles_and_plurals_do_not_count(entity: str) -> None:
    assert mentioned(SOUP, 1, entity)


@pytest.mark.parametrize("entity", ["cherry", "dish", "glass", "cook"])
def test_irregular_looking_plurals_and_possessives(entity: str) -> None:
    assert mentioned(SOUP, 2, entity)


def test_a_later_step_has_not_been_read_yet_and_an_earlier_one_has() -> None:
    assert not mentioned(SOUP, 1, "knife")
    assert mentioned(SOUP, 2, "tomato")
    assert not mentioned(SOUP, 0, "tomato")
    assert not mentioned(SOUP, -1, "tomato")


@pytest.mark.parametrize("entity", ["tom", "ink", "tomato sink", "knife cook", "", "the", "...", "sink put", "gla"])
def test_only_whole_words_in_a_row_count(entity: str) -> None:
    assert not mentioned(SOUP, 2, entity)


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=4), st.text())
def test_what_was_mentioned_once_stays_mentioned(steps: list[str], entity: str) -> None:
    procedure = Procedure(id="p", steps=tuple(steps))
    known = [mentioned(procedure, step, entity) for step in range(1, len(steps) + 1)]
    assert known == sorted(known)


@given(st.lists(st.sampled_from(["pot", "lid", "the", "Glass", "boxes", "knives"]), min_size=1, max_size=6), st.data())
def test_any_span_of_the_text_is_mentioned(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 1))
    span = words[start : data.draw(st.integers(start + 1, len(words)))]
    procedure = Procedure(id="p", steps=(" ".join(words),))
    assert mentioned(procedure, 1, " ".join(span)) == (set(span) != {"the"})
