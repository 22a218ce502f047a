"""What sampled answers and their tokens are worth: better answers more than worse, good lines more than bad."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.data.corpus import JudgedClaim, Verdict
from fluents.metrics.readers import soft_f1
from fluents.records import StateChange
from fluents.training.advantages import (
    DROPPED,
    MOST,
    RewardedAnswer,
    answer_advantages,
    judged_reward,
    rewarded,
    token_advantages,
    usual_gain,
)

GOLD = (
    StateChange(step=1, entity="water", attribute="temperature", before="cold", after="boiling"),
    StateChange(step=1, entity="pot", attribute="location", before="in cupboard", after="on stove"),
)
RIGHT = "water | temperature | cold | boiling\n"
WRONG = "moon | phase | new | full\n"


def _scored(text: str) -> RewardedAnswer:
    return rewarded(text, 1, partial(soft_f1, GOLD))


def _tokens(text: str, others: list[str]) -> list[float]:
    """The advantages of one token in each line of a text, and of its end token, beside other samples."""
    answers = [_scored(one) for one in (text, *others)]
    lines = [*range(text.count("\n")), None]
    return token_advantages(answers[0], answer_advantages(answers)[0], lines, usual_gain(answers))


def test_a_line_that_matches_is_worth_more_than_one_that_does_not() -> None:
    right, wrong, _ = _tokens(RIGHT + WRONG, [RIGHT + WRONG])
    assert right > 0 > wrong


def test_equal_samples_have_no_advantage_over_each_other() -> None:
    answers = [_scored(RIGHT + WRONG)] * 4
    assert answer_advantages(answers) == [0.0] * 4
    *_, end = _tokens(RIGHT + WRONG, [RIGHT + WRONG])
    assert end == 0.0, "to end is as good as what is ended"


def test_the_better_answer_has_the_advantage_also_in_ending() -> None:
    better, worse = answer_advantages([_scored(RIGHT), _scored(WRONG)])
    assert better > 0 > worse
    assert _tokens(RIGHT, [WRONG])[-1] == pytest.approx(better)


@pytest.mark.parametrize("dropped", ["water\n", "\n", "pot | place | here | here\n", RIGHT])
def test_lines_that_the_reader_drops_are_negative(dropped: str) -> None:
    right, bad, _ = _tokens(RIGHT + dropped, [RIGHT + dropped])
    assert bad == DROPPED < 0 < right


def test_a_line_that_was_cut_off_is_dropped() -> None:
    answer = rewarded(RIGHT + "pot | location | in cup", 1, partial(soft_f1, GOLD), ended=False)
    assert [change.entity for change in answer.changes] == ["water"]
    assert token_advantages(answer, 0.0, [1], usual_gain([answer])) == [DROPPED]


def test_nothing_said_of_nothing_is_right() -> None:
    silent, talking = (rewarded(text, 1, partial(soft_f1, ())) for text in ("", RIGHT))
    assert silent.reward == 1.0
    assert silent.gains == {}
    assert talking.gains == {0: -1.0}, "without the line, the answer would be right"
    assert usual_gain([silent]) == 1.0


@given(
    st.lists(
        st.builds(
            RewardedAnswer,
            st.just(()),
            st.floats(0, 1),
            st.dictionaries(st.integers(0, 9), st.floats(-1, 1), max_size=5),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_no_token_counts_for_more_than_the_limit(answers: list[RewardedAnswer]) -> None:
    usual = usual_gain(answers)
    for answer, advantage in zip(answers, answer_advantages(answers), strict=True):
        values = token_advantages(answer, advantage, [*range(10), None], usual)
        assert all(-MOST <= value <= MOST for value in values)


def _claim(verdict: Verdict, meaning: int | None, *fields: str) -> JudgedClaim:
    entity, attribute, before, after = fields
    change = StateChange(step=1, entity=entity, attribute=attribute, before=before, after=after)
    return JudgedClaim(change=change, verdict=verdict, meaning=meaning)


BOILING = _claim("T", 1, "water", "temperature", "cold", "boiling")
HOT = _claim("T", 1, "water", "heat", "cool", "hot")
STEAMING = _claim("P", 2, "kitchen", "humidity", "dry", "steamy")
FROZEN = _claim("F", None, "water", "state", "liquid", "frozen")
MOVED = _claim("T", 3, "pot", "location", "in cupboard", "on stove")
CLAIMS = (BOILING, HOT, STEAMING, FROZEN, MOVED)


@pytest.mark.parametrize(
    ("said", "expected", "gains"),
    [
        ((), 0.0, []),
        ((BOILING, MOVED), 1.0, [1 - 1.6 / 2.2] * 2),
        ((BOILING,), 1.6 / 2.2, [1.6 / 2.2]),
        ((BOILING, HOT), 1.6 / 3.2, [1.6 / 3.2 - 1.6 / 2.2] * 2),
        ((BOILING, FROZEN), 1.6 / 3.2, [1.6 / 3.2, 1.6 / 3.2 - 1.6 / 2.2]),
        ((STEAMING,), 0.4 / 2.2, [0.4 / 2.2]),
    ],
)
def test_judged_claims_reward_true_meanings_once(
    said: tuple[JudgedClaim, ...], expected: float, gains: list[float]
) -> None:
    reward, found = judged_reward(CLAIMS, [claim.change for claim in said])
    assert reward == pytest.approx(expected)
    assert found == pytest.approx(gains)


def test_a_line_that_nobody_judged_takes_the_verdict_of_the_most_similar_claim() -> None:
    like_true, like_false = (
        claim.change.replace(after=after) for claim, after in ((MOVED, "on hot stove"), (FROZEN, "frozen solid"))
    )
    assert 0.7 * 1.6 / 2.2 < judged_reward(CLAIMS, [like_true])[0] < 1.6 / 2.2
    assert judged_reward(CLAIMS, [like_false])[0] == 0
    upper = BOILING.change.replace(entity="Water")
    assert judged_reward(CLAIMS, [upper]) == judged_reward(CLAIMS, [BOILING.change])


def test_the_same_words_come_before_similar_ones() -> None:
    """ROUGE compares stems, so another verdict may stand on words that are just as similar."""
    false = _claim("F", None, "pots", "location", "in cupboards", "on stoves")
    assert judged_reward((false, MOVED), [MOVED.change])[0] == 1.0


def test_silence_is_right_where_nothing_true_can_be_said() -> None:
    assert judged_reward((FROZEN,), []) == (1.0, [])
    assert judged_reward((FROZEN,), [FROZEN.change]) == (0.0, [-1.0])
    assert judged_reward((), [FROZEN.change]) == (0.0, [-1.0]), "without claims, nothing is known to be true"


_WORDS = st.sampled_from(["pot", "water", "stove", "cold", "hot", "full"])
_CHANGES = st.builds(StateChange, step=st.just(1), entity=_WORDS, attribute=_WORDS, before=_WORDS, after=_WORDS)
_STEPS = st.lists(
    st.one_of(
        st.builds(JudgedClaim, change=_CHANGES, verdict=st.just("F")),
        st.builds(JudgedClaim, change=_CHANGES, verdict=st.sampled_from(["T", "P"]), meaning=st.integers(1, 3)),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda claim: claim.change,
)


@given(_STEPS, st.lists(_CHANGES, max_size=5), st.data())
def test_neither_saying_a_thing_again_nor_a_false_line_raises_the_reward(
    claims: list[JudgedClaim], said: list[StateChange], data: st.DataObject
) -> None:
    reward, gains = judged_reward(claims, said)
    assert 0 <= reward <= 1 + 1e-9
    assert len(gains) == len(said)
    extra = [claim.change for claim in claims if claim.verdict == "F"]
    extra += said
    # A meaning that was said in words judged true: its other wordings are worth no more.
    told = {claim.meaning for claim in claims if claim.verdict == "T" and claim.change in said}
    extra += [claim.change for claim in claims if claim.meaning in told]
    if extra:
        again = data.draw(st.sampled_from(extra))
        more, its = judged_reward(claims, [*said, again])
        assert more <= reward + 1e-9
        assert its[-1] <= 1e-9
