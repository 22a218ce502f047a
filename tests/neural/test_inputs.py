"""What the systems read and write: the papers' wording, nothing lost between changes and text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.errors import UnknownNameError
from fluents.neural.inputs import (
    SYSTEMS,
    about,
    answer,
    entities,
    key,
    merged,
    pieces,
    question,
    read_answer,
    sentences,
    system_named,
)
from fluents.records import Procedure, StateChange, Trace

SOUP = Procedure(id="soup", goal="Make soup.", steps=("Chop the leek.", "Boil it.", "Eat."))


def change(entity: str, attribute: str, before: str, after: str, step: int = 1) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


CHOPPED = change("leek", "shape", "whole", "sliced, thin")
BOILED = change("Leek", "temperature", "cold", "hot", step=2)
TRACE = Trace(procedure=SOUP, changes=(CHOPPED, BOILED))


def test_each_paper_asks_in_its_own_way() -> None:
    assert question(SOUP, 2).text() == "Make soup. Chop the leek. Boil it. Now, what happens?"
    assert question(SOUP, 2, "openpi").text() == "Chop the leek. [SEP] Boil it."
    assert question(SOUP, 1, "openpi").text() == "[SEP] Chop the leek."
    assert question(SOUP, 1, entity="leek").text() == "Make soup. Chop the leek. Now, what happens to leek?"
    assert question(SOUP.replace(goal=" "), 1).text() == "Chop the leek. Now, what happens?"


def test_concat_states_tells_the_past_changes_behind_their_steps() -> None:
    told = question(SOUP, 3, states=[TRACE.at(1), TRACE.at(2)]).text()
    assert told == (
        "Make soup. Chop the leek. shape of leek was whole before and sliced, thin afterwards. "
        "Boil it. temperature of Leek was cold before and hot afterwards. Eat. Now, what happens?"
    )


def test_a_long_past_loses_its_oldest_steps_first() -> None:
    assert question(SOUP, 3).text(1) == "Make soup. Boil it. Eat. Now, what happens?"
    assert question(SOUP, 3).text(0) == "Make soup. Eat. Now, what happens?"


def test_nothing_changes_in_words() -> None:
    assert answer([]) == "there will be no change"
    assert read_answer(answer([]), 1) == ([], [])


def test_sentences_of_several_things_are_kept_and_values_stay_whole() -> None:
    """The papers' readers dropped what says "were", and cut values at their commas."""
    several = "shape of potatoes were whole, raw before and cut in cubes, small afterwards"
    one = "weight of pot was 1 kg before and 2 kg afterwards"
    changes, rejects = read_answer(f"{several}, {one}", 1)
    assert rejects == []
    assert [(c.entity, c.before, c.after) for c in changes] == [
        ("potatoes", "whole, raw", "cut in cubes, small"),
        ("pot", "1 kg", "2 kg"),
    ]


def test_slots_and_entities_do_not_know_case() -> None:
    assert key(change(" Leek", "Shape ", "a", "b")) == key(change("leek", "shape", "c", "d"))
    assert entities([CHOPPED, BOILED]) == ["leek"]
    assert about([CHOPPED, BOILED], "LEEK") == [CHOPPED, BOILED]


def test_answers_merge_once_each_in_order() -> None:
    assert merged([[CHOPPED], [BOILED, change("LEEK", "shape", "whole", "sliced, thin")]]) == [CHOPPED, BOILED]


@given(st.integers(2, 60))
def test_a_sentence_said_over_and_over_is_one_change(times: int) -> None:
    """A model that repeats itself to the end of its room, where it is cut off, has said it once."""
    said = ", ".join([CHOPPED.templated, CHOPPED.templated.replace("leek", "LEEK")] * times)
    changes, rejects = read_answer(f"{said}, {CHOPPED.templated[:20]}", 1)
    assert changes == [CHOPPED]
    assert len(rejects) == 1
    assert merged([changes, [CHOPPED.replace(after="sliced,  thin")]]) == [CHOPPED]


def test_what_cannot_be_read_is_kept_with_its_reason() -> None:
    changes, rejects = read_answer("shape of leek was whole before and cut afterwards, nonsense of", 2)
    assert [c.after for c in changes] == ["cut"]
    assert [r.text for r in rejects] == ["nonsense of"]


def test_an_unknown_system_is_named_with_the_known_ones() -> None:
    assert system_named("emem+econd") == SYSTEMS["emem+econd"]
    with pytest.raises(UnknownNameError, match="unknown `system` 'x'"):
        system_named("x")


# Words of the template inside a field are ambiguous to any reader of the template; commas are not.
plain_words = st.lists(st.sampled_from(["red", "hot, dry", "5 cm", "a|b", "it's", "(new)"]), min_size=1, max_size=3)
fields = plain_words.map(" ".join)


@given(st.lists(st.builds(change, fields, fields, fields, fields), max_size=5))
def test_changes_survive_the_way_through_text(changes: list[StateChange]) -> None:
    again, rejects = read_answer(answer(changes), 1)
    assert rejects == []
    assert [c.templated for c in again] == [c.templated for c in merged([changes])]


@given(st.lists(st.builds(change, fields, fields, fields, fields), max_size=5))
def test_the_pieces_of_an_answer_make_the_answer(changes: list[StateChange]) -> None:
    lines = sentences(changes)
    assert "".join(pieces(lines)) == answer(changes)
    assert len(pieces(lines)) == len(lines)


@given(st.text())
def test_reading_never_raises(text: str) -> None:
    changes, rejects = read_answer(text, 1)
    assert len(changes) + len(rejects) <= len(text)
