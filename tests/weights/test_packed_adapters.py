"""Packed adapters: what the engine reads is what was packed, within the rounding, and is made once."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from fluents.weights.adapters import pack, unpacked

A, B = (np.random.default_rng(3).standard_normal(shape).astype(np.float32) for shape in ((16, 64), (96, 16)))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    writer = gguf.GGUFWriter(str(tmp_path / "whole.gguf"), "qwen2")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 32.0)
    writer.add_name("before")
    writer.add_tensor("blk.0.attn_q.weight.lora_a", A)
    writer.add_tensor("blk.0.attn_q.weight.lora_b", B)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tmp_path / "whole.gguf"


def tensors(file: Path) -> dict[str, np.ndarray]:
    return {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(str(file)).tensors}


@pytest.mark.parametrize(("kind", "error"), [("Q8_0", 0.02), ("Q5_1", 0.15)])
def test_packed_and_unpacked(adapter: Path, tmp_path: Path, kind: str, error: float) -> None:
    packed = tmp_path / "packed.gguf"
    pack(adapter, packed, {"general.name": "after", "fluents.data": ["mine"]}, kind)
    file = unpacked(packed)
    found = tensors(file)
    assert found.keys() == tensors(adapter).keys()
    np.testing.assert_allclose(found["blk.0.attn_q.weight.lora_a"], A, atol=error)
    np.testing.assert_allclose(found["blk.0.attn_q.weight.lora_b"], B, atol=error)
    fields = gguf.GGUFReader(str(file)).fields
    told = {name: fields[name].contents() for name in ("general.architecture", "general.name", "adapter.lora.alpha")}
    assert told == {"general.architecture": "qwen2", "general.name": "after", "adapter.lora.alpha": 32.0}
    assert fields["fluents.data"].contents() == ["mine"]


def test_it_is_made_once_and_again_when_damaged(adapter: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.gguf"
    pack(adapter, packed, {})
    file = unpacked(packed)
    whole, made = file.read_bytes(), file.stat().st_mtime_ns
    assert unpacked(packed) == file
    assert file.stat().st_mtime_ns == made
    file.write_bytes(b"GGUF")
    assert unpacked(packed).read_bytes() == whole


def test_an_adapter_that_is_not_packed_is_read_as_it_is(adapter: Path) -> None:
    assert unpacked(adapter) == adapter
