"""A real Chromium for tests. A test module asks for it with `pytest_plugins = ["chromium"]`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

FLAGS = [
    "--no-sandbox",  # containers run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def _executable() -> str:
    """The installed browser. Without one, tests skip, except in CI, where they must run."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    told = "no Chromium found: install one, e.g. `apt-get install chromium` or `brew install --cask chromium`"
    if os.environ.get("CI") == "true":
        pytest.fail(told)
    pytest.skip(told)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a module: while it runs, its event loop keeps others from starting theirs."""
    path = _executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
