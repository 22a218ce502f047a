"""The merged model in the cache: right, made once, and made again when it was damaged."""

from __future__ import annotations

import os
from pathlib import Path

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from fluents.errors import InputError
from fluents.weights import adapters
from fluents.weights.adapters import merged

WEIGHT, DOWN, UP = (np.random.default_rng(7).random(shape, np.float32) for shape in ((64, 32), (4, 32), (64, 4)))


def write_gguf(path: Path, **tensors: NDArray[np.float32]) -> Path:
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_float32("adapter.lora.alpha", 8.0)
    for name, tensor in tensors.items():
        writer.add_tensor(name.replace("__", "."), tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))
    return write_gguf(tmp_path / "base.gguf", q__weight=WEIGHT, other__weight=WEIGHT)


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "mine.gguf", q__weight__lora_a=DOWN, q__weight__lora_b=UP)


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every merge that is made."""
    made: list[Path] = []
    really = adapters._merge

    def counting(base: Path, adapter: Path, out: Path) -> None:
        made.append(out)
        really(base, adapter, out)

    monkeypatch.setattr(adapters, "_merge", counting)
    return made


def test_the_adapter_is_added_and_the_rest_is_as_it_was(base: Path, adapter: Path) -> None:
    reader = gguf.GGUFReader(str(merged(base, adapter)))
    found = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors}
    assert np.array_equal(found["other.weight"], WEIGHT)
    assert np.allclose(found["q.weight"], WEIGHT + UP @ DOWN * 2, atol=0.05), "eight bits a weight"
    assert reader.fields["tokenizer.ggml.model"].contents() == "gpt2"


def test_it_is_made_once(base: Path, adapter: Path, merges: list[Path]) -> None:
    assert merged(base, adapter) == merged(base, adapter)
    os.utime(merged(base, adapter), ns=(1, 1))  # a copy of the cache, say: hashed, found right
    merged(base, adapter)
    assert len(merges) == 1


@pytest.mark.parametrize("damage", ["changed", "cut", "empty", "gone", "without a record"])
def test_a_damaged_one_is_made_again(base: Path, adapter: Path, merges: list[Path], damage: str) -> None:
    path = merged(base, adapter)
    good = path.read_bytes()
    bad = {"changed": good[:-9] + b"!" + good[-8:], "cut": good[:-1], "empty": b""}
    if damage in bad:
        path.write_bytes(bad[damage])
    elif damage == "gone":
        path.unlink()
    else:
        path.with_name(f"{path.name}.checked.json").unlink()
    assert merged(base, adapter).read_bytes() == good
    assert len(merges) == 2
    assert {file.name for file in path.parent.iterdir()} - {f".{path.name}.lock"} == {
        path.name,
        f"{path.name}.checked.json",
    }


def test_an_adapter_that_does_not_fit_is_told_and_leaves_nothing(base: Path, tmp_path: Path) -> None:
    wide = write_gguf(tmp_path / "wide.gguf", q__weight__lora_a=np.zeros((4, 64), np.float32), q__weight__lora_b=UP)
    with pytest.raises(InputError, match="other base weights"):
        merged(base, wide)
    assert not list((tmp_path / "cache" / "weights").glob("[!.]*"))
