"""A model from plain parameters: opened, asked, counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faulty_server import FaultyServer
from fluents.errors import InputError
from fluents.llm import LanguageModel, Question, Usage, open_model
from scripted import Script


def test_it_answers_counts_and_keeps(tmp_path: Path) -> None:
    cache = tmp_path / "kept.sqlite"
    with (
        FaultyServer(lambda body: "hot") as server,  # noqa: ARG005
        open_model("any", server.base_url, cache=cache, workers=3, max_tokens=99) as model,
    ):
        assert (model.name, model.workers, model.max_tokens) == ("any", 3, 99)
        assert model.answerer.ask(Question("?")) == ["hot"]
        assert (model.usage.requests, model.usage.cached) == (1, 0)
    with open_model("any", server.base_url, cache=cache, cached_only=True) as model:
        assert model.answerer.ask(Question("?")) == ["hot"]
        assert (model.usage.requests, model.usage.cached) == (0, 1)


def test_without_a_cache_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path))
    with FaultyServer(lambda body: "hot") as server, open_model("any", server.base_url, cache=False) as model:  # noqa: ARG005
        model.answerer.ask(Question("?"))
    assert list(tmp_path.iterdir()) == []


def test_an_open_one_is_used_as_it_is() -> None:
    script = LanguageModel(Script(lambda _: "hot"), "script")
    with open_model(script) as model:
        assert model is script
        assert model.usage == Usage(), "a script does not count"
    with pytest.raises(InputError, match="`base_url` has no effect"), open_model(script, "http://x"):
        pass


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"model": None}, "no language model given"),
        ({"model": "any", "cached_only": True, "cache": False}, "`cached_only` needs a cache"),
        ({"model": "any", "cached_only": True, "cache": "/nowhere/kept.sqlite"}, "this cache does not exist"),
        ({"model": "any", "timeout": float("inf")}, "`timeout`"),
        ({"model": "any", "key_file": "/nowhere/key"}, "no such file"),
    ],
)
def test_what_is_wrong_is_an_error_that_names_the_parameter(given: Any, what: str) -> None:
    with pytest.raises(InputError, match=what), open_model(base_url="http://127.0.0.1:9/v1", **given):
        pass
