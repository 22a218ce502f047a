"""Which names mean the embedded engine, which adapter and base they get, and what is said when memory is short."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import gguf
import pytest

from fluents.errors import DataMissingError, FluentsWarning, InputError
from fluents.prompts.transcript import VERSION
from fluents.trackers import open_tracker
from fluents.trackers.transcript import TranscriptTracker
from fluents.weights import base_weights
from fluents.weights.adapters import ADAPTERS, base_file, open_embedded
from fluents.weights.base_weights import BASES, free_memory, is_embedded, warn_if_memory_is_short


@pytest.mark.parametrize("model", ["tiny", "small", "base", "my.gguf", "/some/where/Model.GGUF"])
def test_sizes_and_files_are_embedded(model: str) -> None:
    assert is_embedded(model)


@pytest.mark.parametrize("model", ["gpt-4o", "smollm2-135m-instruct", "Tiny", "", "model.bin", "gguf"])
def test_all_other_names_are_of_an_endpoint(model: str) -> None:
    assert not is_embedded(model)


@pytest.mark.parametrize("size", BASES)
def test_every_size_has_an_adapter_of_its_own_and_its_provenance_names_the_release(size: str) -> None:
    opened = open_embedded(size)
    assert opened.adapter.facts.base_sha256 == BASES[size].sha256
    assert (opened.adapter.name, opened.adapter.licence) == (f"transcript-{size}", "CC BY 4.0")
    with open_tracker(model=size) as tracker:
        assert isinstance(tracker, TranscriptTracker)
        assert tracker.provenance.model == f"{BASES[size].release} + transcript-{size}"


@pytest.mark.parametrize("size", BASES)
def test_the_shipped_files_say_in_their_metadata_what_the_table_says(size: str) -> None:
    adapter = ADAPTERS[f"transcript-{size}"]
    fields = gguf.GGUFReader(str(adapter.path)).fields
    assert fields["fluents.base"].contents() == adapter.facts.base
    assert fields["fluents.base_sha256"].contents() == adapter.facts.base_sha256
    assert fields["fluents.prompt"].contents() == adapter.facts.prompt == VERSION
    assert fields["fluents.data"].contents() == list(adapter.facts.data)
    assert fields["general.license"].contents() == "CC-BY-4.0"


def test_an_adapter_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match="trained for the model tiny, not for base"):
        open_embedded("base", "transcript-tiny")


def test_a_file_of_unknown_weights_needs_an_adapter_and_is_named_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    with pytest.raises(DataMissingError, match="no such model file"):
        open_embedded(file)
    with pytest.raises(DataMissingError, match="no such model file"):
        base_file(file)
    file.write_bytes(b"GGUF, in a way")
    assert base_file(file) == (file, "mine")
    with pytest.raises(InputError, match="has no adapter for this model file"):
        open_embedded(str(file))
    opened = open_embedded(str(file), "transcript-tiny")
    assert opened.base_path() == file
    first = opened.base
    assert first.startswith("mine@")
    file.write_bytes(b"GGUF, in another way")
    assert opened.base != first


def test_an_endpoint_has_no_embedded_model_and_the_other_way_round() -> None:
    with pytest.raises(InputError, match="`base_url` has no effect, because tiny is an embedded model"):
        open_tracker(model="tiny", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(InputError, match="`setting` has no effect with `model`"):
        open_tracker(model="tiny", setting="openpi")
    with pytest.raises(InputError, match="is required"):
        open_embedded()


def test_too_little_memory_is_told_with_a_smaller_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 4000000 kB\nMemAvailable: 900000 kB\n")
    monkeypatch.setattr(base_weights, "MEMORY", meminfo)
    with pytest.warns(FluentsWarning, match=r"about 2\.0 GB of memory, but only 0\.9 GB is free.*use the model small"):
        warn_if_memory_is_short("base")
    with pytest.warns(
        FluentsWarning, match=r"about 1\.\d GB .*; to save memory, use a lower `at_once` or fewer `workers`"
    ):
        warn_if_memory_is_short("tiny", 3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_memory_is_short("tiny")


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="this system does not tell")
def test_memory_without_meminfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_weights, "MEMORY", tmp_path / "none")
    found = free_memory()
    assert found is None or found > 0
