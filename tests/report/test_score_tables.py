"""Scores in the terminal and as JSON."""

from __future__ import annotations

import io
import json
import math

from rich.console import Console, RenderableType

from fluents.metrics.original import original
from fluents.report.published_results import published
from fluents.report.score_tables import (
    as_json,
    comparison_table,
    notes,
    parts_table,
    published_table,
    score_table,
    with_interval,
)
from fluents.scoring.bootstrap import Interval, compare, intervals
from fluents.scoring.score import Ratio, Score, Signature, Statistics, number

GOLD = {f"{name}||1": ["heat of pot was cold before and hot afterwards"] for name in "ab"}
SCORE = original(GOLD, GOLD)


def text(renderable: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(renderable)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_numbers() -> None:
    assert (number(3.14159), number(0.12345, 3), number(math.nan)) == ("3.14", "0.123", "–")
    assert with_interval(1, Interval(0, 2)) == "1.00 [0.00, 2.00]"
    assert with_interval(1, Interval(math.nan, 2)) == "1.00"
    assert with_interval(4, Interval(1, 8), 0) == "4 [1, 8]"


def test_a_table_with_and_without_intervals() -> None:
    assert "100.00 [100.00, 100.00]" in text(score_table(SCORE, intervals(SCORE, resamples=10)))
    assert "[" not in text(score_table(SCORE, None))
    assert text(notes(SCORE, with_intervals=False)).strip() == "2 procedures, 2 steps"


def test_published_numbers_stand_under_their_rows_and_gaps_show() -> None:
    shown = text(published_table(SCORE, published("original", "openpi-c:test"), "mine"))
    lines = {line[:20].strip(): line.split() for line in shown.splitlines()}
    assert lines["mine"][1:4] == ["100.00", "100.00", "100.00"]
    assert "– " in shown


def test_differences() -> None:
    found = compare(SCORE, SCORE, resamples=10)
    shown = text(comparison_table(found, ("ours.jsonl", "[red]theirs")))
    assert "0.00  [0.00, 0.00]" in shown
    assert shown.index("A: ours.jsonl") < shown.index("B: [red]theirs")


def test_parts_say_how_many_procedures_they_have_and_few_have_no_interval() -> None:
    shown = text(parts_table({"[b]all": SCORE, "few": SCORE}, {"[b]all": intervals(SCORE, resamples=10)}, "topic"))
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == ["by", "topic", "procedures", "steps", "f1"]
    assert ["rouge", "[b]all", "2", "2", "100.00", "[100.00,", "100.00]"] in lines
    assert ["rouge", "few", "2", "2", "100.00"] in lines
    assert "no interval for fewer than 10 procedures" in shown
    assert "fewer" not in text(parts_table({"all": SCORE}, {"all": intervals(SCORE, resamples=10)}, "topic"))


def test_json_has_null_for_what_is_no_number() -> None:
    statistics = Statistics.collect(("x",), [("a", 1, (math.nan,))])
    score = Score("toy", statistics, {"all": {"f1": Ratio("x")}}, Signature.of("toy", "strict"))
    assert json.loads(json.dumps(as_json(score), allow_nan=False))["scores"] == {"all": {"f1": None}}
