"""Statistics, figures, signatures and scores."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.scoring.score import (
    UNITS,
    Figure,
    Harmonic,
    Ratio,
    Score,
    ShareOf,
    Signature,
    Statistics,
    StepRow,
    Total,
    macro,
    micro,
)

ROWS = [("a", 1, (1.0, 2.0, 4.0)), ("b", 1, (0.0, 0.0, 1.0)), ("a", 2, (2.0, 3.0, 3.0))]
COLUMNS = ("hits", "predicted", "gold")


def score_of(rows: Iterable[StepRow]) -> Score:
    figures = {"all": micro(Ratio("hits", "predicted"), Ratio("hits", "gold"))}
    return Score("toy", Statistics.collect(COLUMNS, rows), figures, Signature.of("toy", "strict", data="0" * 8))


def test_a_score_is_computed_from_the_sums_of_its_rows() -> None:
    score = score_of(ROWS)
    assert score["all"]["precision"] == pytest.approx(60)
    assert score["all"]["recall"] == pytest.approx(37.5)
    assert score["all"]["f1"] == pytest.approx(2 * 60 * 37.5 / 97.5)
    assert (score.n_steps, score.n_procedures) == (3, 2)


def test_a_row_for_a_whole_procedure_is_no_step() -> None:
    score = score_of([*ROWS, ("a", 0, (1.0, 1.0, 1.0))])
    assert (score.n_steps, score.to_dict()["steps"], score.n_procedures) == (3, 3, 2)


def test_a_macro_figure_is_the_mean_over_rows() -> None:
    columns = ("x.precision", "x.recall", "x.f1")
    statistics = Statistics.collect(columns, [("a", 1, (1, 0, 0)), ("a", 2, (0.5, 1, 0.25))])
    assert {name: float(figure(statistics.sums())) for name, figure in macro("x").items()} == {
        "precision": 0.75,
        "recall": 0.5,
        "f1": 0.125,
    }


@pytest.mark.parametrize(
    ("hits", "predicted", "gold", "expected"),
    [(0, 0, 0, (1, 1, 1)), (0, 3, 0, (0, 1, 0)), (0, 0, 3, (1, 0, 0)), (0, 2, 2, (0, 0, 0))],
)
def test_pooled_figures_follow_the_rules_for_empty_steps(
    hits: int, predicted: int, gold: int, expected: tuple[int, int, int]
) -> None:
    score = score_of([("a", 1, (hits, predicted, gold))])
    assert tuple(score["all"].values()) == tuple(100 * value for value in expected)


def test_sums_of_procedures_add_up_to_the_whole() -> None:
    statistics = Statistics.collect(COLUMNS, ROWS)
    names, totals = statistics.by_procedure()
    assert names == ("a", "b")
    assert totals.tolist() == [[3, 5, 7, 2], [0, 0, 1, 1]]
    assert statistics.named(totals.sum(axis=0)) == {name: float(value) for name, value in statistics.sums().items()}
    assert statistics.sums()[UNITS] == 3


def test_figures_take_many_sums_at_once() -> None:
    sums = {"hits": np.array([1.0, 0.0]), "predicted": np.array([2.0, 0.0]), "gold": np.array([4.0, 5.0])}
    f1 = Harmonic(Ratio("hits", "predicted"), Ratio("hits", "gold"))
    assert f1(sums).tolist() == [pytest.approx(1 / 3), 0]


def test_a_part_of_a_score_equals_the_score_of_the_part() -> None:
    part = score_of(ROWS).on(lambda procedure, step: procedure == "a" and step == 2)
    assert part.rows == score_of([ROWS[2]]).rows
    assert part.n_steps == 1


def test_no_rows_at_all_are_still_a_table() -> None:
    assert Statistics.collect(COLUMNS, []).values.shape == (0, 3)


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 values for 3 columns"):
        Statistics.collect(COLUMNS, [("a", 1, (1, 2))])


def test_a_signature_prints_its_parts_in_order_and_names_differences() -> None:
    one = Signature.of("original", "compat", avg="macro", data="ab12cd34")
    assert str(one).startswith("metric:original|mode:compat|avg:macro|data:ab12cd34|version:")
    other = Signature.of("original", "compat", data="ab12cd35")
    assert one.differences(other) == {"avg": ("macro", None), "data": ("ab12cd34", "ab12cd35")}
    assert one.differences(one) == {}


def test_a_score_goes_into_json() -> None:
    as_dict = json.loads(json.dumps(score_of(ROWS).to_dict()))
    assert as_dict["scores"]["all"]["recall"] == pytest.approx(37.5)
    assert as_dict["signature"].startswith("metric:toy|mode:strict|")
    assert (as_dict["steps"], as_dict["procedures"], as_dict["warnings"]) == (3, 2, [])


def test_a_printed_score_is_its_figures_and_its_signature() -> None:
    """Not the statistics, which have a line a step."""
    score = score_of(ROWS)
    told = ["     precision  recall     f1", "all      60.00   37.50  46.15", str(score.signature)]
    assert str(score).splitlines() == repr(score).splitlines() == told


def test_a_printed_score_tells_its_warnings_and_shows_counts_as_counts() -> None:
    figures: dict[str, dict[str, Figure]] = {"x": {"count": Total("hits"), "share": ShareOf("hits", "none")}}
    statistics = Statistics.collect(("hits", "none"), [("a", 1, (3.0, 0.0))])
    score = Score("toy", statistics, figures, Signature.of("toy", "strict"), ("one step is missing",), scale=1.0)
    assert str(score).splitlines()[1:3] == ["x      3      –", "warning: one step is missing"]


counts = st.integers(0, 50)


@given(st.lists(st.tuples(counts, counts, counts), min_size=1))
def test_pooled_figures_stay_within_bounds(rows: list[tuple[int, int, int]]) -> None:
    rows = [(min(hits, predicted, gold), predicted, gold) for hits, predicted, gold in rows]
    score = score_of([("a", i, row) for i, row in enumerate(rows)])
    assert all(0 <= value <= 100 for value in score["all"].values())
