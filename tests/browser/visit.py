"""A visit to a page in a real browser: what every test of a page does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

SHOTS = Path(__file__).parents[2] / "scratch" / "screenshots"
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
"""Words that would do something if a page took them for markup."""


@contextmanager
def visiting(browser: Browser, address: str, start: str = "", **context: Any) -> Iterator[Page]:
    """A page that complains in the end about what its console said, and about requests that went elsewhere. `start` is
    where at the address it begins."""
    complaints: list[str] = []
    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "base_url": address} | context
    visit = browser.new_context(**options)
    tab = visit.new_page()
    tab.set_default_timeout(20_000)
    expect.set_options(timeout=20_000)
    tab.on("console", lambda message: complaints.append(message.text) if "load resource" not in message.text else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda one: complaints.append(one.url) if not one.url.startswith((address, "blob:")) else None)
    tab.goto(address + start)
    try:
        yield tab
    finally:
        visit.close()
    assert complaints == [], complaints


def to(tab: Page, name: str) -> None:
    """Press Tab until the focus is on something of that name, and can be seen."""
    said = "(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()"
    for _ in range(120):
        if str(tab.evaluate(said)).startswith(name):
            assert tab.evaluate("document.activeElement.matches(':focus-visible')")
            return
        tab.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {name!r}")


def serious_faults(tab: Page) -> dict[str, str]:
    """What axe finds: its rule, and the first element that breaks it."""
    answer = Axe().run(tab).response
    assert answer["passes"]
    return {
        one["id"]: one["nodes"][0]["html"] for one in answer["violations"] if one["impact"] in ("serious", "critical")
    }


def look_at(tab: Page, name: str) -> None:
    """Axe looks at the page, which must fit the window; a picture of it lies in scratch/screenshots."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=SHOTS / f"{name}.png")
    assert serious_faults(tab) == {}, name
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.evaluate(wide) == 0, name
