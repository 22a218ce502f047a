"""Methods by name: what opens them, and parameters that would be ignored."""

from __future__ import annotations

from typing import Any

import pytest
from bike import BIKE

from faulty_server import FaultyServer
from fluents.canonicalisation import canonicalise, open_method, open_thesaurus
from fluents.errors import InputError, UnknownNameError
from fluents.llm import LanguageModel
from scripted import Script

MODEL = LanguageModel(Script(lambda _: '{"same": true}'), "script", workers=1)


def test_without_a_word_it_is_the_offline_method() -> None:
    assert canonicalise(BIKE).provenance.decoding["clusters"] == "offline-1"


def test_a_model_by_its_name_and_address_canonicalises_in_one_line() -> None:
    with FaultyServer(lambda body: '{"groups": [["bike", "hook"]]}') as server:  # noqa: ARG005
        done = canonicalise(BIKE, "prompted", model="parrot", base_url=server.base_url)
    assert {"bike", "hook"} <= set(done.clusters[0].mentions)
    assert done.provenance.decoding["clusters"] == "prompted-1, parrot, 5+3 runs"


def test_an_open_model_and_an_open_method_are_used_as_they_are() -> None:
    with open_method("verified", model=MODEL, pairs=2) as method:
        done = canonicalise(BIKE, method)
    assert done.provenance.decoding["clusters"] == "offline-1, verified-1 by script, 2 pairs"


def test_a_text_is_not_taken_for_a_trace() -> None:
    text: Any = "Boil the water."
    with pytest.raises(InputError, match="`trace` must be a Trace, not str"):
        canonicalise(text)


@pytest.mark.parametrize(
    ("given", "error", "what"),
    [
        ({"model": "x"}, InputError, "`model` works only with `method` prompted or verified"),
        ({"base_url": "http://127.0.0.1:9/v1"}, InputError, "`base_url` works only with"),
        ({"method": "verified", "model": MODEL, "runs": 2}, InputError, "`runs` works only with `method` prompted"),
        ({"method": "prompted", "model": MODEL, "pairs": 2}, InputError, "`pairs` works only with `method` verified"),
        ({"method": "prompted", "model": MODEL, "shots": 2}, InputError, "`shots` has no effect without `examples`"),
        ({"method": "prompted", "model": MODEL, "base_url": "http://127.0.0.1:9/v1"}, InputError, "`base_url`"),
        ({"method": "prompted"}, InputError, "no language model given"),
        ({"method": "oracle"}, UnknownNameError, "one of: offline, prompted, verified"),
    ],
)
def test_what_is_wrong_is_an_error_that_names_the_parameter(given: Any, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what), open_method(**given):
        pass


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({}, "either `vocabulary` or `model`"),
        ({"vocabulary": "x.jsonl", "model": MODEL}, "either `vocabulary` or `model`"),
        ({"vocabulary": "x.jsonl", "base_url": "http://127.0.0.1:9/v1"}, "`base_url` has no effect without `model`"),
        ({"model": MODEL, "near": 0.5}, "`near` has no effect without `vocabulary`"),
    ],
)
def test_a_thesaurus_has_one_source(given: Any, what: str) -> None:
    with pytest.raises(InputError, match=what), open_thesaurus(**given):
        pass
