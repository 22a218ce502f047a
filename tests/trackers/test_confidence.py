"""Confidences: features of a line's tokens, and a calibration that says what share of such changes is right."""

from __future__ import annotations

import math
import random
import runpy
from pathlib import Path

import pytest

from fluents.errors import InputError
from fluents.trackers.embedded import WrittenToken
from fluents.trackers.transcript import (
    FLOOR,
    ConfidenceModel,
    calibration_path,
    fit_calibration,
    line_features,
    read_calibrations,
)

_BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "confidence.py"))


def _tokens(*pairs: tuple[str, float]) -> list[WrittenToken]:
    return [WrittenToken(text.encode(), logprob) for text, logprob in pairs]


def test_each_field_of_each_line_has_the_mean_of_its_tokens() -> None:
    first = _tokens(("wa", -1), ("ter", -3), (" |", 0), (" heat", -0.5), (" |", -0.5), (" cold", -1), (" |", -1))
    first += _tokens((" hot", -20), ("\n", 0))
    second = _tokens(
        ("pot", -0.1), (" |", -0.1), (" place |", -0.2), (" here", 0), (" |", 0), (" there", 0), (".\n", 0)
    )
    features = line_features([*first, *second, WrittenToken(b"", -0.3)])
    assert features[0]["entity"] == pytest.approx(-4 / 3), "a separator belongs to the field before it"
    assert features[0]["attribute"] == -0.5
    assert features[0]["before"] == -1
    assert features[0]["after"] == FLOOR / 2
    assert features[0]["least"] == FLOOR
    assert features[0]["position"] == 0
    assert features[1]["attribute"] == -0.2
    assert features[1]["position"] == math.log(2)
    assert len(features) == 3, "the end token begins a line of its own"


def test_a_fitted_calibration_says_the_share_that_is_right() -> None:
    chance = random.Random(1)
    rows, right = [], []
    for _ in range(4000):
        sure = chance.uniform(-4, 0)
        rows.append({"entity": sure, "noise": chance.random(), "same": 1.0})
        right.append(chance.random() < 1 / (1 + math.exp(-(2 + 1.5 * sure))))
    fitted = fit_calibration(rows, right)
    assert fitted.weights["entity"] == pytest.approx(1.5, abs=0.15)
    assert abs(fitted.weights["noise"]) < 0.3
    assert fitted.weights["same"] == 0
    middle = [yes for row, yes in zip(rows, right, strict=True) if 0.55 < fitted(row) < 0.65]
    assert sum(middle) / len(middle) == pytest.approx(0.6, abs=0.08)


def test_a_confidence_is_a_probability_whatever_the_features() -> None:
    steep = ConfidenceModel(0.0, {"entity": 1000.0}, 0.0)
    assert (steep({"entity": 9.0}), steep({"entity": -9.0}), steep({"entity": 0.0})) == (1.0, 0.0, 0.5)


def test_all_right_and_all_wrong_can_be_fitted() -> None:
    rows = [{"entity": -0.1 * number} for number in range(20)]
    assert fit_calibration(rows, [True] * 20)(rows[0]) > 0.9
    assert fit_calibration(rows, [False] * 20)(rows[0]) < 0.1


def test_calibrations_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = calibration_path(tmp_path / "base.gguf")
    assert path.name == "base.confidence.json"
    assert read_calibrations(path) == {}
    ways = {"one pass": ConfidenceModel(0.25, {"entity": 1.5, "least": -0.001}, 0.3)}
    _BENCHMARK["write_calibrations"](ways, path)
    assert read_calibrations(path) == ways


@pytest.mark.parametrize("text", ["", "[]", '{"one pass": 3}', '{"one pass": {"base": 1}}'])
def test_a_damaged_file_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "base.confidence.json"
    path.write_text(text)
    with pytest.raises(InputError, match="calibration file") as caught:
        read_calibrations(path)
    assert caught.value.where == str(path)
