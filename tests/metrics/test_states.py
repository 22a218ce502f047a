"""States: the published accuracies, the wordings that count, and which answer goes with which question."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.data.datasets import load_traces
from fluents.errors import InputError
from fluents.metrics.states import ANY, FIRST, states
from fluents.records import Alternatives, Procedure, StateChange, Trace

PROCEDURE = Procedure(id="tea", steps=("Boil.", "Pour."))


def change(step: int, before: str, after: str, entity: str = "tea", attribute: str = "heat") -> StateChange:
    """States with " | " between their wordings."""
    befores, afters = before.split(" | "), after.split(" | ")
    return StateChange(
        step=step,
        entity=entity,
        attribute=attribute,
        before=befores[0],
        after=afters[0],
        alternatives=Alternatives(before=tuple(befores), after=tuple(afters)),
    )


def trace(*changes: StateChange) -> Trace:
    return Trace(procedure=PROCEDURE, changes=changes)


@pytest.mark.parametrize(("model", "first", "every"), [("davinci", "19.9", "22.5"), ("gpt-3.5", "7.4", "8.3")])
@pytest.mark.usefixtures("mirror")
def test_released_outputs_get_their_published_accuracies(model: str, first: str, every: str) -> None:
    score = states(load_traces("openpi2:ranked-dev"), load_traces(f"openpi2-outputs:{model}-states"))
    assert [f"{score[row]['accuracy']:.1f}" for row in (FIRST, ANY)] == [first, every]
    assert score.statistics.sums()["asked"] == 1324
    assert score.warnings == ()


@pytest.mark.parametrize(("model", "accuracy"), [("davinci", "22.58"), ("gpt-3.5", "8.99")])
@pytest.mark.usefixtures("mirror")
def test_strict_accuracies_of_the_released_outputs(model: str, accuracy: str) -> None:
    """A little above compat: capitals and articles no longer make a state wrong."""
    score = states(load_traces("openpi2:ranked-dev"), load_traces(f"openpi2-outputs:{model}-states"), mode="strict")
    assert f"{score[ANY]['accuracy']:.2f}" == accuracy


def test_both_states_must_be_among_the_wordings() -> None:
    gold = trace(change(1, "cold | cool", "hot | warm"), change(2, "full", "empty", entity="cup"))
    pred = trace(change(1, "cool", "warm"), change(2, "full", "half full", entity="cup"))
    score = states([gold], [pred])
    assert (score[FIRST]["accuracy"], score[ANY]["accuracy"]) == (0, 50)


def test_capitals_and_articles_matter_in_compat_only() -> None:
    gold, pred = trace(change(1, "the shelf", "hand")), trace(change(1, "Shelf", " a hand", "Tea"))
    assert states([gold], [pred], mode="strict")[ANY]["accuracy"] == 100
    score = states([gold], [pred])
    assert score[ANY]["accuracy"] == 0
    assert score.warnings  # "Tea" is not the question asked about "tea"


def test_an_unanswered_question_is_wrong_in_compat_and_an_error_in_strict() -> None:
    gold = trace(change(1, "cold", "hot"), change(2, "hot", "cold"))
    pred = trace(change(1, "cold", "hot"), change(2, "hot", "cold", entity="cup"))
    score = states([gold], [pred])
    assert score[ANY]["accuracy"] == 50
    assert "heat of tea in step 2 of tea; heat of cup in step 2 of tea" in score.warnings[0]
    with pytest.raises(InputError, match="do not match one to one: heat of tea in step 2 of tea"):
        states([gold], [pred], mode="strict")


def test_answers_to_one_question_asked_twice_are_paired_at_their_best_in_strict() -> None:
    gold = trace(change(1, "a", "b"), change(1, "c", "d"))
    swapped = trace(change(1, "c", "d"), change(1, "a", "b"))
    assert states([gold], [swapped])[ANY]["accuracy"] == 0
    assert states([gold], [swapped], mode="strict")[ANY]["accuracy"] == 100


values = st.sampled_from(["hot", "Hot", "the cold", "cold", "wet"])
questions = st.lists(
    st.builds(change, st.integers(1, 2), values, values, st.sampled_from(["tea", "cup"])), min_size=1, max_size=6
)


@given(questions, st.lists(st.tuples(values, values), min_size=6, max_size=6), st.randoms())
def test_strict_is_bounded_and_knows_no_order(
    meant: list[StateChange], said: list[tuple[str, str]], random: Random
) -> None:
    answers = [
        change(asked.step, before, after, asked.entity) for asked, (before, after) in zip(meant, said, strict=False)
    ]
    score = states([trace(*meant)], [trace(*answers)], mode="strict")
    assert all(0 <= row["accuracy"] <= 100 for row in score.rows.values())
    shuffled = trace(*random.sample(answers, len(answers)))
    assert states([trace(*meant)], [shuffled], mode="strict").rows == score.rows


@given(questions)
def test_gold_scores_1_against_itself(meant: list[StateChange]) -> None:
    for mode in ("compat", "strict"):
        score = states([trace(*meant)], [trace(*meant)], mode=mode)
        assert all(row["accuracy"] == 100 for row in score.rows.values())
