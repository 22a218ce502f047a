"""The template both ways: everything seen in the published answers is read, and nothing makes the parser raise."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.records import Reject, StateChange
from fluents.text.template import NoChange, parse, parse_all, split_answers
from processor_time import assert_not_quadratic

OVEN = ("oven", "temperature", "cold", "hot")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("temperature of oven was cold before and hot afterwards", OVEN),
        ("temperature of oven was cold before and hot afterwards.", OVEN),
        ("Temperature of oven were cold before, and hot after", ("oven", "Temperature", "cold", "hot")),
        ("temperature of oven is cold before and hot afterward", OVEN),
        ("temperature of oven are cold before and hot afterwards!", OVEN),
        ("  - temperature of oven was cold before and hot afterwards", OVEN),
        ("3) temperature of oven was cold before and hot afterwards", OVEN),
        ("oven | temperature | cold | hot", OVEN),
        ("| oven | temperature | cold | hot |", OVEN),
        ("state of side of the box was shut, taped before and open, torn afterwards",
         ("side of the box", "state", "shut, taped", "open, torn")),
        ("knowledge of what glue is was missing before and is there afterwards",
         ("what glue is", "knowledge", "missing", "is there")),
        ("look of paint\nspill was dry before and wet afterwards", ("paint\nspill", "look", "dry", "wet")),
        ("place of lid was on the jar before opening before and off it after afterwards",
         ("lid", "place", "on the jar before opening", "off it after")),
    ],
)  # fmt: skip
def test_what_is_read(text: str, fields: tuple[str, str, str, str]) -> None:
    change = parse(text, step=2)
    assert isinstance(change, StateChange)
    assert (change.entity, change.attribute, change.before, change.after) == fields
    assert change.step == 2
    assert change.sentence == text, "the words are kept as they were"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("cost of fuel wasted before and saved afterwards", "no verb"),
        ("colour of was grey before and blue afterwards", "no verb"),
        ("the oven gets hot", 'does not end in "afterwards"'),
        ("oven was cold before and hot afterwards", 'no "attribute of entity"'),
        ("temperature of oven was cold and hot afterwards", 'no "before and"'),
        ("oven | temperature | cold", "expected 4 fields"),
        ("oven |  | cold | hot", "no attribute"),
        ("temperature of oven was  before and hot afterwards", "no before"),
    ],
)
def test_what_cannot_be_read_is_a_reject_with_its_reason(text: str, reason: str) -> None:
    reject = parse(text, step=1, position=4)
    assert isinstance(reject, Reject)
    assert reason in reject.reason
    assert (reject.text, reject.step, reject.position) == (text, 1, 4)


@pytest.mark.parametrize("text", ["There will be no change.", "there will be no change in this step"])
def test_the_no_change_sentence_is_an_answer(text: str) -> None:
    assert parse(text, step=1) == NoChange()
    assert parse_all([text], step=1) == ([], [])


def test_a_comma_inside_a_value_does_not_part_a_generation() -> None:
    text = (
        "state of dough was sticky, wet before and smooth, dry afterwards, "
        "place of bowl was shelf before and table afterwards. size of bun was small before and big afterwards"
    )
    changes, rejects = parse_all(split_answers(text), step=1)
    assert [change.entity for change in changes] == ["dough", "bowl", "bun"]
    assert rejects == []


# Values without the template's own words: with them, a sentence can mean two things.
names = st.text(string.ascii_letters + "'(),-éß中", min_size=1, max_size=12).filter(
    lambda word: (
        word.lower() not in {"of", "was", "were", "is", "are", "before", "and", "after", "afterwards"}
        and word.strip(" .!;,") == word
        and any(letter.isalpha() for letter in word)  # "- of x" is a list mark before the sentence
    )
)
phrases = st.lists(names, min_size=1, max_size=3).map(" ".join)


@given(phrases, phrases, phrases, phrases)
def test_parsing_undoes_printing(entity: str, attribute: str, before: str, after: str) -> None:
    change = StateChange(step=1, entity=entity, attribute=attribute, before=before, after=after)
    assert parse(change.sentence, step=1) == change


@given(st.text() | st.text("of was before and afterwards|.,\n", max_size=200))
def test_any_text_is_read_or_rejected(text: str) -> None:
    assert isinstance(parse(text, step=1), StateChange | NoChange | Reject)
    for part in split_answers(text):
        assert isinstance(parse(part, step=1), StateChange | NoChange | Reject)


@pytest.mark.parametrize("unit", [" ", " of ", " was", " before and ", "|", "a of a was ", "afterwards, "])
def test_a_hostile_line_takes_no_time(unit: str) -> None:
    """Guards against an expression that backtracks: 200 kB would then take hours, not fractions of a second."""

    def work(size: int) -> None:
        text = "x" + unit * (size // len(unit)) + " afterwards"
        parse(text, step=1)
        split_answers(text)

    assert_not_quadratic(work, 200_000)
