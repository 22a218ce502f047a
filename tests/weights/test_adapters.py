"""Adapters by name and by file: a shipped one is checked by its SHA-256, any other by its own metadata."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from fluents.errors import ChecksumError, DataMissingError, FluentsError, InputError, UnknownNameError
from fluents.prompts.local import STYLE_WORDS, VERSION
from fluents.weights.adapters import ADAPTERS, FOLDER, open_adapter
from fluents.weights.base_weights import BASES

FACTS: dict[str, str | list[str]] = {
    "fluents.base": BASES["tiny"].release,
    "fluents.base_sha256": BASES["tiny"].sha256,
    "fluents.prompt": VERSION,
    "fluents.styles": ["plain", "sorted"],
    "fluents.data": ["mine.jsonl"],
    "fluents.data_sha256": "0" * 64,
}


def write_file(path: Path, facts: dict[str, str | list[str]], kind: str = "lora") -> Path:
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("mine")
    writer.add_string("adapter.type", kind)
    for key, value in facts.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_string(key, value)
    writer.add_tensor("blk.0.attn_q.weight.lora_a", np.zeros((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_every_shipped_adapter_is_whole_and_says_what_it_is() -> None:
    assert (FOLDER / "README.md").is_file()
    assert {path.stem for path in FOLDER.glob("*.gguf")} == set(ADAPTERS)
    for name in ADAPTERS:
        adapter = open_adapter(name)
        if name.startswith("transcript-"):
            continue  # see test_embedded
        base = BASES["base" if name == "openpi-base" else "tiny"]
        assert (adapter.base, adapter.facts.prompt) == (base.release, VERSION)
        assert adapter.styles
        assert set(adapter.styles) <= set(STYLE_WORDS)


def test_a_shipped_adapter_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "both.gguf"
    monkeypatch.setitem(ADAPTERS, "both", replace(ADAPTERS["both"], path=file))
    with pytest.raises(DataMissingError, match="missing from this installation"):
        open_adapter("both")
    file.write_bytes(b"GGUF")
    with pytest.raises(ChecksumError, match="damaged"):
        open_adapter("both")


def test_a_copy_of_a_shipped_adapter_is_known_by_its_content(tmp_path: Path) -> None:
    copy = tmp_path / "renamed.gguf"
    shutil.copy(ADAPTERS["both"].path, copy)
    assert open_adapter(copy) == replace(ADAPTERS["both"], path=copy)


def test_a_trained_file_says_its_base_styles_and_data(tmp_path: Path) -> None:
    file = write_file(tmp_path / "adapter.gguf", FACTS)
    adapter = open_adapter(str(file))
    assert (adapter.path, adapter.base, adapter.styles) == (file, "smollm2-135m-instruct", ("plain", "sorted"))
    assert (adapter.facts.prompt, adapter.facts.data) == (VERSION, ("mine.jsonl",))
    assert adapter.name == f"mine@{adapter.sha256[:12]}", "the name tells two runs of one folder apart"


@pytest.mark.parametrize("missing", FACTS)
def test_a_file_without_the_metadata_is_refused(tmp_path: Path, missing: str) -> None:
    without = {key: value for key, value in FACTS.items() if key != missing}
    other_type: str | list[str] = "a text" if isinstance(FACTS[missing], list) else ["a", "list"]
    for facts in (without, without | {missing: other_type}):
        file = write_file(tmp_path / "old.gguf", facts)
        with pytest.raises(InputError, match=f"metadata of this adapter does not contain {missing}\n"):
            open_adapter(file)


def test_other_files_are_refused_in_plain_words(tmp_path: Path) -> None:
    model = write_file(tmp_path / "model.gguf", FACTS, kind="none")
    with pytest.raises(InputError, match="not a LoRA adapter"):
        open_adapter(model)
    for base in ("another-base", "tiny", "smollm2-135m-instruct"):
        other = write_file(tmp_path / "o.gguf", FACTS | {"fluents.base": base, "fluents.base_sha256": "f" * 64})
        with pytest.raises(InputError, match="base weights that fluents does not provide"):
            open_adapter(other)
    for name in ("nothing.gguf", "runs/mine", str(tmp_path)):
        with pytest.raises(DataMissingError, match="no such adapter file"):
            open_adapter(name)
    with pytest.raises(UnknownNameError, match="openpi-base"):
        open_adapter("yours")


def test_a_damaged_file_is_never_a_traceback(tmp_path: Path) -> None:
    whole = write_file(tmp_path / "whole.gguf", FACTS).read_bytes()
    for length in range(0, len(whole), 37):
        (tmp_path / "cut.gguf").write_bytes(whole[:length])
        with pytest.raises(FluentsError):
            open_adapter(tmp_path / "cut.gguf")
    (tmp_path / "text.gguf").write_text("not a model at all, but a text of some length")
    with pytest.raises(InputError, match="not a complete GGUF file"):
        open_adapter(tmp_path / "text.gguf")
