"""Sentences end where a reader would end them, and no word of the text is lost. Markup goes, words stay; what only
looks like markup stays too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.segmentation.passages import (
    WINDOW,
    ends_sentence,
    plain_text,
    readable,
    split_sentences,
    without_html_blocks,
)

ONE_SENTENCE = [
    "Add approx. 2.5 ml of ether, e.g. from the flask.",
    "Mix 2 tbsp. sugar, 1 tsp. of salt, 3 oz. flour and 5 ml. oil.",
    "Drill it 5 in. deep and 2 ft. wide.",
    "Preheat to 350 deg. F. and bake.",
    "See Fig. 2 or ask Dr. Hale about No. 5.",
    "Install v1.2.3 from https://example.org/a.B?c=D.E today.",
    "Stir (do not shake. Really.) and pour.",
    "“Stir (do not shake. Really.) and pour.”",
    'Shout "Clear. Now!" before you pull.',
    "Shout 'Clear. Now!' before you pull.",
    "Shout ‘Clear. Now!’ before you pull.",
    "Press the key marked «Go. Stop.» twice.",
    "Wait ... and wait… then pour.",
    "Weigh it at 3 p.m. and again at 5 a.m. on Monday.",
    "Pour. (Careful.)",
    "按「开始。停止」键两次。",
]


@pytest.mark.parametrize("text", ONE_SENTENCE)
def test_not_every_full_stop_ends_a_sentence(text: str) -> None:
    assert split_sentences(text) == [text]


@pytest.mark.parametrize("first", ONE_SENTENCE)
def test_next_sentence_still_starts(first: str) -> None:
    assert split_sentences(f"{first} Now rest.") == [first, "Now rest."]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Bake 20 min.", "Remove it."],
        ["Wait 2 hrs.", "Stir."],
        ['Grease a 9" pan.', 'Line a 12" pan.', "Don't stop.", "Use the cooks' spoon."],
        ["Open the lid (slowly.", "Then close it.", "Rest."],
        ["Read www.example.org/x.", "Then go."],
        ["He said “Stop.”", "They stopped."],
        ["Rinse.", "“Rinse” again.", "Dry."],
        ["mix it.", "then pour.", "done"],
        ["Is it hot?", "Then wait!", "Eat."],
        ["1. Boil.", "2. Pour."],
        ["पानी उबालें।", "चाय डालें।"],
    ],
    ids=lambda sentences: sentences[0],
)
def test_sentences_are_parted(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


@given(st.text().map(lambda text: " ".join(text.split())))
def test_nothing_is_lost(text: str) -> None:
    assert " ".join(split_sentences(text)).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    "sentence", ["Fold it in half. ", "Ask Dr. Hale (he knows. Really.) at 3 p.m. for 2 tbsp. salt! ", "对折。"]
)
def test_long_texts_are_split_like_short_ones(sentence: str) -> None:
    """sentencex sees a long text through a window: its edges must not show."""
    count = 3 * WINDOW // len(sentence)
    assert split_sentences((sentence * count).strip()) == [sentence.strip()] * count


def test_sentence_longer_than_the_window_stays_whole() -> None:
    long = "very " * WINDOW + "long."
    assert split_sentences(f"Short. {long} Short.") == ["Short.", long, "Short."]


@pytest.mark.parametrize("text", ["Stop.", "Stop!”", "(Stop.)", "停。", "Stop…"])
def test_ends_sentence(text: str) -> None:
    assert ends_sentence(text)


@pytest.mark.parametrize("text", ["", "Stop", "Stop:", "(a)", "2.5 ml"])
def test_does_not_end_sentence(text: str) -> None:
    assert not ends_sentence(text)


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
