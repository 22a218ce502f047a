"""The page: whole, escaped, self-contained, the same every time."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import cast

import pytest
from hypothesis import example, given

from fluents import jsonl
from fluents.errors import InputError
from fluents.records import Alternatives, EntityCluster, Procedure, Provenance, Reject, Salience, StateChange, Trace
from fluents.report.trace_page import notebook_html, to_html, trace_fragment
from processor_time import assert_not_quadratic
from strategies import maybe_words, traces

FIXTURES = Path(__file__).parents[1] / "fixtures" / "page"

VOID = {"meta", "input", "link", "img", "br", "hr"}
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class Parsed(HTMLParser):
    """What a browser would make of the page: elements with their attributes, and the text right inside each."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[tuple[str, list[str]]] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append((tag, []))

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1][1].append(data)

    def handle_endtag(self, tag: str) -> None:
        opened, text = self._open.pop()
        assert opened == tag, f"<{opened}> closed by </{tag}>"
        self.texts.setdefault(tag, []).append("".join(text))

    @property
    def shape(self) -> set[tuple[str, str]]:
        """Every kind of element, and every kind of attribute on it."""
        return {(tag, name) for tag, attributes in self.elements for name in ("", *attributes)}

    @property
    def words(self) -> set[str]:
        return {text for tag in ("bdi", "span", "p") for text in self.texts.get(tag, ())}


@cache
def fixture(name: str) -> list[Trace]:
    return cast(list[Trace], list(jsonl.read(FIXTURES / f"{name}.jsonl")))


@cache
def our_shape() -> set[tuple[str, str]]:
    """All the markup the template can make, from traces with nothing hostile in them."""
    change = StateChange(
        step=1, entity="a", attribute="b", before="c", after="d", alternatives=Alternatives(before=("c", "e"))
    )
    odd = Trace(
        procedure=Procedure(id="odd", goal="g" * 500, steps=("One.", "Two.")),
        changes=(change, change.replace(step=2, before="not d")),
        covered=(1,),
        rejects=(Reject(text="x", reason="y"),),
    )
    many = tuple(change.replace(entity=f"e{n}") for n in range(3000))
    wide = Trace(procedure=Procedure(id="wide", steps=("Go.", "On.", "And on.")), changes=many)
    empty = odd.replace(changes=(), covered=None)
    pages = [
        to_html(fixture("predicted"), [*fixture("gold"), odd]),
        to_html(fixture("predicted")[:1]),
        to_html([wide, empty]),
        to_html([odd], [odd.replace(procedure=Procedure(id="odd", steps=("Else.",)), changes=(change,))]),
        to_html([]),
    ]
    return set().union(*(Parsed(html).shape for html in pages))


def shown(text: str) -> str:
    return UNSEEN.sub("�", text.replace("\r\n", "\n").replace("\r", "\n"))


def assert_only_our_markup(parsed: Parsed) -> None:
    assert parsed.shape <= our_shape()
    for tag, attributes in parsed.elements:
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in ("src", "srcset", "style", "action")
            if name in ("id", "for", "aria-controls", "href"):
                assert re.fullmatch(r"#?(p\d+([se]\d+)?(-\w+)?|filter|(view|least)-\w+|unpredicted)", value or ""), (
                    tag,
                    name,
                    value,
                )


HOSTILE = "</script></title><img src=//example.org onerror=alert(1)>\"'><!--\u202e\x00\x1b]0;&lt;&#x27;"
HOSTILE_TRACE = Trace(
    procedure=Procedure(id=HOSTILE, goal=HOSTILE, steps=(HOSTILE,), topic=HOSTILE, source=HOSTILE),
    changes=(StateChange(step=1, entity=HOSTILE, attribute=HOSTILE, before=HOSTILE, after=HOSTILE),),
    clusters=(EntityCluster(name=HOSTILE + "!", mentions=(HOSTILE,)),),
    rejects=(Reject(text=HOSTILE, reason=HOSTILE),),
    provenance=Provenance(tracker=HOSTILE, model=HOSTILE, prompt=HOSTILE, version=HOSTILE, dataset=HOSTILE),
)


@given(traces())
@example(HOSTILE_TRACE)
def test_every_text_comes_back_as_text_and_makes_no_markup(trace: Trace) -> None:
    for html in (to_html([trace]), to_html([trace, trace], [trace], title=trace.procedure.goal)):
        parsed = Parsed(html)
        assert_only_our_markup(parsed)
        procedure = trace.procedure
        expected = [procedure.goal or procedure.id, procedure.id, procedure.topic, procedure.source, *procedure.steps]
        for change in trace.changes:
            expected += [change.entity, change.attribute, change.before, change.after, *change.alternatives.attribute]
        expected += [words for reject in trace.rejects for words in (reject.text, reject.reason)]
        expected += [words for words in dict(trace.provenance).values() if isinstance(words, str)]
        missing = {shown(text) for text in expected if text} - parsed.words
        assert not missing


