"""Something large is loaded once, however many threads need it at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from inspect import unwrap
from typing import Any

import pytest
from py3langid.langid import LanguageIdentifier

from fluents import segmentation
from fluents.loading import load_once

THREADS = 20


def _at_once(work: Any) -> list[Any]:
    """What so many threads get that begin together."""
    together = threading.Barrier(THREADS)

    def one(_: int) -> Any:
        together.wait()
        return work()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


def test_threads_that_come_together_share_one_value() -> None:
    loads = []
    second = threading.Event()

    @load_once
    def value() -> object:
        loads.append(1)
        second.wait(0.2)  # long enough for all others to come
        return object()

    found = _at_once(value)
    assert len(loads) == 1
    assert len(set(map(id, found))) == 1


def test_a_loader_that_failed_is_tried_again() -> None:
    calls = []

    @load_once
    def value() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")
        return "here"

    with pytest.raises(ValueError, match="not yet"):
        value()
    assert [value(), value()] == ["here", "here"]
    assert len(calls) == 2


def test_fifty_people_who_paste_a_text_at_once_load_one_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    real = LanguageIdentifier.from_model_file

    def counted(*given: Any, **more: Any) -> Any:
        loads.append(1)
        return real(*given, **more)

    monkeypatch.setattr(LanguageIdentifier, "from_model_file", counted)
    monkeypatch.setattr(segmentation, "_identifier", load_once(unwrap(segmentation._identifier)))
    found = _at_once(lambda: segmentation.language("Die Zwiebeln schälen und in Butter anschwitzen."))
    assert set(found) == {"de"}
    assert len(loads) == 1
