"""Agreement: Krippendorff's own examples, and what must hold of any answers."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.errors import InputError, UnknownNameError
from fluents.metrics import score as score_by
from fluents.metrics.agreement import Item, MeasurementLevel, Rating, agreement, item_agreement
from fluents.records import Procedure, Salience, Trace
from fluents.scoring.bootstrap import intervals


def items(*annotators: str) -> list[Item]:
    """From one string for each annotator: a digit for every item, a dot where there is none."""
    answers = zip(*annotators, strict=True)
    return [
        (str(number), [None if answer == "." else int(answer) for answer in said])
        for number, said in enumerate(answers)
    ]


FOUR_OBSERVERS = items("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
"""The example with missing answers in Krippendorff (2011), sections D to F."""


@pytest.mark.parametrize(("level", "alpha"), [("nominal", "0.743"), ("ordinal", "0.815"), ("interval", "0.849")])
def test_alpha_of_the_example_in_the_literature(level: MeasurementLevel, alpha: str) -> None:
    score = item_agreement(FOUR_OBSERVERS, level=level)
    assert f"{score['alpha'][level]:.3f}" == alpha
    assert score.warnings == ("1 of 12 items have fewer than two answers and are left out",)


def test_alpha_of_two_observers_and_two_values() -> None:
    """Krippendorff (2011), section A: they agree on six of ten, little better than chance."""
    score = item_agreement(items("0100000010", "1110010000"))
    assert f"{score['alpha']['nominal']:.3f}" == "0.095"
    assert score["agreement"]["share"] == 0.6


def test_the_share_is_of_items_on_which_all_agree() -> None:
    said: list[Item] = [
        ("a", ["yes", "yes", "yes"]),
        ("a", ["yes", "yes", "no"]),
        ("b", ["no", None, "no"]),
        ("b", ["no", None, None]),
    ]
    score = item_agreement(said)
    assert score["agreement"]["share"] == pytest.approx(2 / 3)
    low, high = intervals(score, resamples=100)["agreement"]["share"]
    assert (low, high) == (0.5, 1)


def test_alpha_can_be_resampled() -> None:
    low, high = intervals(item_agreement(FOUR_OBSERVERS, level="interval"), resamples=200)["alpha"]["interval"]
    assert low < 0.849 < high <= 1


def test_answers_that_are_all_the_same_have_no_alpha() -> None:
    score = item_agreement(items("111", "111"))
    assert score["agreement"]["share"] == 1
    assert np.isnan(score["alpha"]["nominal"])


@pytest.mark.parametrize("said", [[], [("a", ["yes"])], [("a", [None, "yes"]), ("b", [])]])
def test_a_single_annotator_cannot_agree(said: list[Item]) -> None:
    with pytest.raises(InputError, match="two raters"):
        item_agreement(said)


def test_ranks_and_quantities_must_be_numbers() -> None:
    with pytest.raises(InputError, match="needs numbers, but the ratings are labels"):
        item_agreement([("a", ["yes", "no"])], level="ordinal")
    with pytest.raises(InputError, match="needs numbers, but the ratings are labels"):
        item_agreement([("a", [1, float("inf")])], level="interval")


def test_measurements_are_not_labels() -> None:
    with pytest.raises(InputError, match="100 different values"):
        item_agreement([("a", [float(number) for number in range(100)])])


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="nominal, ordinal, interval"):
        score_by("agreement", [rated(("tea", "A", None, 5), ("tea", "B", None, 4))], None, level="ratio")


def rated(*ratings: tuple[str, str, int | None, float | None]) -> Trace:
    return Trace(
        procedure=Procedure(id="p", steps=("Pour.",)),
        salience=tuple(Salience(entity=e, rater=r, step=s, value=v) for e, r, s, v in ratings),
    )


def test_raters_of_gold_and_predictions_are_compared() -> None:
    """Of the goal or of the steps; a rating that is missing or was not read is none; a model's are rounded."""
    gold = rated(("tea", "A", None, 5), ("cup", "A", None, 2), ("pot", "A", None, None), ("tea", "A", 1, 3))
    pred = rated(("tea", "B", None, 4.8), ("cup", "B", None, 3), ("pot", "B", None, 1), ("tea", "B", 1, 3))
    assert agreement([gold], [pred])["agreement"]["share"] == 0.5
    assert agreement([gold], [pred], scope="local")["agreement"]["share"] == 1
    assert "|level:ordinal|scope:global|raters:A+B|" in str(agreement([gold], [pred]).signature)


def test_the_same_ratings_on_both_sides_are_one_raters() -> None:
    gold = rated(("tea", "A", None, 5), ("tea", "B", None, 4), ("tea", "C", None, 5))
    both = agreement([gold], [gold])
    assert both.rows["agreement"] == agreement([gold], []).rows["agreement"] == {"share": 0}
    assert agreement([gold], [gold], raters=["A", "C"])["agreement"]["share"] == 1
    with pytest.raises(InputError, match="ratings by A"):
        agreement([gold], [rated(("tea", "A", None, 1))])
    with pytest.raises(InputError, match="no salience ratings by 'D'"):
        agreement([gold], [], raters=["D"])


def test_agreement_of_the_two_salience_annotators(mirror: Path) -> None:  # noqa: ARG001 - it skips where the data is not
    score = score_by("agreement", "openpi2:dev", None, raters=["A1", "A2"])
    assert f"{score['agreement']['share']:.3f}" == "0.490"
    assert f"{score['alpha']['ordinal']:.3f}" == "0.503"


answers = st.lists(st.lists(st.none() | st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=8)


@given(answers, st.sampled_from(["nominal", "ordinal", "interval"]), st.randoms())
def test_annotators_and_items_have_no_order(said: list[list[Rating]], level: MeasurementLevel, random: Random) -> None:
    said = [[0, 1, 1], *said]
    score = item_agreement([("p", answers) for answers in said], level=level)
    columns = random.sample(range(3), 3)
    shuffled = [("p", [row[column] for column in columns]) for row in random.sample(said, len(said))]
    again = item_agreement(shuffled, level=level)
    assert again["alpha"] == pytest.approx(score["alpha"])
    assert again["agreement"] == score["agreement"]
    assert score["alpha"][level] <= 1
    assert 0 <= score["agreement"]["share"] <= 1


@given(st.lists(st.integers(0, 4), min_size=2, max_size=8).filter(lambda values: len(set(values)) > 1))
def test_perfect_agreement_is_1_on_every_level(values: list[int]) -> None:
    for level in ("nominal", "ordinal", "interval"):
        score = item_agreement([(str(n), [value] * 3) for n, value in enumerate(values)], level=level)
        assert score["alpha"][level] == pytest.approx(1)
