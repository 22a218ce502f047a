"""How long a browser takes to open, scroll, filter and switch a page of 60 steps and 150 entities.

    python benchmarks/page.py

It needs a Chromium on this machine. A frame of 16.7 ms is a smooth one.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from fluents.records import Procedure, Salience, StateChange, Trace
from fluents.report.trace_page import to_html

STEPS, ENTITIES, ROUNDS = 60, 150, 5
ATTRIBUTES = {
    "location": ("on table", "in pot", "in bowl", "in oven", "on rack"),
    "temperature": ("cold", "warm", "hot"),
    "state": ("raw", "cooked", "burnt", "whole", "chopped"),
    "cleanness": ("clean", "dirty"),
}
SCROLL = """async () => {
    const frames = [];
    let last = performance.now();
    const framed = [...document.querySelectorAll(".scroll")].find((frame) => frame.offsetHeight > 0);
    const moved = framed ?? document.documentElement;
    const bottom = moved.scrollHeight - moved.clientHeight;
    for (let at = 0; at < bottom; at += Math.max(120, bottom / 120)) {
        moved.scrollTop = at;
        const now = await new Promise(requestAnimationFrame);
        frames.push(now - last);
        last = now;
    }
    return frames;
}"""
SWITCH = """async (name) => {
    const start = performance.now();
    document.getElementById(name).click();
    await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done));
    return performance.now() - start;
}"""
SLIDE = """async (least) => {
    const start = performance.now();
    const slider = document.getElementById("least-confidence");
    slider.value = least;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done));
    return performance.now() - start;
}"""
OPENED = """() => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return [paint.startTime, performance.getEntriesByType("navigation")[0].loadEventEnd];
}"""


def large_trace() -> Trace:
    chance = random.Random(1)
    changes = []
    for entity in range(ENTITIES):
        for attribute, values in ATTRIBUTES.items():
            held = chance.choice(values)
            for step in sorted(chance.sample(range(1, STEPS + 1), chance.choice((0, 1, 1, 2, 3, 5)))):
                after = chance.choice([value for value in values if value != held])
                changes.append(
                    StateChange(
                        step=step,
                        entity=f"thing {entity}",
                        attribute=attribute,
                        before=held,
                        after=after,
                        confidence=round(chance.random(), 3),
                    )
                )
                held = after
    steps = tuple(f"Take thing {n} out of its place, and do with it what has to be done." for n in range(STEPS))
    return Trace(
        procedure=Procedure(goal="Do everything", steps=steps),
        changes=tuple(sorted(changes, key=lambda change: change.step)),
        salience=tuple(Salience(entity=f"thing {n}", rater="A1", value=1 + n % 5) for n in range(ENTITIES)),
    )


def _line(what: str, times: list[float]) -> None:
    ordered = sorted(times)
    worst = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    print(f"{what:<32} median {statistics.median(times):6.1f} ms   95 % within {worst:6.1f} ms")


def _measure(tab: Page, address: str) -> None:
    paints, loads = [], []
    for _ in range(ROUNDS):
        tab.goto(address)
        paint, load = tab.evaluate(OPENED)
        paints.append(paint)
        loads.append(load)
    _line("open: first paint", paints)
    _line("open: loaded", loads)
    for view in ("steps", "lifelines", "matrix"):
        _line(f"switch to {view}", [tab.evaluate(SWITCH, f"view-{view}")])
        _line(f"scroll {view}, a frame", tab.evaluate(SCROLL))
        _line(f"slide in {view}", [tab.evaluate(SLIDE, least) for least in (0.2, 0.4, 0.6, 0)])


def main() -> None:
    trace = large_trace()
    html = to_html(trace)
    print(f"{STEPS} steps, {ENTITIES} entities, {len(trace.changes)} changes, {len(html) / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(html, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        _measure(browser.new_page(viewport={"width": 1280, "height": 900}), file.as_uri())
        browser.close()


if __name__ == "__main__":
    main()
