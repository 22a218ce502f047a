"""Intervals and paired tests over procedures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluents.errors import InputError
from fluents.scoring import bootstrap
from fluents.scoring.bootstrap import FEWEST, compare, intervals, part_intervals
from fluents.scoring.score import Ratio, Score, Signature, Statistics, macro, micro

COLUMNS = ("x.precision", "x.recall", "x.f1", "hits", "predicted", "gold")
FIGURES = {"x": macro("x"), "x micro": micro(Ratio("hits", "predicted"), Ratio("hits", "gold"))}


def system(quality: float, procedures: int = 40, seed: int = 1, data: str = "00000000") -> Score:
    """A score over procedures of one to four steps, of which about `quality` is right."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(procedures):
        for step in range(1, 2 + number % 4):
            hits = int(random.binomial(6, quality))
            rows.append((f"p{number}", step, (hits / 6, hits / 8, hits / 7, hits, 6, 8)))
    return Score("toy", Statistics.collect(COLUMNS, rows), FIGURES, Signature.of("toy", "strict", data=data))


def test_intervals_agree_with_resampling_step_by_step() -> None:
    """The same procedures drawn one by one, their rows put together and scored anew."""
    score = system(0.5, procedures=12)
    random = np.random.default_rng(7)
    names = list(dict.fromkeys(score.statistics.procedures))
    rows = list(zip(score.statistics.procedures, score.statistics.steps, score.statistics.values, strict=True))
    drawn = []
    for _ in range(2000):
        sample = [row for i in random.integers(len(names), size=len(names)) for row in rows if row[0] == names[i]]
        statistics = Statistics.collect(COLUMNS, sample)
        drawn.append(Score("toy", statistics, FIGURES, score.signature)["x micro"]["f1"])
    found = intervals(score, seed=3)["x micro"]["f1"]
    assert found == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=1)


def test_an_interval_holds_its_figure_and_narrows_with_more_procedures() -> None:
    few, many = system(0.5, procedures=10), system(0.5, procedures=300)
    for score in (few, many):
        found = intervals(score)
        assert all(found[row][f].low < score[row][f] < found[row][f].high for row in found for f in found[row])
    wide, narrow = intervals(few)["x"]["f1"], intervals(many)["x"]["f1"]
    assert narrow.high - narrow.low < (wide.high - wide.low) / 2


def test_intervals_of_a_score_print_as_a_table() -> None:
    score = system(0.5)
    found = score.intervals(resamples=100)
    assert found == intervals(score, resamples=100)
    empty, title, heading, first, second = str(found).splitlines()
    assert (empty, title) == ("", "95 % confidence intervals")
    assert heading.split() == ["precision", "recall", "f1"]
    assert first.startswith("x ")
    assert second.startswith("x micro ")
    assert f"[{found['x']['f1'].low:.2f}, {found['x']['f1'].high:.2f}]" in first


def test_a_comparison_prints_both_systems_and_their_difference() -> None:
    first, second = system(0.7), system(0.3, seed=2)
    found = compare(first, second, resamples=200)
    heading, line, *_, signature = str(found).splitlines()
    assert heading.split("  ")[-1].strip() == "p (randomisation)"
    difference = found["x"]["precision"]
    for number in (first["x"]["precision"], second["x"]["precision"], difference.value, difference.interval.low):
        assert f"{number:.2f}" in line
    assert f"{difference.p_randomisation:.4f}" in line
    assert signature == str(first.signature)


def test_a_part_of_few_procedures_has_no_intervals() -> None:
    parts = {"few": system(0.5, procedures=FEWEST - 1), "enough": system(0.5, procedures=FEWEST)}
    assert part_intervals(parts) == {"enough": intervals(parts["enough"])}


def test_a_seed_fixes_the_result_and_a_level_the_width() -> None:
    score = system(0.5)
    assert intervals(score, seed=5) == intervals(score, seed=5)
    assert intervals(score, seed=5) != intervals(score, seed=6)
    assert intervals(score, level=0.5)["x"]["f1"].low > intervals(score, level=0.99)["x"]["f1"].low


def test_blocks_of_any_size_give_valid_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    score = system(0.5)
    whole = intervals(score)["x"]["f1"]
    monkeypatch.setattr(bootstrap, "_NUMBERS_AT_ONCE", 40 * 7)
    assert intervals(score)["x"]["f1"] == pytest.approx(whole, abs=0.5)


