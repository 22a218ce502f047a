"""A LoRA adapter between peft and llama.cpp's GGUF."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluents.errors import InputError, needs_extra
from fluents.weights.adapters import AdapterFacts

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


def merge_adapter(model: Any, path: Path) -> None:
    """Add a GGUF adapter to a transformers model's weights, in place."""
    reader = gguf.GGUFReader(str(path))
    if gguf.Keys.Adapter.LORA_ALPHA not in reader.fields:
        raise InputError("this GGUF file is not a LoRA adapter", where=path)
    alpha = float(reader.fields[gguf.Keys.Adapter.LORA_ALPHA].contents())
    tensors = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in reader.tensors}
    heads = _heads(model.config)
    with torch.no_grad():
        for key in (key for key in tensors if key.endswith("lora_a")):
            _, block, short, _ = key.split(".", 3)
            down, up = tensors[key], tensors[key[:-1] + "b"]
            if short in heads:
                up = unpermute(up, heads[short])
            weight = model.get_submodule(f"model.layers.{block}.{_MODULES[short]}").weight
            weight += (torch.from_numpy(up @ down) * (alpha / down.shape[0])).to(weight)
