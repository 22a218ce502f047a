"""What sampled answers and their tokens are worth: better answers more than worse, good lines more than bad."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.records import StateChange
from fluents.training.advantages import (
    DROPPED,
    MOST,
    JudgedAnswer,
    answer_advantages,
    judged,
    token_advantages,
    usual_gain,
)

GOLD = (
    StateChange(step=1, entity="water", attribute="temperature", before="cold", after="boiling"),
    StateChange(step=1, entity="pot", attribute="location", before="in cupboard", after="on stove"),
)
RIGHT = "water | temperature | cold | boiling\n"
WRONG = "moon | phase | new | full\n"


def _tokens(text: str, others: list[str]) -> list[float]:
    """The advantages of one token in each line of a text, and of its end token, beside other samples."""
    answers = [judged(one, GOLD, 1) for one in (text, *others)]
    lines = [*range(text.count("\n")), None]
    return token_advantages(answers[0], answer_advantages(answers)[0], lines, usual_gain(answers))


def test_a_line_that_matches_is_worth_more_than_one_that_does_not() -> None:
    right, wrong, _ = _tokens(RIGHT + WRONG, [RIGHT + WRONG])
    assert right > 0 > wrong


def test_equal_samples_have_no_advantage_over_each_other() -> None:
    answers = [judged(RIGHT + WRONG, GOLD, 1)] * 4
    assert answer_advantages(answers) == [0.0] * 4
    *_, end = _tokens(RIGHT + WRONG, [RIGHT + WRONG])
    assert end == 0.0, "to end is as good as what is ended"


def test_the_better_answer_has_the_advantage_also_in_ending() -> None:
    better, worse = answer_advantages([judged(RIGHT, GOLD, 1), judged(WRONG, GOLD, 1)])
    assert better > 0 > worse
    assert _tokens(RIGHT, [WRONG])[-1] == pytest.approx(better)


@pytest.mark.parametrize("dropped", ["water\n", "\n", "pot | place | here | here\n", RIGHT])
def test_lines_that_the_reader_drops_are_negative(dropped: str) -> None:
    right, bad, _ = _tokens(RIGHT + dropped, [RIGHT + dropped])
    assert bad == DROPPED < 0 < right


def test_a_line_that_was_cut_off_is_dropped() -> None:
    answer = judged(RIGHT + "pot | location | in cup", GOLD, 1, ended=False)
    assert [change.entity for change in answer.changes] == ["water"]
    assert token_advantages(answer, 0.0, [1], usual_gain([answer])) == [DROPPED]


def test_nothing_said_of_nothing_is_right() -> None:
    silent, talking = judged("", (), 1), judged(RIGHT, (), 1)
    assert silent.f1 == 1.0
    assert silent.gains == {}
    assert talking.gains == {0: -1.0}, "without the line, the answer would be right"
    assert usual_gain([silent]) == 1.0


@given(
    st.lists(
        st.builds(
            JudgedAnswer,
            st.just(()),
            st.floats(0, 1),
            st.dictionaries(st.integers(0, 9), st.floats(-1, 1), max_size=5),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_no_token_counts_for_more_than_the_limit(answers: list[JudgedAnswer]) -> None:
    usual = usual_gain(answers)
    for answer, advantage in zip(answers, answer_advantages(answers), strict=True):
        values = token_advantages(answer, advantage, [*range(10), None], usual)
        assert all(-MOST <= value <= MOST for value in values)
