"""Salience: the published correlations, what the appended 0 does to them, and which numbers count."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.data.datasets import load_traces
from fluents.errors import InputError
from fluents.metrics.salience import pearson, salience
from fluents.records import Procedure, Salience, Trace
from fluents.scoring import Mode
from fluents.scoring.bootstrap import intervals


@pytest.fixture(scope="module")
def dev(mirror: Path) -> list[Trace]:  # noqa: ARG001 - it skips where the data is not
    return list(load_traces("openpi2:dev"))


def rated(name: str, *raters: tuple[str, list[float | None]], step: int | None = None) -> Trace:
    ratings = [
        Salience(entity=f"e{number}", rater=rater, step=step, value=value)
        for rater, values in raters
        for number, value in enumerate(values)
    ]
    return Trace(procedure=Procedure(id=name, steps=("Do it.",)), salience=tuple(ratings))


def score_of(gold: list[float | None], pred: list[float | None], mode: Mode = "compat") -> dict[str, dict[str, float]]:
    trace = rated("tea", ("A1", gold), ("me", pred))
    return salience([trace], [trace], mode=mode, rater="me").rows


@pytest.mark.parametrize(
    ("rater", "overall", "local"),
    [
        ("A2", ".759", ".578"),
        ("gpt-4", ".808", ".668"),
        ("gpt-3.5-turbo", ".797", ".550"),
        ("llama2-70", ".807", ".398"),
    ],
)
def test_released_ratings_get_their_published_correlations(
    dev: list[Trace], rater: str, overall: str, local: str
) -> None:
    score = salience(dev, dev, rater=rater)
    found = [f"{score[row]['r']:.3f}".lstrip("0") for row in ("global smoothed", "local smoothed")]
    assert found == [overall, local]
    assert score.n_procedures == 20
    assert score.warnings == ()


def test_the_appended_zero_makes_most_of_the_published_number(dev: list[Trace]) -> None:
    people, model = salience(dev, dev, rater="A2"), salience(dev, dev, rater="gpt-4")
    assert (f"{people['global raw']['r']:.3f}", people["global raw"]["undefined"]) == ("0.449", 4)
    assert (f"{model['global raw']['r']:.3f}", model["global raw"]["undefined"]) == ("0.475", 5)
    assert f"{people['global micro']['r']:.3f}" == "0.450"
    assert f"{people['global micro clamped']['r']:.3f}" == "0.464"


def test_strict_correlations_of_the_second_annotator(dev: list[Trace]) -> None:
    score = salience(dev, dev, rater="A2", mode="strict")
    assert {name: f"{row['r']:.3f}" for name, row in score.rows.items()} == {
        "global": "0.461",
        "local": "0.533",
        "global micro": "0.500",
        "local micro": "0.508",
    }
    low, high = intervals(score, resamples=200)["global micro"]["r"]
    assert low < score["global micro"]["r"] < high


def test_unrelated_ratings_look_alike_once_a_zero_is_appended() -> None:
    rows = score_of([4, 5, 4, 5], [5, 5, 4, 4])
    assert rows["global raw"]["r"] == pytest.approx(0)
    assert rows["global smoothed"]["r"] > 0.9


def test_a_constant_rater_has_no_raw_correlation() -> None:
    rows = score_of([1, 2, 3], [5, 5, 5], "strict")
    assert (rows["global"]["undefined"], rows["local"]["undefined"]) == (1, 1)
    assert all(np.isnan(rows[name]["r"]) for name in ("global", "global micro", "local micro"))


def test_compat_takes_unread_answers_for_1_and_out_of_range_for_0_where_the_script_does() -> None:
    rows = score_of([3, 5, -1], [None, 5, 2])
    assert rows["global smoothed"]["r"] == pytest.approx(np.corrcoef([3, 5, 0, 0], [1, 5, 2, 0])[0, 1])
    assert rows["global raw"]["r"] == pytest.approx(np.corrcoef([3, 5, -1], [1, 5, 2])[0, 1])
    assert rows["global micro clamped"]["r"] == pytest.approx(np.corrcoef([3, 5, 0], [1, 5, 2])[0, 1])


@pytest.mark.parametrize("mode", ["compat", "strict"])
@pytest.mark.parametrize("absurd", [1e308, 10**400])
def test_absurd_numbers_do_not_spoil_the_others(absurd: float, mode: Mode) -> None:
    assert all(
        np.isfinite(row["r"])
        for name, row in score_of([1, 2, 5, 4], [1, absurd, 4, 5], mode).items()
        if "global" in name
    )


def test_strict_leaves_out_what_is_not_a_rating() -> None:
    rows = score_of([3, 5, -1, 1, 2], [None, 5, 2, 0, 9], "strict")
    assert rows["global"]["r"] == pytest.approx(1)  # (5, 5) and (1, 0)


def test_the_rater_may_be_left_out_where_there_is_one() -> None:
    gold, pred = rated("tea", ("A1", [1, 2, 4])), rated("tea", ("model", [2, 3, 5]))
    assert salience([gold], [pred])["global raw"]["r"] == pytest.approx(1)
    both = rated("tea", ("A1", [1, 2, 4]), ("x", [1, 1, 2]), ("y", [1, 1, 2]))
    with pytest.raises(InputError, match="set `rater` to one of: x, y"):
        salience([both], [both])


def test_without_common_ratings_there_is_no_score() -> None:
    gold, pred = rated("tea", ("A1", [1, 2])), rated("tea", ("model", []))
    with pytest.raises(InputError, match="no procedure is rated by both"):
        salience([gold], [pred], rater="model")


def test_an_entity_only_one_rated_is_told_of_in_compat_and_refused_in_strict() -> None:
    gold, pred = rated("tea", ("A1", [1, 2, 3])), rated("tea", ("model", [1, 2]))
    assert "1 entity rated by only one" in salience([gold], [pred]).warnings[0]
    with pytest.raises(InputError, match="by only one of the two raters"):
        salience([gold], [pred], mode="strict")


def test_local_ratings_are_of_steps() -> None:
    gold = rated("tea", ("A1", [0, 2, 4]), ("me", [4, 2, 0]), step=1)
    assert salience([gold], [gold], rater="me")["local raw"]["r"] == pytest.approx(-1)


ratings = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=8)


@given(ratings)
def test_pearson_is_numpys(numbers: list[tuple[int, int]]) -> None:
    x, y = np.array(numbers, dtype=float).T
    found = pearson(x, y)
    if found is None:
        assert len(set(x)) == 1 or len(set(y)) == 1
    else:
        assert found == pytest.approx(np.corrcoef(x, y)[0, 1])


@given(st.lists(ratings, min_size=1, max_size=4), st.randoms())
def test_correlations_are_bounded_and_know_no_order(procedures: list[list[tuple[int, int]]], random: Random) -> None:
    def traces(shuffled: bool) -> list[Trace]:
        found = []
        for number, numbers in enumerate(procedures):
            mine = random.sample(numbers, len(numbers)) if shuffled else numbers
            found.append(rated(str(number), ("A1", [g for g, _ in mine]), ("me", [p for _, p in mine])))
        return random.sample(found, len(found)) if shuffled else found

    one, other = traces(False), traces(True)
    score, again = salience(one, one, rater="me"), salience(other, other, rater="me")
    for row, columns in score.rows.items():
        assert columns == pytest.approx(again[row], nan_ok=True, abs=1e-6)
        assert np.isnan(columns["r"]) or -1 <= columns["r"] <= 1
    mine = salience(one, one, rater="A1", mode="strict")
    assert all(np.isnan(row["r"]) or row["r"] == pytest.approx(1) for row in mine.rows.values())
