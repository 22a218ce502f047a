"""A score in parts: the right steps in each, answers on the right side, and nothing scored that is not there."""

from __future__ import annotations

from typing import cast

import pytest

from fluents.data.datasets import load_traces
from fluents.errors import InputError, UnknownNameError
from fluents.metrics.original import original
from fluents.records import Modality, Procedure, StateChange, Trace
from fluents.scoring.breakdowns import Kind, breakdown, by_mentioned, by_modality, by_position, by_seen, by_topic
from fluents.scoring.score import Score


def change(step: int, entity: str, after: str = "hot", modality: Modality | None = None) -> StateChange:
    return StateChange(step=step, entity=entity, attribute="heat", before="cold", after=after, modality=modality)


def trace(name: str, *changes: StateChange, topic: str | None = None, steps: int = 2) -> Trace:
    texts = ("Boil the water in a pot.", "Pour it into cups.", *("Wait." for _ in range(steps - 2)))
    return Trace(procedure=Procedure(id=name, steps=texts, topic=topic), changes=changes)


GOLD = [
    trace("a", change(1, "water", modality="with_image"), change(2, "table", modality="without_image"), topic="Health"),
    trace("b", change(1, "pot", modality="both"), change(2, "cup"), topic="Food", steps=8),
]
PRED = [
    trace("a", change(1, "water"), change(2, "table", "warm")),
    trace("b", change(1, "stove"), change(2, "cup"), steps=8),
]
TOPICS = {item.id: item.procedure.topic for item in GOLD}


def test_topics_and_positions_take_the_steps_they_name() -> None:
    score = original(GOLD, PRED)
    topics = by_topic(score, TOPICS)
    assert {name: part.n_steps for name, part in topics.items()} == {"Food": 8, "Health": 2}
    assert topics["Health"]["exact"]["f1"] == pytest.approx(50)
    assert {name: part.n_steps for name, part in by_seen(score, TOPICS).items()} == {"seen": 8, "unseen": 2}
    positions = by_position(score)
    assert {name: part.n_steps for name, part in positions.items()} == {
        "1": 2, "2": 2, "3": 1, "4": 1, "5": 1, "6+": 3,
    }  # fmt: skip
    assert positions["2"]["exact"]["f1"] == pytest.approx(50)


def test_the_parts_of_a_score_add_up_to_it() -> None:
    score = original(GOLD, PRED)
    for parts in (by_topic(score, TOPICS), by_position(score)):
        mean = sum(part["rouge"]["f1"] * part.n_steps for part in parts.values()) / score.n_steps
        assert mean == pytest.approx(score["rouge"]["f1"])


def test_mention_parts_both_sides_by_the_text_of_the_gold() -> None:
    parts = by_mentioned(GOLD, PRED, original)
    # Mentioned: water and pot in the first steps, cups in a later one; the prediction "stove" is not.
    assert parts["mentioned"].n_steps == 3
    assert parts["mentioned"]["exact"]["f1"] == pytest.approx(100 * 2 / 3)
    # Not mentioned: the table (said to be warm), and the predicted stove, which has no gold.
    assert parts["not mentioned"].n_steps == 2
    assert parts["not mentioned"]["exact"]["f1"] == 0
    assert parts["not mentioned"]["exact"]["recall"] == pytest.approx(50)


def test_predictions_without_texts_are_parted_all_the_same() -> None:
    bare = [item.replace(procedure=Procedure(id=item.id, steps=("?",) * len(item.procedure.steps))) for item in PRED]
    assert by_mentioned(GOLD, bare, original)["mentioned"].rows == by_mentioned(GOLD, PRED, original)["mentioned"].rows


def test_modality_holds_all_predictions_against_one_kind_of_gold() -> None:
    parts = by_modality(GOLD, PRED, original)
    assert {name: part.n_steps for name, part in parts.items()} == {"with image": 2, "without image": 2}
    assert parts["with image"]["exact"]["f1"] == pytest.approx(50)
    assert parts["without image"]["exact"]["f1"] == 0


def test_the_released_evaluation_kept_steps_without_gold() -> None:
    part = by_modality(GOLD, PRED, original, all_steps=True)["with image"]
    assert part.n_steps == 10
    # Two steps have gold with an image, one of them found; two more have predictions only; six have nothing at all.
    assert part["exact"]["recall"] == pytest.approx(90)
    assert part["exact"]["f1"] == pytest.approx(70)


def test_what_the_gold_does_not_tell_cannot_be_broken_down() -> None:
    with pytest.raises(InputError, match="which annotators saw images"):
        by_modality(PRED, PRED, original)
    score = original(PRED, PRED)
    with pytest.raises(InputError, match="no topics"):
        breakdown("topic", score, PRED, PRED, original)
    with pytest.raises(UnknownNameError, match="unknown `kind` 'colour'"):
        breakdown(cast(Kind, "colour"), score, PRED, PRED, original)


def test_a_part_without_changes_is_left_out() -> None:
    """Else nothing could be broken down where every entity is mentioned."""
    change = StateChange(step=1, entity="pot", attribute="heat", before="cold", after="hot")
    traces = [Trace(procedure=Procedure(id="tea", steps=("Heat the pot.",)), changes=(change,))]
    assert list(by_mentioned(traces, traces, original)) == ["mentioned"]


def test_every_kind_is_found_by_its_name() -> None:
    score = original(GOLD, PRED)
    expected: dict[Kind, dict[str, Score]] = {
        "topic": by_topic(score, TOPICS),
        "seen": by_seen(score, TOPICS),
        "position": by_position(score),
        "mentioned": by_mentioned(GOLD, PRED, original),
        "modality": by_modality(GOLD, PRED, original, all_steps=True),  # as compat does
    }
    for kind, parts in expected.items():
        found = breakdown(kind, score, GOLD, PRED, original)
        assert {name: part.rows for name, part in found.items()} == {name: part.rows for name, part in parts.items()}


@pytest.mark.usefixtures("mirror")
def test_seen_and_unseen_topics_of_the_released_predictions() -> None:
    """The paper prints 25.1/18.4/17.1 and 24.4/17.4/15.7, before its predictions were de-duplicated."""
    gold, pred = list(load_traces("openpi:test")), list(load_traces("openpi:gpt2-test"))
    parts = breakdown("seen", original(gold, pred), gold, pred, original)
    numbers = {name: tuple(round(value, 1) for value in part["bleu"].values()) for name, part in parts.items()}
    assert numbers == {"seen": (24.8, 18.4, 17.0), "unseen": (24.3, 17.4, 15.7)}


@pytest.mark.usefixtures("mirror")
def test_with_and_without_the_image() -> None:
    """The released numbers are 5.08 / 14.36 / 29.10 and 3.59 / 13.42 / 28.18; here 32 gold answers lack it."""
    gold, pred = list(load_traces("openpi:test")), list(load_traces("openpi:gpt2-test"))
    parts = breakdown("modality", original(gold, pred), gold, pred, original)
    numbers = {name: [round(row["f1"], 2) for row in part.rows.values()] for name, part in parts.items()}
    assert numbers == {"with image": [5.13, 14.40, 29.13], "without image": [3.57, 13.33, 28.10]}
