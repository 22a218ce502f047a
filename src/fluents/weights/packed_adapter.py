"""Adapters small enough for a repository: packed where they are kept, unpacked in the cache for the engine.

GGUF quantises rows in blocks of 32. The matrices B of an adapter of rank 16 have rows of 16, which only 16 bits a
number can hold; transposed, they have long rows. So a packed file holds B transposed.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from fluents.download import alone, sha256_of, storing
from fluents.weights.base_weights import weights_dir
from fluents.weights.check_record import CheckRecord, is_unchanged

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
    with storing(target):
        if is_unchanged(target):
            return target
        with alone(target):
            if not is_unchanged(target):  # nobody made it while we waited
                part = target.with_name(f"{target.name}.part")
                try:
                    _unpack(reader, part)
                    sha256 = sha256_of(part)
                    os.replace(part, target)
                    CheckRecord.of(target, sha256).write(target)
                finally:
                    part.unlink(missing_ok=True)
    return target


def _unpack(reader: Any, out: Path) -> None:
    import gguf

    writer = _copy_head(reader, out)
    for tensor in reader.tensors:
        name, plain = tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float16)
        if name.endswith(TRANSPOSED):
            name, plain = f"{name.removesuffix(TRANSPOSED)}.lora_b", np.ascontiguousarray(plain.T)
        writer.add_tensor(name, plain)
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
