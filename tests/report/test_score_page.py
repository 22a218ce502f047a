"""A score report as a page and as Markdown: whole, escaped, self-contained."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt

from fluents.errors import InputError
from fluents.records import Procedure, StateChange, Trace
from fluents.report.score_report import ScoreReport, escaped, score_markdown, score_page, score_report
from strategies import maybe_words

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> \"'& | [x](javascript:alert(1)) `a` **b**\n# c\x1b\u202e"
)


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def trace(name: str, *said: str, topic: str | None = None) -> Trace:
    changes = tuple(
        StateChange(step=1, entity=words or "pot", attribute="heat", before="cold", after="hot") for words in said
    )
    return Trace(procedure=Procedure(id=name, goal="Cook", steps=("Boil.", "Eat."), topic=topic), changes=changes)


GOLD = [trace("a", "pot", "lid", topic="Food"), trace("b", "pan", topic="Health")]
PRED = [trace("a", "pot", "cup"), trace("b", "pan", "lid")]


def report(words: str = "pot") -> ScoreReport:
    gold = [trace(words if words.strip() else "x", words, topic=words), *GOLD]
    return score_report(words, gold, {words: [trace(gold[0].id, words), *PRED], "other": gold})


def test_published_systems_and_ours_are_sorted_by_f1() -> None:
    found = score_report("openpi:test", GOLD, {"mine": PRED, "perfect": GOLD})
    for metric in ("original", "cluster"):
        ranking = found.ranking(metric)
        f1 = [one.f1("rouge") for one in ranking]
        assert f1 == sorted(f1, reverse=True)
        assert {one.name for one in ranking if one.ours} == {"A mine", "B perfect"}
        assert len(ranking) == 2 + len(found.published[metric])
    names = [one.name for one in found.ranking("original")]
    for text in (score_page(found), score_markdown(found).replace("\\", "")):
        table = text[text.index("F1 compared with every published") :]
        places = [table.index(name) for name in names]
        assert places == sorted(places)


def test_the_page_has_scores_plots_errors_and_steps() -> None:
    html = score_page(score_report("openpi:test", GOLD, {"mine": PRED, "perfect": GOLD}))
    for words in ("Original metric", "Cluster metric", "BART + EMem + ECond", "By topic", "By position", "Error types"):
        assert words in html
    assert html.count('role="img"') == 4
    assert "metric:original|mode:compat" in html
    assert "100.00 [100.00, 100.00]" in html
    assert "exact match" in html


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    html = score_page(report(HOSTILE))
    elements = Elements(html).found
    assert not {tag for tag, _ in elements} & {"script", "img", "link", "iframe", "object", "a", "form"}
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on") or name == "style"]
    assert not set("\x1b\u202e") & set(html)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style
    digest = b64encode(sha256(style.group(1).encode()).digest()).decode()
    policy = next(attributes["content"] for tag, attributes in elements if tag == "meta" and "http-equiv" in attributes)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_ids_on_the_page_are_distinct_and_labels_lead_somewhere() -> None:
    elements = Elements(score_page(report())).found
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = " ".join(attributes.get("aria-labelledby") or "" for _, attributes in elements).split()
    assert set(named) <= set(ids)


def test_hostile_words_in_markdown_are_words() -> None:
    text = score_markdown(report(HOSTILE))
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert {tag for tag, _ in Elements(html).found} <= {
        "h1", "h2", "h3", "h4", "p", "ul", "li", "strong", "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert "javascript:alert(1)" in html, "it is shown, not followed"
    assert not set("\x1b\u202e") & set(text)


@settings(max_examples=25)
@given(maybe_words)
def test_any_words_give_whole_tables(words: str) -> None:
    shown = escaped(words)
    assert "\n" not in shown
    cells = MarkdownIt("commonmark").enable("table").render(f"| a | b |\n|---|---|\n| {shown} | end |\n")
    assert [tag for tag, _ in Elements(cells).found].count("td") == 2
    assert "<td>end</td>" in cells


def test_a_system_that_said_nothing_and_a_gold_without_topics() -> None:
    found = score_report("mine", [trace("a", "pot"), trace("b")], {"silent": []})
    html, text = score_page(found), score_markdown(found)
    assert "there are no predictions" in html
    assert "By topic" not in html
    assert "No published results are known" in text
    assert "predicted: nothing" in text


def test_one_procedure_has_no_intervals() -> None:
    assert "[" not in "".join(score_report("g", GOLD[:1], {"p": PRED[:1]}).systems[0].cells("original", "rouge"))


def test_parts_have_intervals_and_say_how_many_procedures_they_are() -> None:
    many = [trace(f"p{number}", "pot", *(["lid"] if number % 2 else []), topic="Food") for number in range(10)]
    found = score_report("g", [*many, GOLD[1]], {"p": [trace(one.id, "pot") for one in many] + PRED[1:]})
    html, text = score_page(found), score_markdown(found)
    assert re.search(r"Food \(10 procedures\), A: [\d.]+ \[[\d.]+, [\d.]+\]", html)
    assert re.search(r"Health \(1 procedure\), A: [\d.]+[;<]", html)
    assert re.search(r"\| Food \(10 procedures\) \| [\d.]+ \\\[[\d.]+, [\d.]+\\\] \|", text)
    assert re.search(r"\| Health \(1 procedure\) \| [\d.]+ \|", text)
    assert "step 2 (11 procedures)" in html


def test_without_predictions_there_is_no_report() -> None:
    with pytest.raises(InputError, match="no prediction"):
        score_report("g", GOLD, {})


def test_the_same_report_is_the_same_page() -> None:
    assert score_page(report()) == score_page(report())
