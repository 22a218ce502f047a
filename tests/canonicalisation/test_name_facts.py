"""What is collected of each name, and which names are surely one."""

from __future__ import annotations

import pytest
from bike import BIKE, change
from hypothesis import given
from hypothesis import strategies as st

from fluents.canonicalisation.name_facts import Fact, Field, names_in
from fluents.records import Alternatives, StateChange
from fluents.text.names import fold


def test_names_of_the_same_words_are_one_with_all_their_facts() -> None:
    [bike, *_] = [one for one in names_in(BIKE.changes, "entity") if "bike" in one.names]
    assert bike.names == ("bike", "a bike")
    assert bike.facts == {Fact(1, "dry", "wet"), Fact(1, "dirty", "clean")}


def test_the_name_said_most_often_comes_first_then_the_shorter() -> None:
    [one] = names_in([change(1, "the cord"), change(2, "the cord"), change(3, "cord"), change(3, "cords")], "entity")
    assert one.names == ("the cord", "cord", "cords")


def test_wordings_of_one_change_are_one_and_so_are_chains_of_them() -> None:
    def worded(*names: str) -> StateChange:
        return change(1, names[0]).replace(alternatives=Alternatives(entity=names))

    assert (
        len(
            names_in(
                [worded("soda", "fizz"), worded("fizz", "pop"), worded("pop", "drinks"), change(2, "drink")], "entity"
            )
        )
        == 1
    )
    assert len(names_in([worded("soda", "fizz"), worded("pop", "drinks")], "entity")) == 2


def test_wordings_without_a_letter_are_no_names() -> None:
    blank = change(1, "soda").replace(alternatives=Alternatives(entity=("soda", " ", "")))
    assert [one.names for one in names_in([blank], "entity")] == [("soda",)]


def test_names_without_words_are_told_apart_by_their_signs() -> None:
    assert [one.names for one in names_in([change(1, "?!"), change(1, "...")], "entity")] == [("...",), ("?!",)]


@pytest.mark.parametrize("field", ["entity", "attribute"])
@given(order=st.permutations(BIKE.changes))
def test_the_order_of_the_changes_does_not_matter(field: Field, order: list[StateChange]) -> None:
    assert names_in(order, field) == names_in(BIKE.changes, field)


@given(st.lists(st.text(min_size=1).filter(str.strip), max_size=8))
def test_every_name_is_in_exactly_one_group_and_no_two_groups_look_alike(names: list[str]) -> None:
    groups = names_in([change(1, name) for name in names], "entity")
    assert sorted(name for one in groups for name in one.names) == sorted(set(names))
    assert len({fold(one.name) for one in groups}) == len(groups)
