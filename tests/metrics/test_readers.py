"""The metric for readers: one-to-one, so that repetition costs; consistency over time; calibration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.metrics.readers import match_values, matched_pairs, readers, soft_f1
from fluents.records import Procedure, StateChange, Trace

ENTITIES = ("water", "pot", "stove", "cook")
ATTRIBUTES = ("temperature", "location", "state")
STATES = ("cold", "hot", "in pot", "on stove", "off", "on")


def change(step: int, *fields: str, confidence: float | None = None) -> StateChange:
    entity, attribute, before, after = fields
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after, confidence=confidence)


def trace(*changes: StateChange, steps: int = 2) -> Trace:
    return Trace(procedure=Procedure(id="p", steps=[f"Step {n}." for n in range(steps)]), changes=changes)


HOT = ("water", "temperature", "cold", "hot")
IN_POT = ("water", "location", "in tap", "in pot")

changes = st.lists(
    st.builds(
        lambda entity, attribute, before, after: change(1, entity, attribute, before, after),
        st.sampled_from(ENTITIES),
        st.sampled_from(ATTRIBUTES),
        st.sampled_from(STATES),
        st.sampled_from(STATES),
    ),
    max_size=5,
)


@given(changes)
def test_gold_against_itself_is_perfect(said: list[StateChange]) -> None:
    score = readers([trace(*said, steps=1)], [trace(*said, steps=1)])
    assert score["soft"]["f1"] == pytest.approx(100)
    assert score["entities"]["f1"] == pytest.approx(100 if said else 0) or not said
    assert score["pairs"]["f1"] == pytest.approx(100 if said else 0) or not said


@given(changes, changes, st.data())
def test_saying_a_thing_again_no_better_never_raises_the_soft_score(
    gold: list[StateChange], pred: list[StateChange], data: st.DataObject
) -> None:
    if not pred:
        return
    again = data.draw(st.sampled_from(pred))
    once = readers([trace(*gold, steps=1)], [trace(*pred, steps=1)])
    twice = readers([trace(*gold, steps=1)], [trace(*pred, again, steps=1)])
    if sum(value > 0 for value in match_values(gold, [again])) and _overlaps(gold, again) > 1:
        return  # it may then be taken for another gold change
    assert twice["soft"]["f1"] <= once["soft"]["f1"] + 1e-9


def _overlaps(gold: list[StateChange], said: StateChange) -> int:
    return sum(match_values([one], [said])[0] > 0 for one in gold)


@given(changes, changes)
def test_a_prediction_adds_what_the_score_loses_without_it(gold: list[StateChange], pred: list[StateChange]) -> None:
    """The score of a single step, which training uses, is that of the metric."""

    def score(said: list[StateChange]) -> float:
        return float(readers([trace(*gold, steps=1)], [trace(*said, steps=1)])["soft"]["f1"]) / 100

    f1, gains = soft_f1(gold, pred)
    assert f1 == pytest.approx(score(pred))
    assert gains == pytest.approx([f1 - score(pred[:place] + pred[place + 1 :]) for place in range(len(pred))])


@given(changes, changes, st.data())
def test_no_repetition_raises_the_score_of_pairs(
    gold: list[StateChange], pred: list[StateChange], data: st.DataObject
) -> None:
    if not pred:
        return
    again = data.draw(st.sampled_from(pred))
    other = again.replace(before="elsewhere", after="quite different")
    once = readers([trace(*gold, steps=1)], [trace(*pred, steps=1)])
    twice = readers([trace(*gold, steps=1)], [trace(*pred, other, steps=1)])
    assert twice["pairs"] == once["pairs"]
    assert twice["entities"] == once["entities"]


def test_empty_sides() -> None:
    assert readers([trace(steps=1)], [trace(steps=1)])["soft"]["f1"] == 100
    assert readers([trace(steps=1)], [trace(change(1, *HOT), steps=1)])["soft"]["f1"] == 0
    assert readers([trace(change(1, *HOT), steps=1)], [trace(steps=1)])["soft"]["f1"] == 0


def test_two_predictions_share_one_gold_change_only_once() -> None:
    gold = trace(change(1, *HOT), steps=1)
    said = trace(change(1, *HOT), change(1, *HOT).replace(entity="the water"), steps=1)
    soft = readers([gold], [said])["soft"]
    assert (soft["precision"], soft["recall"]) == (50, 100)


def test_consistency_counts_states_that_begin_where_they_were_left() -> None:
    told = trace(change(1, *HOT), change(2, "Water", "temperature", "hot", "boiling"), change(2, *IN_POT))
    assert readers([told], [told])["consistency"]["agreement"] == 100
    broken = trace(change(1, *HOT), change(2, "water", "temperature", "cold", "boiling"))
    assert readers([told], [broken])["consistency"]["agreement"] == 0


def test_calibration_error_is_the_mean_distance_of_confidence_and_truth() -> None:
    gold = trace(change(1, *HOT), change(2, *IN_POT))
    sure = trace(change(1, *HOT, confidence=1.0), change(2, *IN_POT, confidence=1.0))
    assert readers([gold], [sure])["calibration"]["error"] == pytest.approx(0)
    wrong = trace(change(1, *HOT, confidence=0.25), change(2, "cook", "mood", "calm", "cross", confidence=0.75))
    assert readers([gold], [wrong])["calibration"]["error"] == pytest.approx(75)
    assert "calibration" not in readers([gold], [gold]).rows


@given(changes, changes)
def test_pairs_are_one_to_one_and_have_the_values_that_predictions_are_scored_by(
    gold: list[StateChange], pred: list[StateChange]
) -> None:
    pairs = matched_pairs(gold, pred)
    for places in ([pair.gold for pair in pairs], [pair.pred for pair in pairs]):
        assert len(set(places)) == len(places)
    values = dict.fromkeys(range(len(pred)), 0.0) | {pair.pred: pair.likeness for pair in pairs}
    assert list(values.values()) == match_values(gold, pred)
