"""The base weights with an adapter added to them, made once and kept: every token then comes faster."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fluents.download import CheckRecord, alone, is_unchanged, sha256_of, storing
from fluents.errors import InputError
from fluents.weights.base_weights import weights_dir


def merged(base: Path, adapter: Path) -> Path:
    """The merged GGUF file, from the cache or made now (a few seconds); made again if it was damaged.

    It is named after the adapter's content.
    """
    target = weights_dir() / f"{base.stem}+{adapter.stem}-{sha256_of(adapter)[:16]}.gguf"
    with storing(target):
        if is_unchanged(target):
            return target
        with alone(target):
            if not is_unchanged(target):  # nobody made it while we waited
                part = target.with_name(f"{target.name}.part")
                try:
                    _merge(base, adapter, part)
                    sha256 = sha256_of(part)
                    os.replace(part, target)
                    CheckRecord.of(target, sha256).write(target)
                finally:
                    part.unlink(missing_ok=True)
    return target


def _merge(base: Path, adapter: Path, out: Path) -> None:
    """Adapted weights are written with 8 bits: with 4, rounding would undo much of the adapter."""
    import gguf

    reader, lora = gguf.GGUFReader(str(base)), gguf.GGUFReader(str(adapter))
    if gguf.Keys.Adapter.LORA_ALPHA not in lora.fields:
        raise InputError("this GGUF is not a LoRA adapter", where=adapter)
    alpha = float(lora.fields[gguf.Keys.Adapter.LORA_ALPHA].contents())
    parts = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in lora.tensors}
    writer = gguf.GGUFWriter(str(out), reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":  # which the writer adds
            kinds = field.types
            writer.add_key_value(field.name, field.contents(), kinds[0], sub_type=kinds[-1] if len(kinds) > 1 else None)
    for tensor in reader.tensors:
        down = parts.get(f"{tensor.name}.lora_a")
        if down is None:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        up = parts[f"{tensor.name}.lora_b"]
        plain = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if plain.shape != (len(up), down.shape[1]):
            raise InputError("this adapter belongs to other base weights", where=adapter, fix="choose another adapter")
        whole = plain + (up @ down) * np.float32(alpha / len(down))
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(tensor.name, gguf.quants.quantize(whole.astype(np.float32), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
