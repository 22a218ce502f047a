"""Figures: escaped, described, and inside their frame."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from fluents.report.plots import WIDTH, Bar, Point, bars, letter, precision_recall
from fluents.scoring.bootstrap import Interval

HOSTILE = "<script>alert(1)</script>&\"'\x00\x1b\u202e"
percent = st.floats(0, 100)
some_bars = st.builds(Bar, percent, st.none() | st.builds(Interval, percent, percent))


def parsed(figure: Markup) -> ElementTree.Element:
    """Well-formed, with a title and a description that its label names."""
    root = ElementTree.fromstring(str(figure))
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    assert set((root.get("aria-labelledby") or "").split()) == ids
    assert len(ids) == 2
    return root


@given(st.dictionaries(st.text(), st.lists(st.none() | some_bars, max_size=8), max_size=4))
def test_bars_of_anything_are_well_formed_and_stay_inside(groups: dict[str, list[Bar | None]]) -> None:
    root = parsed(bars("f", HOSTILE, groups))
    assert {element.tag for element in root.iter()} <= {"svg", "title", "desc", "text", "rect", "line"}
    height = float((root.get("viewBox") or "").split()[3])
    for rect in root.iter("rect"):
        assert 0 <= float(rect.get("x") or 0) + float(rect.get("width") or 0) <= WIDTH
        assert float(rect.get("y") or 0) + 14 <= height
    lines = list(root.iter("line"))
    assert len(lines) == sum(bar is not None and bar.interval is not None for group in groups.values() for bar in group)
    assert all(26 <= float(line.get(end) or 0) <= WIDTH for line in lines for end in ("x1", "x2"))


@given(st.lists(st.builds(Point, st.text(), percent, percent, st.none() | st.integers(0, 30)), max_size=5))
def test_points_of_anything_are_well_formed_and_stay_inside(points: list[Point]) -> None:
    root = parsed(precision_recall("f", HOSTILE, points))
    circles = list(root.iter("circle"))
    assert len(circles) == len(points)
    height = float((root.get("viewBox") or "").split()[3])
    for circle in circles:
        assert 0 <= float(circle.get("cx") or -1) <= WIDTH
        assert 0 <= float(circle.get("cy") or -1) <= height


def test_the_description_says_every_value() -> None:
    told = parsed(bars("f", "t", {"Health": [Bar(31.75), None, Bar(5, Interval(4, 6.2))]})).findtext("desc")
    assert told == "Health, A: 31.8; Health, B: –; Health, C: 5.0 [4.0, 6.2]"
    told = parsed(precision_recall("f", "t", [Point("A rouge", 33.8, 41.1, 0)])).findtext("desc")
    assert told == "A rouge: precision 41.1, recall 33.8"


def test_hostile_words_are_words() -> None:
    figure = str(bars("f", "t", {HOSTILE: [Bar(1.0)]}))
    assert "<script" not in figure
    assert not set("\x00\x1b\u202e") & set(figure)


def test_letters_do_not_run_out() -> None:
    assert [letter(place) for place in (0, 25, 26, 53)] == ["A", "Z", "A2", "B3"]
