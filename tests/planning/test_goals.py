"""Goals in words: what is understood is planned for, and what is not is an error, never a plan for something else."""

from __future__ import annotations

import pytest
from rainy_woods import TRACE

from fluents.errors import InputError
from fluents.planning.compilation import compile_trace
from fluents.planning.goals import worded_goal

KNOWN = {
    (("pot", "content"), "empty"),
    (("pot", "content"), "half empty"),
    (("pot", "smell"), "empty"),
    (("water", "amount"), "full"),
    (("water bottle", "content"), "full"),
    (("cup", "state"), "not dirty"),
    (("salt and pepper", "place"), "on the cutting board"),
    (("broth", "amount"), "1.5 litres, hot"),
}


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("not camper quenched", "nothing in the trace matches: not"),
        ("camper never quenched", "nothing in the trace matches: never"),
        ("the camper isn't thirsty", "nothing in the trace matches: isn't"),
        ("the camper isn’t thirsty", "nothing in the trace matches: isn't"),
        ("camper quenched on the moon", "nothing in the trace matches: on, moon"),
        ("camper quenched camper happy", "nothing in the trace matches: happy"),
        (",", "the goal names no state"),
        ("", "the goal names no state"),
        ("pot empty, pot full of rainwater", "two values for the attribute 'content' of 'pot': 'empty' and 'full of r"),
        ("pot empty full of rainwater", "two values for the attribute 'content' of 'pot'"),
    ],
)
def test_what_is_not_understood_is_an_error(goal: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        compile_trace(TRACE, goal=goal)
    assert message in caught.value.what


@pytest.mark.parametrize(
    ("goal", "states"),
    [
        ("the camper's thirst should be quenched", {("camper", "thirst"): "quenched"}),
        (
            "pot is half empty and camper is quenched.",
            {("pot", "content"): "half empty", ("camper", "thirst"): "quenched"},
        ),
        ("pot empty; Pot empty", {("pot", "content"): "empty"}),
    ],
)
def test_the_states_of_a_goal_are_named(goal: str, states: dict[tuple[str, str], str]) -> None:
    made = compile_trace(TRACE, goal=goal)
    assert sorted(made.goal_states) == sorted(f"{a} of {e} is {value}" for (e, a), value in states.items())


@pytest.mark.parametrize(
    ("goal", "states"),
    [
        ("pot half empty", {("pot", "content"): "half empty"}),
        ("pot empty", {("pot", "content"): "empty", ("pot", "smell"): "empty"}),
        ("smell of pot empty", {("pot", "smell"): "empty"}),
        ("water bottle full", {("water bottle", "content"): "full"}),
        ("cup not dirty", {("cup", "state"): "not dirty"}),
    ],
)
def test_the_longest_names_count(goal: str, states: dict[tuple[str, str], str]) -> None:
    assert worded_goal(goal, KNOWN, "here") == states


@pytest.mark.parametrize("fact", sorted(KNOWN))
def test_whatever_an_error_suggests_is_understood(fact: tuple[tuple[str, str], str]) -> None:
    fluent, value = fact
    goal = f"{fluent[0]} {value}, cup not dirty and Salt and Pepper on the cutting board"
    assert worded_goal(goal, KNOWN, "here").items() >= {
        fluent: value, ("cup", "state"): "not dirty", ("salt and pepper", "place"): "on the cutting board"
    }.items()  # fmt: skip
