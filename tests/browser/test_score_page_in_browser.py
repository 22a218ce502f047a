"""The score report in a real browser: nothing asked for, nothing wider than the window, readable figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from fluents.records import Procedure, StateChange, Trace
from fluents.report.score_report import score_page, score_report

pytest_plugins = ["chromium"]
pytestmark = pytest.mark.slow

LONG = "unbreakable" * 40


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
