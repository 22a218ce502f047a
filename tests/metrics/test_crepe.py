"""CREPE: the published macro F1, the three classes, and where the answers come from."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.data.datasets import load
from fluents.errors import InputError
from fluents.metrics.crepe import crepe
from fluents.records import Procedure
from fluents.scoring import Mode
from fluents.scoring.bootstrap import intervals
from fluents.task_records import CrepeCase, Likelihood

STEPS = ("Boil.", "Pour.")
EVENTS = ("burnt", "thirsty")


def says(step: int, change: str, event: str = "burnt", *, predicted: bool = False) -> Likelihood:
    return Likelihood(step=step, change=change, event=event, predicted=predicted)


def case(*likelihoods: Likelihood) -> CrepeCase:
    return CrepeCase(procedure=Procedure(id="tea", steps=STEPS), likelihoods=likelihoods)


def cases(name: str) -> list[CrepeCase]:
    return [record for record in load(f"crepe:{name}") if isinstance(record, CrepeCase)]


@pytest.mark.parametrize("mode", ["compat", "strict"])
@pytest.mark.parametrize(("answers", "expected"), [("codex-events", "58.5"), ("codex-entities", "66.7")])
@pytest.mark.usefixtures("mirror")
def test_codex_gets_its_published_macro_f1(answers: str, expected: str, mode: Mode) -> None:
    score = crepe(cases("dev"), cases(answers), mode=mode)
    assert f"{score['macro']['f1']:.1f}" == expected
    low, high = intervals(score, resamples=100)["macro"]["f1"]
    assert low < score["macro"]["f1"] < high


@pytest.mark.usefixtures("mirror")
def test_a_file_with_annotations_and_answers_is_both_sides() -> None:
    both = cases("codex-events")
    assert crepe(both, both).rows == crepe(cases("dev"), both).rows


def test_every_step_is_asked_about_every_event() -> None:
    """Gold: burnt more likely at 1, thirsty less likely at 2. Said: both at 1, so three of four questions are right."""
    gold = case(says(1, "more likely"), says(2, "less likely", "thirsty"))
    pred = case(says(1, "more likely"), says(1, "less likely", "thirsty"))
    score = crepe([gold], [pred], mode="strict")
    assert score["more likely"]["f1"] == 100
    assert score["less likely"]["f1"] == 0
    assert score["no change"]["f1"] == 50
    assert score["macro"]["f1"] == 50


def test_a_case_without_predictions_does_not_fall_back_on_the_annotations() -> None:
    """Where some case holds predictions, a case without any was answered with nothing."""
    first = case(says(1, "more likely"), says(1, "more likely", predicted=True))
    second = CrepeCase(
        procedure=Procedure(id="soup", steps=STEPS), likelihoods=(says(1, "more likely"), says(2, "less likely"))
    )
    score = crepe([first, second], [first, second])
    assert score["more likely"]["recall"] == 50
    assert score["less likely"]["recall"] == 0


def test_other_words_are_more_likely_in_compat_and_refused_in_strict() -> None:
    gold, pred = case(says(1, "more likely")), case(says(1, "True"))
    assert crepe([gold], [pred])["more likely"]["f1"] == 100
    (warning,) = crepe([gold], [pred]).warnings
    assert "unknown label 'True'" in warning
    assert "counts unknown labels as “more likely”" in warning
    with pytest.raises(InputError, match="unknown label"):
        crepe([gold], [pred], mode="strict")


@pytest.mark.parametrize("answer", [says(1, "more likely", "drowned"), says(7, "more likely")])
def test_answers_nobody_asked_for_are_left_out_in_compat_and_refused_in_strict(answer: Likelihood) -> None:
    gold = case(says(1, "more likely"))
    pred = case(says(1, "more likely"), answer)
    assert crepe([gold], [pred])["macro"]["f1"] == 100
    with pytest.raises(InputError, match="the gold of tea has no"):
        crepe([gold], [pred], mode="strict")


def test_the_state_before_the_first_step_is_not_asked_about() -> None:
    gold = case(says(0, "more likely"), says(1, "less likely"))
    assert crepe([gold], [case(says(1, "less likely"))], mode="strict")["macro"]["f1"] == 100


answers = st.lists(
    st.builds(says, st.integers(1, 2), st.sampled_from(["more likely", "less likely"]), st.sampled_from(EVENTS)),
    min_size=1,
    unique_by=lambda item: (item.step, item.event),
)


@given(answers, answers, st.randoms())
def test_macro_f1_is_bounded_and_knows_no_order(
    meant: list[Likelihood], told: list[Likelihood], random: Random
) -> None:
    score = crepe([case(*meant)], [case(*told)])
    assert all(0 <= value <= 100 for row in score.rows.values() for value in row.values())
    shuffled = case(*random.sample(told, len(told)))
    assert crepe([case(*meant)], [shuffled]).rows == score.rows
    assert all(
        v == 100 for row in crepe([case(*meant)], [case(*meant)], mode="strict").rows.values() for v in row.values()
    )


@pytest.mark.parametrize("mode", ["compat", "strict"])
@pytest.mark.parametrize("word", ["no change", "cannot tell"])
def test_an_answer_without_a_change_says_as_likely_as_before(word: str, mode: Mode) -> None:
    gold = case(says(1, "more likely"))
    score = crepe([gold], [case(says(0, word), says(1, "more likely"), says(2, word))], mode=mode)
    assert score["no change"]["f1"] == 100
    assert not score.warnings
