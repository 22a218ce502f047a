"""A server with a replayed model for the tests of its page, and what visitors do there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from fluents import jsonl
from fluents.records import Procedure, StateChange, Trace

STEPS = ("Heat the pan.", "Crack the egg into it.", "Fry the egg.", "Serve the egg.")
TEXT = "# Fry an egg\n\n" + "\n".join(f"{n}. {step}" for n, step in enumerate(STEPS, start=1))


def change(step: int, entity: str, attribute: str, before: str, after: str, confidence: float) -> StateChange:
    return StateChange(
        step=step, entity=entity, attribute=attribute, before=before, after=after, confidence=confidence, mentioned=True
    )


TRACE = Trace(
    procedure=Procedure(goal="Fry an egg", steps=STEPS),
    changes=(
        change(1, "pan", "temperature", "cold", "hot", 0.9),
        change(2, "egg", "location", "in shell", "in pan", 0.8),
        change(2, "shell", "state", "whole", "cracked", 0.3),
        change(3, "egg", "state", "raw", "fried", 0.7),
        change(4, "egg", "location", "in pan", "on plate", 0.6),
    ),
)


class Served:
    """A server in a process of its own, which can be killed and started again on the same store and port."""

    def __init__(self, folder: Path, pause: float, options: tuple[str, ...] = ()) -> None:
        self.folder, self.pause, self.options, self.port = folder, pause, options, 0
        self.process: subprocess.Popen[str] | None = None
        jsonl.write([TRACE], folder / "replay.jsonl")

    def start(self) -> str:
        options = ["--port", str(self.port), "--store", str(self.folder / "web.sqlite"), "--no-open", "--json"]
        options += ["--replay", str(self.folder / "replay.jsonl"), "--pause", str(self.pause), *self.options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fluents", "web", *options],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout
        said = ""
        for line in self.process.stdout:
            said += line
            try:
                address = str(json.loads(said)["address"])
            except json.JSONDecodeError:
                continue
            self.port = int(address.rstrip("/").rpartition(":")[2])
            return address
        raise AssertionError(f"the server did not start: {said}")

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def served(folder: Path, pause: float = 0.0, *options: str) -> Iterator[tuple[Served, str]]:
    server = Served(folder, pause, options)
    try:
        yield server, server.start()
    finally:
        server.kill()


def give(tab: Page, text: str = TEXT) -> None:
    tab.get_by_label("Text").fill(text)
    tab.get_by_role("button", name="Read the steps").click()
    expect(tab.get_by_role("heading", name="Are these the steps?")).to_be_visible()


def tracked(tab: Page) -> None:
    tab.get_by_role("button", name="Track the changes").click()
    tab.wait_for_url("**/?trace=*")
    expect(tab.locator("li.change")).to_have_count(5)


def item(tab: Page, words: str) -> Locator:
    return tab.locator("li.change").filter(has_text=words)
