"""The page as a reader meets it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from playwright.sync_api import Browser, Page, expect

from fluents import jsonl
from fluents.records import EntityCluster, Procedure, Reject, StateChange, Trace
from fluents.report.trace_page import to_html

pytest_plugins = ["chromium"]
pytestmark = pytest.mark.slow

Open: TypeAlias = Callable[..., Page]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "page"


def traces(name: str) -> list[Trace]:
    return cast(list[Trace], list(jsonl.read(FIXTURES / f"{name}.jsonl")))


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens a page from a file. Whatever it complains about, or asks the network for, fails the test in the end."""
    complaints: list[str] = []
    contexts = []

    def open_page(html: str, width: int = 1200, **context: Any) -> Page:
        file = tmp_path / "page.html"
        file.write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **context))
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: complaints.append(request.url) if request.url != file.as_uri() else None)
        tab.goto(file.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def show(tab: Page, view: str) -> None:
    """Switch to a view, where that can be done."""
    if tab.locator(".views").is_visible():
        tab.get_by_role("radio", name=view).check()


def overflow(tab: Page) -> int:
    """How many pixels the page is wider than its window."""
    return cast(int, tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def history_of(tab: Page, entity: str) -> Any:
    return tab.locator("tr.history").filter(has_text=f"History of {entity}").first


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("width", [1200, 400])
def test_a_click_on_an_entity_opens_and_closes_its_history_even_without_scripts(
    opened: Open, width: int, scripts: bool
) -> None:
    tab = opened(to_html(traces("predicted")[:1]), width, java_script_enabled=scripts)
    show(tab, "Matrix")
    history, summary = history_of(tab, "stove"), tab.locator("tr.entity summary", has_text="stove")
    expect(history).to_be_hidden()
    summary.click()
    expect(history).to_be_visible()
    expect(history.locator("ol > li")).to_have_count(2)
    expect(history.locator("ol > li").first).to_contain_text("Step 1")
    expect(history.locator("ol > li").last).to_contain_text("heat: high → low")
    summary.click()
    expect(history).to_be_hidden()


def test_the_keyboard_reaches_an_entity_shows_where_it_is_and_opens_its_history(opened: Open) -> None:
    tab = opened(to_html(traces("predicted")[:1]))
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("radio", name="Steps")).to_be_focused()
    tab.keyboard.press("ArrowRight")
    expect(tab.locator(".lifelines")).to_be_visible()
    tab.keyboard.press("ArrowRight")
    expect(tab.locator(".lifelines")).to_be_hidden()
    for _ in range(30):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.matches('tr.entity summary')"):
            break
    assert tab.evaluate("document.activeElement.textContent.trim()") == "soup"
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    expect(history_of(tab, "soup")).to_be_hidden()
    tab.keyboard.press("Enter")
    expect(history_of(tab, "soup")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_gold_stands_beside_the_prediction_and_exact_matches_are_marked(opened: Open, scheme: str) -> None:
    tab = opened(to_html(traces("predicted"), traces("gold")), color_scheme=scheme)
    groups = tab.locator("#p1 li.group").filter(has=tab.locator(".name", has_text=re.compile("^lid$")))
    predicted, gold = groups.all()
    left, right = predicted.bounding_box(), gold.bounding_box()
    assert left
    assert right
    assert right["x"] > left["x"]
    for group in (predicted, gold):
        expect(group).to_contain_text("off the pot → on the pot")
        expect(group.locator(".exact")).to_have_count(1)
    expect(tab.locator("#p2")).to_contain_text("no gold for this procedure")


@pytest.mark.parametrize("width", [400, 1280, 1920])
@pytest.mark.parametrize("steps", [5, 12, 30])
def test_the_first_screen_is_the_steps_with_their_changes_and_the_matrix_fits(
    opened: Open, width: int, steps: int
) -> None:
    """It used to be a matrix, nearly empty, 5,000 pixels wide at 30 steps."""
    tab = opened(to_html([long_trace(steps)]), width)
    change = tab.locator(".step .change").first
    box = change.bounding_box()
    assert box
    assert box["y"] < 900
    assert overflow(tab) == 0
    show(tab, "Lifelines")
    assert overflow(tab) == 0
    show(tab, "Matrix")
    matrix = cast(int, tab.evaluate("document.querySelector('.matrix').offsetWidth"))
    assert matrix <= (width if width > 400 else 1000)


def long_trace(steps: int) -> Trace:
    changes = tuple(
        StateChange(step=step, entity=f"thing {n}", attribute=attribute, before="here", after="over there", support=0.3)
        for step in range(1, steps + 1)
        for n in range(3)
        for attribute in ("location", "state")
    )
    return Trace(
        procedure=Procedure(goal="Go far", steps=[f"Do the {n}th thing." for n in range(steps)]), changes=changes
    )


def test_a_change_that_few_samples_support_is_grey(opened: Open) -> None:
    tab = opened(to_html([long_trace(1), long_trace(1).replace(changes=(_sure(),))]))
    ink = "element => getComputedStyle(element).color"
    assert tab.locator("#p1 .after").first.evaluate(ink) != tab.locator("#p2 .after").first.evaluate(ink)


def _sure() -> StateChange:
    return StateChange(step=1, entity="thing", attribute="state", before="here", after="there", support=0.9)


@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_is_wider_than_the_window(opened: Open, width: int) -> None:
    """Tables may scroll, but in a frame of their own."""
    for html in (to_html(traces("predicted"), traces("gold")), to_html([hostile_trace()], [hostile_trace()])):
        tab = opened(html, width)
        for view in ("Steps", "Lifelines", "Matrix"):
            show(tab, view)
            assert overflow(tab) == 0


def hostile_trace() -> Trace:
    attack = (
        "<img src='https://example.org/x.png' onerror='window.hacked=1'>\"><svg onload=window.hacked=1>"
        "</script></style></title><script>window.hacked=1</script><a href='javascript:window.hacked=1'>\u202e\x00\x1b"
    )
    word = attack + "W" * 20_000
    return Trace(
        procedure=Procedure(id=word, goal=word, steps=(word, "Rest."), topic=word, source=word),
        changes=(
            StateChange(step=1, entity=word, attribute=word, before=word, after=word, mentioned=False, support=0.5),
        ),
        clusters=(EntityCluster(name=attack, mentions=(word,)),),
        rejects=(Reject(text=word, reason=word),),
    )


def test_a_hostile_text_is_only_ever_text(opened: Open) -> None:
    tab = opened(to_html([hostile_trace(), hostile_trace()], [hostile_trace()], title=hostile_trace().id))
    show(tab, "Lifelines")
    show(tab, "Matrix")
    tab.locator("tr.entity summary").first.click()
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("img, svg, main script, a:not([href^='#'])").count() == 0


def test_the_policy_stops_a_script_that_is_not_the_page_s_own(browser: Browser, tmp_path: Path) -> None:
    """The second line of defence, should an escape ever be forgotten."""
    file = tmp_path / "page.html"
    file.write_text(to_html([]).replace("</main>", "<script>window.hacked = 1</script></main>"), encoding="utf-8")
    tab = browser.new_page()
    tab.goto(file.as_uri())
    assert tab.evaluate("window.hacked") is None
    tab.close()


def test_the_filter_keeps_the_entities_and_procedures_that_match(opened: Open) -> None:
    tab = opened(to_html(traces("predicted")))
    show(tab, "Matrix")
    box, entities = tab.get_by_label("Find"), tab.locator("tr.entity:visible")
    expect(entities).to_have_count(19)
    box.fill("BURNER")  # a wording of "stove", in another case
    expect(entities).to_have_count(1)
    expect(entities).to_contain_text("stove")
    expect(tab.locator("output.found")).to_contain_text("1 of 19 entities")
    expect(tab.locator("#p2")).to_be_hidden()
    expect(tab.locator("nav li:visible")).to_have_count(1)
    tab.locator("tr.entity summary:visible").click()
    expect(tab.locator("tr.history:visible")).to_have_count(1)
    box.fill("no such thing")
    expect(entities).to_have_count(0)
    expect(tab.locator("tr.history:visible")).to_have_count(0)
    box.fill("")
    expect(entities).to_have_count(19)
    expect(tab.locator("#p2")).to_be_visible()


def test_without_scripts_all_views_stand_in_order_and_no_control_does_nothing(opened: Open) -> None:
    tab = opened(to_html(traces("predicted")), java_script_enabled=False)
    expect(tab.locator("#filter")).to_be_hidden()
    expect(tab.locator(".views")).to_be_hidden()
    expect(tab.locator("tr.entity:visible")).to_have_count(19)
    expect(tab.locator("tbody.lifeline:visible")).to_have_count(19)
    expect(tab.locator("li.change").first).to_be_visible()


def test_paper_holds_every_change_and_no_controls(opened: Open) -> None:
    tab = opened(to_html(traces("predicted")), 700)
    tab.emulate_media(media="print")
    expect(tab.locator("#filter")).to_be_hidden()
    expect(tab.locator("tbody.lifeline:visible")).to_have_count(19)
    expect(tab.locator("li.change:visible")).to_have_count(sum(len(trace.changes) for trace in traces("predicted")))
    assert overflow(tab) == 0


def test_a_band_says_its_value_in_words_and_ends_where_the_next_begins(opened: Open) -> None:
    tab = opened(to_html(traces("predicted")[:1]))
    show(tab, "Lifelines")
    stove = tab.locator("tbody.lifeline").filter(has_text="stove")
    bands = stove.locator("tr.track").filter(has_text="heat").locator(".band")
    expect(bands).to_have_text(["high", "low"])
    left, right = (band.bounding_box() for band in bands.all())
    assert left
    assert right
    assert abs(left["x"] + left["width"] - right["x"]) < 2
    edges = [band.locator(".value").evaluate("band => getComputedStyle(band).borderLeftColor") for band in bands.all()]
    assert edges[0] != edges[1]


def test_an_entity_closes_to_its_first_track_even_without_scripts(opened: Open) -> None:
    tab = opened(to_html([long_trace(2)]), java_script_enabled=False)
    thing = tab.locator("tbody.lifeline").first
    expect(thing.locator("tr.track:visible")).to_have_count(2)
    thing.locator("summary").click()
    expect(thing.locator("tr.track:visible")).to_have_count(1)
    expect(thing.locator(".further")).to_have_text("+1")


def test_a_slider_keeps_what_is_sure_enough_in_every_view(opened: Open) -> None:
    sure, unsure = _sure(), _sure().replace(entity="other", attribute="place", support=0.2)
    tab = opened(to_html([long_trace(1).replace(changes=(sure, unsure))]))
    tab.get_by_label("Support from").fill("0.5")
    expect(tab.locator("li.change:visible")).to_have_count(1)
    expect(tab.locator("output.found")).to_have_text("1 of 2 entities, 1 of 2 changes")
    show(tab, "Lifelines")
    expect(tab.locator("tbody.lifeline:visible")).to_have_count(1)
    show(tab, "Matrix")
    expect(tab.locator("tr.entity:visible")).to_have_count(1)
    tab.get_by_label("Support from").fill("0")
    expect(tab.locator("tr.entity:visible")).to_have_count(2)


def test_a_step_number_over_the_lifelines_leads_to_the_step(opened: Open) -> None:
    tab = opened(to_html([long_trace(30)]))
    show(tab, "Lifelines")
    tab.locator(".lifelines thead a", has_text="25").click()
    expect(tab.locator("#p1s25")).to_be_in_viewport()


def test_a_notebook_s_frame_shows_the_views(opened: Open) -> None:
    tab = opened("<!doctype html><title>notebook</title>" + traces("predicted")[0]._repr_html_())
    frame = tab.frame_locator("iframe")
    expect(frame.locator("li.change").first).to_be_visible()
    frame.get_by_role("radio", name="Lifelines").check()
    expect(frame.locator(".lifelines")).to_be_visible()
