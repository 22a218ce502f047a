"""What one step leaves to the next: names and states, hand-worked and as properties."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fluents.records import StateChange
from fluents.text.matchers import KnownStates, same_state
from fluents.text.names import plain_name
from strategies import words


def change(entity: str, attribute: str, before: str, after: str, step: int = 1) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


def test_an_entity_keeps_the_name_it_first_had() -> None:
    world = KnownStates()
    world.enter([change("the Onions", "shape", "whole", "chopped")])
    assert [c.entity for c in world.enter([change("onion", "color", "white", "golden")])] == ["the Onions"]


def test_a_state_in_other_words_becomes_the_one_it_was_left_in() -> None:
    world = KnownStates()
    world.enter([change("soup", "location", "in pot", "in a large bowl")])
    assert world.enter([change("soup", "location", "in the bowl", "in mouth")])[0].before == "in a large bowl"


def test_a_state_that_says_something_else_gives_way_to_the_known_one() -> None:
    """The model looks at one step at a time: what it says was before is a guess."""
    world = KnownStates()
    world.enter([change("soup", "location", "in pot", "in fridge"), change("stove", "power", "off", "turned on")])
    found = world.enter(
        [change("soup", "location", "in bowl", "in mouth"), change("stove", "power", "turned off", "x")]
    )
    assert [c.before for c in found] == ["in fridge", "turned on"]


def test_a_change_that_turns_into_none_is_dropped_and_the_state_stays() -> None:
    world = KnownStates()
    world.enter([change("onion", "shape", "whole", "chopped")])
    assert world.enter([change("onion", "shape", "finely chopped", "chopped")]) == []
    assert world.enter([change("onion", "shape", "finely chopped", "mashed")])[0].before == "chopped"


def test_what_is_hot_already_does_not_become_hot_again() -> None:
    world = KnownStates()
    world.enter([change("pot", "heat", "cold", "hot")])
    assert world.enter([change("pot", "heat", "cold", "hot"), change("lid", "heat", "cold", "hot")])[0].entity == "lid"


def test_the_same_said_twice_in_a_step_is_said_once() -> None:
    said = [
        change("pot", "heat", "cold", "hot"),
        change("the pot", "heat", "cool", "hot"),
        change("pot", "heat", "cold", "warm"),
    ]
    assert [(c.entity, c.after) for c in KnownStates().enter(said)] == [("pot", "hot"), ("pot", "warm")]


def test_states_with_no_words_are_told_apart() -> None:
    assert [
        c.after for c in KnownStates().enter([change("pole", "charge", "+", "-"), change("pole", "sign", "-", "-")])
    ] == ["-"]


def test_steps_of_one_procedure_do_not_leak_into_another() -> None:
    KnownStates().enter([change("Onions", "shape", "whole", "chopped")])
    assert KnownStates().enter([change("onion", "shape", "cut", "mashed")])[0].entity == "onion"


names = st.sampled_from(["pot", "the pot", "Pots", "lid", "+"]) | words
states = st.sampled_from(["hot", "very hot", "cold", "in pot", "in the pot", "on", "off", "", "!"]) | words
said = st.lists(st.builds(change, names, names, states, states), max_size=6)


@given(st.lists(said, max_size=4))
def test_what_a_world_keeps_to(steps: list[list[StateChange]]) -> None:
    """One name an entity, no change to the same state, nothing said twice, and every word from what was said."""
    world = KnownStates()
    names: dict[str, str] = {}
    left: dict[tuple[str, str], str] = {}
    for changes in steps:
        entered = world.enter(changes)
        keys = [(plain_name(c.entity), plain_name(c.attribute), plain_name(c.after)) for c in entered]
        assert len(set(keys)) == len(keys) <= len(changes)
        for c, key in zip(entered, keys, strict=True):
            assert names.setdefault(key[0], c.entity) == c.entity
            assert plain_name(c.before) != key[2]
            known = left.get(key[:2])
            assert known is None or c.before == known or not same_state(known, c.before)
            assert known == c.before or c.before in {one.before for one in changes}
            assert c.after in {one.after for one in changes}
        left |= {key[:2]: c.after for c, key in zip(entered, keys, strict=True)}


@given(said)
def test_what_was_entered_goes_into_an_empty_world_unchanged(changes: list[StateChange]) -> None:
    entered = KnownStates().enter(changes)
    assert KnownStates().enter(entered) == entered
