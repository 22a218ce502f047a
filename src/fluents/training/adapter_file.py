"""A LoRA adapter between peft and llama.cpp's GGUF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluents.errors import InputError, needs_extra
from fluents.weights.adapters import AdapterFacts, unpacked

with needs_extra("train"):
    import gguf
    import torch

PROJECTIONS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""transformers' name of a weight → llama.cpp's."""
_MODULES = {short: long for long, short in PROJECTIONS.items()}
_KEY = re.compile(r"layers\.(\d+)\.(\w+\.\w+)\.lora_([AB])\.(?:default\.)?weight$")

Array = NDArray[np.float32]


def _heads(config: Any) -> dict[str, int]:
    """The projections whose rows llama.cpp orders in its own way, and their heads."""
    if config.model_type != "llama":
        return {}
    return {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}


def permute(rows: Array, heads: int) -> Array:
    """transformers' order of rows → llama.cpp's: within a head, the two rotary halves are interleaved."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def unpermute(rows: Array, heads: int) -> Array:
    return rows.reshape(heads, rows.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def write_adapter(model: Any, path: Path, alpha: float, name: str, facts: AdapterFacts) -> None:
    """Write a peft model's LoRA weights as a GGUF adapter in Q8_0, with what it was made from in its metadata."""
    heads = _heads(model.config)
    tensors: dict[str, Array] = {}
    for key, value in model.named_parameters():
        if match := _KEY.search(key):
            block, module, side = match.groups()
            short = PROJECTIONS[module]
            array: Array = value.detach().float().cpu().numpy()
            if side == "B" and short in heads:
                array = permute(array, heads[short])
            tensors[f"blk.{block}.{short}.weight.lora_{side.lower()}"] = np.ascontiguousarray(array)
    part = path.with_name(path.name + ".part")
    writer = gguf.GGUFWriter(str(part), model.config.model_type)
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_name(name)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, float(alpha))
    for field, value in asdict(facts).items():
        add = writer.add_array if isinstance(value, tuple) else writer.add_string
        add(f"fluents.{field}", value)
    for key, array in sorted(tensors.items()):
        kind = gguf.GGMLQuantizationType.Q8_0 if array.shape[-1] % 32 == 0 else gguf.GGMLQuantizationType.F16
        writer.add_tensor(key, gguf.quants.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(path)


class LoraMatrices(NamedTuple):
    """The matrices A and B of each adapted weight, by llama.cpp's name of it, in llama.cpp's order of rows."""

    alpha: float
    pairs: dict[str, tuple[Array, Array]]
    path: Path

    @property
    def rank(self) -> int:
        return max(len(down) for down, _ in self.pairs.values())

    def modules(self, model: Any) -> Iterator[tuple[Any, Array, Array]]:
        """(module, A, B) of each weight of a transformers model, in transformers' order of rows."""
        heads = _heads(model.config)
        for name, (down, up) in self.pairs.items():
            try:
                _, block, short, _ = name.split(".")
                module = model.get_submodule(f"model.layers.{block}.{_MODULES[short]}")
            except (ValueError, KeyError, AttributeError):
                what = f"this adapter does not fit the base weights: they have no {name}"
                raise InputError(what, where=self.path, fix="choose another adapter") from None
            yield module, down, unpermute(up, heads[short]) if short in heads else up


def read_adapter(path: Path) -> LoraMatrices:
    """The matrices of a GGUF adapter, packed or not."""
    reader = gguf.GGUFReader(str(unpacked(path)))
    if gguf.Keys.Adapter.LORA_ALPHA not in reader.fields:
        raise InputError("this GGUF file is not a LoRA adapter", where=path, fix="choose another adapter")
    tensors = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in reader.tensors}
    names = [key.removesuffix(".lora_a") for key in tensors if key.endswith(".lora_a")]
    if not names or any(f"{name}.lora_b" not in tensors for name in names):
        what = "this LoRA adapter is incomplete: one of its matrices is missing"
        raise InputError(what, where=path, fix="choose another adapter")
    pairs = {name: (tensors[f"{name}.lora_a"], tensors[f"{name}.lora_b"]) for name in names}
    return LoraMatrices(float(reader.fields[gguf.Keys.Adapter.LORA_ALPHA].contents()), pairs, path)


def merge_adapter(model: Any, path: Path) -> None:
    """Add a GGUF adapter to a transformers model's weights, in place."""
    lora = read_adapter(path)
    with torch.no_grad():
        for module, down, up in lora.modules(model):
            module.weight += (torch.from_numpy(up @ down) * (lora.alpha / len(down))).to(module.weight)


def load_adapter(model: Any, lora: LoraMatrices) -> None:
    """Put the matrices of an adapter into a peft model of the same rank, to train on."""
    with torch.no_grad():
        for module, down, up in lora.modules(model.get_base_model()):
            for layer, array in ((module.lora_A, down), (module.lora_B, up)):
                weight = layer[model.active_adapter].weight
                if weight.shape != array.shape:
                    what = "this adapter does not fit the base weights: one of its matrices has the wrong shape"
                    raise InputError(what, where=lora.path, fix="choose another adapter")
                weight.copy_(torch.from_numpy(np.array(array, dtype=np.float32)))
