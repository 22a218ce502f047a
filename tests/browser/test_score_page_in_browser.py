"""The score report in a real browser: nothing asked for, nothing wider than the window, readable figures."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from fluents.records import Procedure, StateChange, Trace
from fluents.report.score_report import score_page, score_report

pytest_plugins = ["chromium"]
pytestmark = pytest.mark.slow

LONG = "unbreakable" * 40
BRIGHTNESS = """async png => {
    const image = new Image();
    image.src = "data:image/png;base64," + png;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), {width: image.width, height: image.height});
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const bytes = context.getImageData(0, 0, image.width, image.height).data;
    return bytes.reduce((sum, byte) => sum + byte, 0) / bytes.length;
}"""


def trace(name: str, entity: str) -> Trace:
    change = StateChange(step=1, entity=entity, attribute="heat", before="cold", after="hot")
    procedure = Procedure(id=name, goal=LONG, steps=("Boil <b>all</b>.",), topic=f"{name} {LONG}")
    return Trace(procedure=procedure, changes=(change,))


@pytest.mark.parametrize("width", [1200, 400])
def test_the_page_fits_and_asks_for_nothing(browser: Browser, tmp_path: Path, width: int) -> None:
    gold = [trace("a", "pot"), trace("b", LONG)]
    file = tmp_path / "scores.html"
    found = score_report("openpi:test", gold, {LONG: [trace("a", "pot"), trace("b", "lid")], "perfect": gold})
    file.write_text(score_page(found), encoding="utf-8")
    complaints: list[str] = []
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("request", lambda request: complaints.append(request.url) if request.url != file.as_uri() else None)
    tab.goto(file.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    smallest = "Math.min(...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height))"
    assert tab.evaluate(smallest) >= 9, "words in figures can be read"
    colour = "getComputedStyle(document.querySelector('svg .s0')).fill"
    assert tab.evaluate(colour) != "rgb(0, 0, 0)", "the style reaches the figures"
    assert complaints == []
    tab.close()


def test_a_table_that_is_cut_shows_that_it_goes_on(browser: Browser, tmp_path: Path) -> None:
    """A shadow lies on its right edge until it is scrolled to the end; a table that fits has none."""
    file = tmp_path / "scores.html"
    gold = [trace("a", "pot"), trace("b", "pan")]
    file.write_text(score_page(score_report("openpi:test", gold, {"mine": gold})), encoding="utf-8")
    tab, canvas = browser.new_page(viewport={"width": 400, "height": 900}), browser.new_page()

    def edge() -> float:
        """How bright the right edge of the table of published systems is."""
        frame = tab.locator(".sheet").nth(1)
        frame.scroll_into_view_if_needed()
        box = frame.bounding_box()
        assert box is not None
        left, height = box["x"] + box["width"] - 12, min(box["height"] - 80, 400)
        shot = tab.screenshot(clip={"x": left, "y": box["y"] + 60, "width": 8, "height": height})
        return float(canvas.evaluate(BRIGHTNESS, b64encode(shot).decode()))

    tab.goto(file.as_uri())
    cut = edge()
    tab.locator(".sheet").nth(1).evaluate("frame => frame.scrollLeft = frame.scrollWidth")
    at_the_end = edge()
    tab.set_viewport_size({"width": 1280, "height": 900})
    fitting = edge()
    assert cut < at_the_end - 10
    assert cut < fitting - 10
    tab.close()
    canvas.close()
