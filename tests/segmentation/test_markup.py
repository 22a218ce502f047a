"""Markup goes, words stay; what only looks like markup stays too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.segmentation.markup import plain_text, readable, without_html_blocks


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("**Wash** the *green* __leaves__ ~~twice~~", "Wash the green leaves twice"),
        ("see [the **map**](https://example.org/a_b) first", "see the map first"),
        ("![a drawing](fold.png) Fold it", "Fold it"),
        ("run `rm *.tmp` and `a_b_c`", "run rm *.tmp and a_b_c"),
        ("salt &amp; pepper&nbsp;at 5&#176;C", "salt & pepper at 5°C"),
        ('<span class="x">Cut</span> <b>here</b><br/>now<img src="a.png">', "Cut here now"),
        ("open <https://example.org>", "open https://example.org"),
        ("costs 5\\* here", "costs 5* here"),
        ("a\nb\t c\u00a0d\u3000e", "a b c d e"),
    ],
)
def test_markup_is_taken_off(marked: str, plain: str) -> None:
    assert plain_text(marked) == plain


@pytest.mark.parametrize(
    "text",
    [
        "cut 10*20*30 cm and 2 * 3",
        "type ssh <host> now",
        "if a <b and c> d",
        "set snake_case_name",
        "keep T < 5 and p > 3",
        "see [1] and (2)",
        "AT&T and R&D",
        "x **y",
    ],
)
def test_what_only_looks_like_markup_stays(text: str) -> None:
    assert plain_text(text) == text


@given(st.text())
def test_plain_text_is_one_readable_line(text: str) -> None:
    plain = plain_text(text)
    assert plain == " ".join(plain.split())
    assert plain == readable(plain)


def test_readable_keeps_what_spells_words() -> None:
    assert readable("\ufeffa\r\nb\rc\x00\x85d\ud800\u202e") == "a\nb\nc\nd"
    assert readable("क्\u200dष 👩\u200d🚒\tx") == "क्\u200dष 👩\u200d🚒\tx"


def test_html_lists_and_headings_become_lines() -> None:
    html = "<h2>Knot</h2><OL><li>Cut<ul><li>twice</li></ul></li><li>Pull</li></OL>one<br>two<p>three</p>"
    lines = [line for line in without_html_blocks(html).split("\n") if line.strip()]
    assert lines == ["## Knot", "1. Cut", "    - twice", "1. Pull", "one", "two", "three"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a<!-- b -->c", "ac"),
        ("a<script>b()</script>c<style>d{}</style>e", "ace"),
        ("a<table><tr><td>b</td></tr></table>c", "a\nc"),
        ("a<!-- <script> -->b", "ab"),
        ("a <!-- b", "a <!-- b"),
        ("a --> b", "a --> b"),
    ],
)
def test_what_no_reader_sees_goes(html: str, text: str) -> None:
    assert without_html_blocks(html) == text