def test_a_system_does_not_differ_from_itself() -> None:
    score = system(0.5)
    for columns in compare(score, score, resamples=500).values():
        for difference in columns.values():
            assert (difference.value, difference.p_bootstrap, difference.p_randomisation) == (0, 1, 1)
            assert difference.interval == (0, 0)


def test_a_difference_by_rounding_alone_is_none() -> None:
    """The same answers, whose values differ in the tenth digit, as sums in another order do."""
    score = system(0.5)
    said = score.statistics
    rows = list(zip(said.procedures, said.steps, said.values * (1 + 1e-10), strict=True))
    other = Score("toy", Statistics.collect(COLUMNS, rows), FIGURES, score.signature)
    found = compare(score, other, resamples=200)
    assert found["x"]["f1"].value < 0
    assert (found["x"]["f1"].p_bootstrap, found["x"]["f1"].p_randomisation) == (1, 1)
    assert "-0.00" not in str(found)


def test_a_clear_difference_is_found_by_both_tests() -> None:
    difference = compare(system(0.7), system(0.3, seed=2), resamples=2000)["x"]["f1"]
    assert difference.value > 0
    assert difference.interval.low > 0
    assert difference.p_bootstrap == difference.p_randomisation == 1 / 2001


def test_equally_good_systems_are_seldom_told_apart() -> None:
    """At 5 % about one pair in twenty would be; of sixty, more than ten would be a broken test."""
    found = [compare(system(0.5, seed=2 * i), system(0.5, seed=2 * i + 1), resamples=400)["x"]["f1"] for i in range(60)]
    for test in ("p_bootstrap", "p_randomisation"):
        assert sum(getattr(difference, test) < 0.05 for difference in found) <= 10


def test_randomisation_agrees_with_all_exchanges_counted() -> None:
    """With four procedures there are sixteen ways to exchange the answers."""
    ours, theirs = system(0.8, procedures=4), system(0.4, procedures=4, seed=5)
    _, first = ours.statistics.by_procedure()
    _, second = theirs.statistics.by_procedure()
    figure = FIGURES["x micro"]["f1"]

    def gap(kept: list[bool]) -> float:
        mask = np.array(kept)[:, None]
        one, other = (np.where(mask, a, b).sum(axis=0) for a, b in ((first, second), (second, first)))
        return float(figure(ours.statistics.named(one)) - figure(ours.statistics.named(other)))

    gaps = [gap([bool(bits >> i & 1) for i in range(4)]) for bits in range(16)]
    share = np.mean([abs(value) >= abs(gaps[15]) - 1e-9 for value in gaps])
    found = compare(ours, theirs)["x micro"]["f1"]
    assert found.value == pytest.approx(100 * gaps[15])
    assert found.p_randomisation == pytest.approx(share, abs=0.02)


def test_the_order_of_procedures_does_not_matter() -> None:
    score, other = system(0.7), system(0.5, seed=2)
    backwards = Statistics(
        COLUMNS, other.statistics.procedures[::-1], other.statistics.steps[::-1], other.statistics.values[::-1]
    )
    turned = Score("toy", backwards, FIGURES, other.signature)
    assert compare(score, turned, resamples=300)["x"]["f1"].p_randomisation == pytest.approx(
        compare(score, other, resamples=300)["x"]["f1"].p_randomisation
    )


def test_scores_of_different_signatures_are_not_compared() -> None:
    with pytest.raises(InputError, match="data is 00000000 in the first and 11111111 in the second"):
        compare(system(0.5), system(0.5, data="11111111"))


def test_scores_over_different_procedures_are_not_compared() -> None:
    with pytest.raises(InputError, match="different procedures"):
        compare(system(0.5, procedures=5), system(0.5, procedures=6))


def test_the_name_of_a_file_is_not_taken_for_a_score() -> None:
    name: Any = "mine.jsonl"
    with pytest.raises(InputError, match="`second` must be a Score, not str"):
        compare(system(0.5), name)


def test_one_procedure_has_no_interval_and_nonsense_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="at least two procedures"):
        intervals(system(0.5, procedures=1))
    with pytest.raises(InputError, match="`resamples` must be at least 1, not 0"):
        intervals(system(0.5), resamples=0)
    with pytest.raises(InputError, match="`level` must be between 0 and 1, not 1"):
        intervals(system(0.5), level=1)