@given(maybe_words)
@example(HOSTILE)
@example("\ud800")
def test_a_title_is_text(title: str) -> None:
    html = to_html(fixture("predicted"), title=title)
    html.encode()  # a lone surrogate would make the page unwritable
    parsed = Parsed(html)
    assert_only_our_markup(parsed)
    assert parsed.texts["title"] == [shown(title)]


@given(traces())
def test_the_same_traces_make_the_same_page(trace: Trace) -> None:
    assert to_html([trace], [trace]) == to_html([trace.model_copy(deep=True)], [trace.model_copy(deep=True)])


def test_nothing_is_fetched() -> None:
    html = to_html(fixture("predicted"), fixture("gold"))
    assert "http:" not in html
    assert "https:" not in html
    assert "@import" not in html
    assert "url(" not in html
    tags = {tag for tag, _ in Parsed(html).elements}
    assert not tags & {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"}


def test_the_policy_names_the_hashes_of_the_style_and_the_script_and_nothing_else() -> None:
    (policy,) = (
        attributes["content"]
        for tag, attributes in Parsed(to_html([])).elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    sha256 = r"'sha256-[A-Za-z0-9+/]{43}='"
    assert re.fullmatch(
        f"default-src 'none'; style-src {sha256}; script-src {sha256}; base-uri 'none'; form-action 'none'",
        policy or "",
    )


def test_what_a_reader_finds_in_it() -> None:
    html = to_html(fixture("predicted"), fixture("gold"))
    parsed = Parsed(html)
    assert parsed.texts["h2"] == ["", ""]  # the goals stand in <bdi>
    assert {"Make tomato soup", "Mend a flat bicycle tyre", "changes-v1", "example-135m", "0.1.0"} <= parsed.words
    assert "27 changes, 18 in gold, 7 exact matches" in html
    assert "no gold for this procedure" in html
    headers = [attributes for tag, attributes in parsed.elements if tag == "th"]
    assert {attributes.get("scope") for attributes in headers} == {"col", "colgroup", "row"}
    assert 'does not end in "afterwards"' in parsed.words
    steps = [[str(n) for n in range(1, count + 1)] * 2 for count in (6, 4)]  # in lifelines, in the matrix
    assert [text for text in parsed.texts["a"] if text.isdecimal()] == [*steps[0], *steps[1]]


def test_a_mark_is_explained_only_where_it_is_used() -> None:
    plain = Trace(
        procedure=Procedure(id="p", steps=("Go.",)),
        changes=(StateChange(step=1, entity="a", attribute="b", before="c", after="d"),),
    )
    for mark in ("◇", "✓", "★", "<meter"):
        assert mark in to_html(fixture("predicted"), fixture("gold"))
        assert mark not in to_html([plain])


@pytest.mark.parametrize(("before", "after", "expected"), [("", "", "colour"), ("red", "", "colour: red → —")])
def test_a_state_that_is_not_said_is_not_invented(before: str, after: str, expected: str) -> None:
    change = StateChange(step=1, entity="sky", attribute="colour", before=before, after=after)
    html = to_html([Trace(procedure=Procedure(id="p", steps=("Wait.",)), changes=(change,))])
    [said] = re.findall('<li class="change"[^>]*>(.*?)</li>', html, re.DOTALL)
    assert " ".join(re.sub("<[^>]*>", "", said).split()) == expected


def test_steps_without_changes_and_without_answers_say_so() -> None:
    html = to_html([Trace(procedure=Procedure(id="p", steps=("Wait.", "See.")), covered=(1,))])
    assert [text for text in Parsed(html).texts["li"] if text.strip()] == ["no changes", "not answered"]
    assert "There are no procedures to show." in to_html([])


def test_gold_that_nobody_predicted_is_named_and_gold_that_comes_twice_is_an_error() -> None:
    html = to_html(fixture("predicted")[1:], fixture("gold"))
    assert "In gold but not predicted" in html
    assert "tomato-soup" in Parsed(html).words
    with pytest.raises(InputError, match="have the same id, tomato-soup"):
        to_html(fixture("predicted"), fixture("gold") * 2)


def test_a_long_text_stands_whole_somewhere() -> None:
    entity, attribute, before, after, reason, said, goal, step = words = [letter * 20_000 for letter in "abcdefgh"]
    change = StateChange(step=1, entity=entity, attribute=attribute, before=before, after=after)
    procedure = Procedure(id="p", goal=goal, steps=(step,))
    trace = Trace(procedure=procedure, changes=(change,), rejects=(Reject(text=said, reason=reason),))
    assert set(words) <= Parsed(to_html([trace])).words


def test_long_texts_are_whole_once_and_short_where_they_are_repeated() -> None:
    """Else a step of 20,000 characters would be written again for each of its changes."""
    long = "x" * 20_000
    changes = tuple(StateChange(step=1, entity=f"e{n}", attribute="a", before="b", after="c") for n in range(100))
    trace = Trace(procedure=Procedure(id="p", goal=long, steps=(long,)), changes=changes)
    html = to_html([trace])
    assert html.count(long) == 2
    assert len(html) < 250_000


def test_time_and_size_of_a_page_grow_with_its_changes() -> None:
    def work(size: int) -> None:
        steps = tuple(f"Do the {n}th thing." for n in range(200))
        changes = tuple(
            StateChange(
                step=1 + n % 200, entity=f"thing {n}", attribute="place", before="here", after="there", support=0.5
            )
            for n in range(size)
        )
        assert len(to_html([Trace(procedure=Procedure(id="p", steps=steps), changes=changes)])) < 2_000 * size + 200_000

    assert_not_quadratic(work, 2000)


def _luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_of_text_has_contrast_enough_on_every_ground(scheme: str) -> None:
    """WCAG 2 AA: 4.5 to 1."""
    css = resources.files("fluents.report").joinpath("assets", "page.css").read_text(encoding="utf-8")
    block = css.split(":root {")[1 if scheme == "light" else 2].split("}")[0]
    colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    for ground in ("paper", "card", "tint", "exact-tint", "gold-tint"):
        for ink in ("ink", "quiet", "accent", "exact", "gold"):
            low, high = sorted((_luminance(colour[ground]), _luminance(colour[ink])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)


@given(traces())
@example(HOSTILE_TRACE)
def test_a_notebook_gets_the_page_in_a_frame_and_a_table_and_every_text_stays_text(trace: Trace) -> None:
    shown_there = Parsed(notebook_html(trace))
    assert {tag for tag, _ in shown_there.elements} <= {
        *("iframe", "details", "summary", "table", "tr", "th", "td", "i"),
    }
    [frame] = (attributes for tag, attributes in shown_there.elements if tag == "iframe")
    assert frame["srcdoc"] == to_html(trace)
    assert frame["sandbox"] == "allow-scripts"  # not of the notebook's origin: it can touch nothing there
    assert {shown(change.after) for change in trace.changes if change.after} <= set(shown_there.texts["td"])


def test_a_fragment_is_the_page_without_title_style_and_script() -> None:
    trace = fixture("predicted")[0]
    fragment = trace_fragment(trace)
    assert fragment.strip() in to_html(trace)
    assert not {tag for tag, _ in Parsed(fragment).elements} & {"html", "style", "script", "h1"}


def test_a_page_has_a_slider_for_every_number_its_changes_have() -> None:
    change = StateChange(step=1, entity="pot", attribute="heat", before="cold", after="hot")
    trace = Trace(procedure=Procedure(goal="Cook", steps=("Heat it.",)), changes=(change,))

    def sliders(trace: Trace) -> list[str | None]:
        return [one["id"] for tag, one in Parsed(to_html(trace)).elements if tag == "input" and one["type"] == "range"]

    assert sliders(trace) == []
    rated = trace.replace(changes=(change.replace(confidence=0.9, support=0.5),))
    assert sliders(rated) == ["least-confidence", "least-support"]
    assert sliders(rated.replace(salience=(Salience(entity="pot", rater="A1", value=4),)))[-1] == "least-salience"


def test_a_confidence_is_shown_and_explained_and_decides_before_support() -> None:
    change = StateChange(step=1, entity="pot", attribute="heat", before="cold", after="hot", support=0.9)
    trace = Trace(procedure=Procedure(goal="Cook", steps=("Heat it.",)), changes=(change.replace(confidence=0.31),))
    page = to_html([trace])
    assert "0.31" in page
    assert "confidence: how likely" in page
    assert page.count(" in grey") == 1
    assert 'class="change unsure"' in page
    assert 'class="change unsure"' not in to_html([trace.replace(changes=(change,))])
