"""A text while it is tracked, as a visitor of the web application sees it: a real server, a real browser, a replayed
model that takes its time."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from served_web import Served, give, served
from visit import HOSTILE, serious_faults, visiting

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from fluents.web.jobs import Jobs
from fluents.web.store import Store

pytest_plugins = ["chromium"]
pytestmark = pytest.mark.slow

LONG = 10.0
"""Seconds for a step: nobody who acts upon the first one comes too late, however busy the machine is."""
LATEST = 60_000
"""Milliseconds until the first step, which also waits for the worker."""


def begin(tab: Page) -> None:
    """Track a text until its first changes are there."""
    give(tab)
    tab.get_by_role("button", name="Track the changes").click()
    expect(tab.locator("li.change").first).to_be_visible(timeout=LATEST)


def hurry(server: Served) -> None:
    """The server again, with a model that takes no time."""
    server.kill()
    server.pause = 0
    server.start()


def test_the_chosen_view_and_filter_stay_when_a_job_is_done(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, pause=0.7) as (_, address), visiting(browser, address) as tab:
        give(tab)
        tab.get_by_role("button", name="Track the changes").click()
        expect(tab.locator("li.change").first).to_be_visible()
        tab.get_by_role("radio", name="Lifelines").check()
        tab.get_by_label("Confidence from").fill("0.5")
        expect(tab.locator("summary", has_text="Download")).to_be_visible()  # only a trace has it
        expect(tab.locator("output.found")).to_have_text("2 of 3 entities, 4 of 5 changes")
        expect(tab.locator("tbody.lifeline:visible")).to_have_count(2)


TIMED = """() => {
  let clicked;
  addEventListener("click", () => (clicked = performance.now()), { capture: true, once: true });
  new MutationObserver(() => {
    if (!clicked || !document.querySelector(".lead").innerText.includes("Cancelled after")) return;
    window.waited ??= performance.now() - clicked;
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""The page's own clock runs from the next click until the reader is told: what a busy test waits for does not count."""


def test_a_job_is_cancelled_within_two_seconds_keeps_its_steps_and_goes_on(browser: Browser, tmp_path: Path) -> None:
    """A step takes much longer than that: whoever waits for its end is too late each time. A busy machine may be late
    too, but not three times."""
    with served(tmp_path, pause=LONG) as (server, address), visiting(browser, address) as tab:
        waited: list[float] = []
        while len(waited) < 3 and min(waited, default=math.inf) > 2_000:
            tab.goto(address)
            begin(tab)
            tab.evaluate(TIMED)
            with tab.expect_event("requestfinished", lambda one: one.url.endswith("/events")):
                tab.get_by_role("button", name="Cancel").click()
            expect(tab.get_by_text(re.compile("Cancelled after [1-3] of 4 steps"))).to_be_visible()
            waited.append(tab.evaluate("window.waited"))
        assert min(waited) <= 2_000, f"milliseconds until each job was cancelled: {waited}"
        expect(tab.get_by_text("The connection to the server is lost")).to_be_hidden()
        assert serious_faults(tab) == {}
        hurry(server)
        tab.reload()
        expect(tab.locator("li.change").first).to_be_visible()
        tab.get_by_role("button", name="Resume").click()
        tab.wait_for_url("**/?trace=*")
        expect(tab.locator("li.change")).to_have_count(5)


def warn(server: Served, job: str, message: str) -> None:
    """As the model would, while the job runs; the page hears of it with the next step."""
    with Store(server.folder / "web.sqlite", beside=True) as store:
        Jobs(store).warn(job, message)


def test_warnings_of_the_model_are_shown_with_the_job_and_with_its_trace(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, pause=LONG) as (server, address), visiting(browser, address) as tab:
        give(tab)
        tab.get_by_role("button", name="Track the changes").click()
        tab.wait_for_url("**/?job=*")
        warn(server, tab.url.rpartition("=")[2], f"the text is too long: {HOSTILE}; give `base_url`")
        warning = tab.get_by_text(f"The text is too long: {HOSTILE}; give --base-url.", exact=True)
        expect(warning).to_be_visible(timeout=LATEST)
        tab.get_by_role("button", name="Cancel").click()
        tab.get_by_role("button", name="Resume").wait_for()
        hurry(server)
        tab.reload()
        expect(warning).to_be_visible()
        assert serious_faults(tab) == {}
        tab.get_by_role("button", name="Resume").click()
        expect(tab.locator("summary", has_text="Download")).to_be_visible()
        expect(warning).to_have_count(1)
        assert tab.evaluate("window.hacked") is None


def test_a_killed_server_comes_back_and_the_job_goes_on(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, pause=LONG) as (server, address), visiting(browser, address) as tab:
        begin(tab)
        server.kill()
        expect(tab.get_by_text("The connection to the server is lost")).to_be_visible()
        expect(tab.locator("li.change").first).to_be_visible()
        server.pause = 0
        server.start()
        expect(tab.get_by_text("The connection to the server is lost")).to_be_hidden()
        tab.wait_for_url("**/?trace=*")
        expect(tab.locator("li.change")).to_have_count(5)


def test_a_running_job_whose_text_is_deleted_elsewhere_is_gone(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, pause=LONG) as (_, address), visiting(browser, address) as tab:
        begin(tab)
        job = tab.request.get(f"{address}api/v1/jobs/{tab.url.rpartition('=')[2]}").json()
        assert tab.request.delete(f"{address}api/v1/documents/{job['document']}").ok
        gone = tab.get_by_role("heading", name="This is not here any more")
        cancelled = tab.get_by_text("Cancelled after")  # comes first; the page may ask too early what became of it
        expect(gone.or_(cancelled)).to_be_visible()
        expect(tab.get_by_text("The connection to the server is lost")).to_be_hidden()
        tab.reload()
        expect(gone).to_be_visible()
