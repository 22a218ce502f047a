"""The correlation plot: one file that stands alone, says its numbers in words, and lets no text out of its place."""

from __future__ import annotations

from xml.etree import ElementTree

from fluents.report.plots import correlation_plot

SVG = "{http://www.w3.org/2000/svg}"
GOALS = {"1": "Make <tea> & toast", "2": "Boil\x1b water"}
RATERS: dict[str, dict[str, float | None]] = {"mine": {"1": 1.0, "2": -0.5}, "A2 <script>": {"1": 0.25, "2": None}}


def drawn() -> ElementTree.Element:
    return ElementTree.fromstring(correlation_plot("Agreement with A1", GOALS, RATERS))


def test_a_dot_for_every_correlation_that_is_defined() -> None:
    titles = [title.text for title in drawn().iter(f"{SVG}title")]
    assert [title for title in titles if title in ("mine: 1.00", "mine: −0.50", "A2 <script>: 0.25")] == [
        "mine: 1.00",
        "A2 <script>: 0.25",
        "mine: −0.50",
    ]
    assert not any(title == "A2 <script>: –" for title in titles)


def test_everything_it_shows_is_told_in_words() -> None:
    told = drawn().findtext(f"{SVG}desc") or ""
    assert told == "Make <tea> & toast: mine 1.00, A2 <script> 0.25; Boil� water: mine −0.50, A2 <script> –"


def test_raters_stand_at_their_places_and_in_their_rows() -> None:
    circles = [one for one in drawn().iter(f"{SVG}circle") if (one.findtext(f"{SVG}title") or "").count(":") == 1]
    places = {one.findtext(f"{SVG}title"): (float(one.get("cx", "")), float(one.get("cy", ""))) for one in circles}
    assert places["mine: 1.00"][0] > places["A2 <script>: 0.25"][0] > places["mine: −0.50"][0]
    assert places["A2 <script>: 0.25"][1] == places["mine: 1.00"][1] + 8


def test_the_legend_has_the_means() -> None:
    words = [one.text for one in drawn().iter(f"{SVG}text")]
    assert "A mine: mean 0.25 of 2" in words
    assert "B A2 <script>: mean 0.25 of 1" in words


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text = correlation_plot("Agreement", GOALS, RATERS)
    assert "<script" not in text
    assert text.count("http") == 1, "the name of the format alone"


def test_without_raters_there_is_still_a_figure() -> None:
    assert ElementTree.fromstring(correlation_plot("Nobody", {}, {})).tag == f"{SVG}svg"
