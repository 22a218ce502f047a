"""GGUF files made from others: adapters packed for a repository, unpacked for the engine, or merged with base weights.

What is made is kept in the cache. GGUF quantises rows in blocks of 32. The matrices B of an adapter of rank 16 have
rows of 16, which only 16 bits a number can hold; transposed, they have long rows. So a packed file holds B transposed.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fluents.download import made_once, sha256_of
from fluents.errors import InputError
from fluents.weights.base_weights import weights_dir

TRANSPOSED = ".lora_b_transposed"


def pack(adapter: Path, out: Path, metadata: dict[str, str | list[str]], kind: str = "Q8_0") -> None:
    """Write an adapter with `metadata`, its matrices quantised."""
    import gguf

    quantised = gguf.GGMLQuantizationType[kind]
    reader = gguf.GGUFReader(str(adapter))
    writer = _copy_head(reader, out, dropped=set(metadata))
    for key, value in metadata.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_string(key, value)
    for tensor in reader.tensors:
        name, plain = tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if name.endswith(".lora_b"):
            name, plain = f"{name.removesuffix('.lora_b')}{TRANSPOSED}", np.ascontiguousarray(plain.T)
        writer.add_tensor(name, gguf.quants.quantize(plain, quantised), raw_dtype=quantised)
    _finish(writer)


def unpacked(adapter: Path) -> Path:
    """The file the engine reads: the adapter itself, or its unpacked form in the cache, made now if it is not there."""
    import gguf

    reader = gguf.GGUFReader(str(adapter))
    if not any(tensor.name.endswith(TRANSPOSED) for tensor in reader.tensors):
        return adapter
    target = weights_dir() / f"{adapter.stem}-{sha256_of(adapter)[:16]}.gguf"
    return made_once(target, partial(_unpack, reader))


def _unpack(reader: Any, out: Path) -> None:
    import gguf

    writer = _copy_head(reader, out)
    for tensor in reader.tensors:
        name, plain = tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float16)
        if name.endswith(TRANSPOSED):
            name, plain = f"{name.removesuffix(TRANSPOSED)}.lora_b", np.ascontiguousarray(plain.T)
        writer.add_tensor(name, plain)
    _finish(writer)


def merged(base: Path, adapter: Path) -> Path:
    """The base weights with an adapter added to them, in one file: every token then comes faster.

    Made once (a few seconds), named after the adapter's content, and kept; made again if it was damaged.
    """
    target = weights_dir() / f"{base.stem}+{adapter.stem}-{sha256_of(adapter)[:16]}.gguf"
    return made_once(target, lambda part: _merge(base, adapter, part))


def _merge(base: Path, adapter: Path, out: Path) -> None:
    """Adapted weights are written with 8 bits: with 4, rounding would undo much of the adapter."""
    import gguf

    reader, lora = gguf.GGUFReader(str(base)), gguf.GGUFReader(str(adapter))
    if gguf.Keys.Adapter.LORA_ALPHA not in lora.fields:
        raise InputError("this GGUF is not a LoRA adapter", where=adapter)
    alpha = float(lora.fields[gguf.Keys.Adapter.LORA_ALPHA].contents())
    parts = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in lora.tensors}
    writer = _copy_head(reader, out)
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
    _finish(writer)


def _copy_head(reader: Any, out: Path, dropped: Collection[str] = ()) -> Any:
    """A writer with the metadata of another file."""
    import gguf

    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(str(out), architecture)
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in {"general.architecture", *dropped}:
            kinds = field.types
            writer.add_key_value(field.name, field.contents(), kinds[0], sub_type=kinds[-1] if len(kinds) > 1 else None)
    return writer


def _finish(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
