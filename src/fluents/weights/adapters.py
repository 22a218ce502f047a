"""LoRA adapters: small GGUF files that turn base weights into a tracker; some ship with fluents, others you train.

A trained file says in its own metadata what it is (`AdapterFacts`). The shipped files are older than that: `ADAPTERS`
says what they are, and their SHA-256 is checked. Base weights with an adapter are an `EmbeddedModel`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fluents.download import made_once, sha256_of, sha256_once
from fluents.errors import ChecksumError, DataMissingError, InputError, UnknownNameError
from fluents.weights.base_weights import BASES, BaseWeights, default_model, find, is_checked, weights_dir
from fluents.weights.fetch import ensure

if TYPE_CHECKING:
    from rich.console import Console

FOLDER = Path(__file__).with_name("adapters")


@dataclass(frozen=True)
class AdapterFacts:
    """What an adapter was made from; in the metadata of its file each field has the key `fluents.<field>`."""

    base: str
    """Name of the base weights it belongs to."""
    base_sha256: str
    prompt: str
    """Version of the prompt it was trained with: that of `fluents.prompts.transcript` or `fluents.prompts.local`."""
    styles: tuple[str, ...]
    """Answer styles it was taught (`fluents.prompts.local.Style`)."""
    data: tuple[str, ...]
    """Names of the datasets or files it was trained on."""
    data_sha256: str
    """Digest of the training examples; empty where it was not recorded."""


@dataclass(frozen=True)
class Adapter:
    """An adapter on this machine, checked. `name` tells it from all others in the provenance of a trace."""

    name: str
    path: Path
    sha256: str
    facts: AdapterFacts
    licence: str = ""
    about: str = ""

    @property
    def base(self) -> str:
        """Name of the base weights it belongs to."""
        return self.facts.base

    @property
    def styles(self) -> tuple[str, ...]:
        """Answer styles it was taught."""
        return self.facts.styles


def _openpi(name: str, base: str, sha256: str, more: dict[str, tuple[str, ...]], about: str) -> Adapter:
    """An adapter for the published metrics, trained on wikiHow's steps and, with their styles, on `more` datasets."""
    data = ("openpi:train", "openpi-c:train", *more)
    styles = ("plain", "sorted", "clean", "clean sorted", *(style for taught in more.values() for style in taught))
    facts = AdapterFacts(BASES[base].release, BASES[base].sha256, "local-1", styles, data, "")
    return Adapter(name, FOLDER / f"{name}.gguf", sha256, facts, "CC BY-NC-SA 3.0", about)


def _transcript(base: str, sha256: str) -> Adapter:
    """An adapter for readers, trained on our own corpus."""
    name, weights = f"transcript-{base}", BASES[base]
    data = ("fluents:train",) if base == "tiny" else ("fluents:train", "fluents:judged")
    facts = AdapterFacts(weights.release, weights.sha256, "transcript-1", ("plain",), data, "")
    about = f"for {base}, trained on {' and '.join(data)}"
    return Adapter(name, FOLDER / f"{name}.gguf", sha256, facts, "CC BY 4.0", about)


_SHIPPED = (
    _transcript("tiny", "99a07ad2863386869f6bdd353d2273c6868c253102c2ac244d8bf8464fb979a9"),
    _transcript("small", "7b5a129f2ed299dfc19565d9f4d7bf23ed4d2cf241bd7c389c3249d89fb9c692"),
    _transcript("base", "0bde4473a355108db507ba6c18e671d5e08b274c1a6fd830b0cacf1be85d6a3e"),
    _openpi(
        "openpi-base",
        "base",
        "a895cd3b5110cf9733a038a5dcd4b2096db1e908534552bd9e76e98d99a09a64",
        {"fluents:train": ("complete", "sorted complete")},
        "for base, trained on OpenPI v1.0, OpenPI-C and fluents:train",
    ),
    _openpi(
        "both",
        "tiny",
        "f3b49de5c18a0115f1a5828bfc3905591f18a502712968fed9cb96dd477d1f82",
        {},
        "for tiny, trained on OpenPI v1.0 and OpenPI-C",
    ),
)

ADAPTERS = {adapter.name: adapter for adapter in _SHIPPED}
"""The adapters that ship with fluents, by name. FOLDER holds their files and their model card, README.md."""

_TRAINED = "give the file adapter.gguf that `fluents train adapter` wrote"


def open_adapter(name_or_path: str | Path, *, any_base: bool = False) -> Adapter:
    """A shipped adapter by name, or one you trained by the path of its file, checked.

    It must belong to base weights that fluents knows, or to `any_base`.

    >>> open_adapter("both").styles
    ('plain', 'sorted', 'clean', 'clean sorted')
    """
    if name_or_path in ADAPTERS:
        return _checked(ADAPTERS[str(name_or_path)])
    path = Path(name_or_path).expanduser()
    if not path.is_file():
        if path.suffix == ".gguf" or path.parent != Path() or path.is_dir():
            fix = f"give the path of a .gguf file, or one of: {', '.join(ADAPTERS)}"
            raise DataMissingError("no such adapter file", where=path, fix=fix)
        raise UnknownNameError(
            f"unknown adapter {str(name_or_path)!r}",
            fix=f"give the path of a .gguf file, or one of: {', '.join(ADAPTERS)}",
        )
    adapter = _from_file(path)
    if not any_base:
        _check_base(adapter)
    return adapter


def _checked(adapter: Adapter) -> Adapter:
    """A shipped adapter whose file is the one that was shipped."""
    is_there = adapter.path.is_file()
    if is_there and sha256_of(adapter.path) == adapter.sha256:
        return adapter
    from fluents.installation import install_command

    again = f"{install_command()} --force-reinstall --no-deps"
    if is_there:
        raise ChecksumError(f"the adapter {adapter.name} is damaged", where=adapter.path, fix=again)
    raise DataMissingError(
        f"the file of the adapter {adapter.name} is missing from this installation", where=adapter.path, fix=again
    )


def _from_file(path: Path) -> Adapter:
    try:
        sha256 = sha256_of(path)
    except OSError as error:
        fix = "check that you may read the file"
        raise InputError(f"cannot read the adapter: {error.strerror or error}", where=path, fix=fix) from None
    for shipped in ADAPTERS.values():
        if shipped.sha256 == sha256:
            return replace(shipped, path=path)
    found = _read_metadata(path)
    if found.get("adapter.type") != "lora":
        raise InputError("this GGUF file is not a LoRA adapter", where=path, fix=_TRAINED)
    values: dict[str, Any] = {field.name: found.get(f"fluents.{field.name}") for field in fields(AdapterFacts)}
    lists = ("styles", "data")
    missing = [f"fluents.{name}" for name, v in values.items() if not isinstance(v, list if name in lists else str)]
    if missing:
        fix = f"{_TRAINED}. If this is such a file, run the training command again: this only rewrites the file"
        raise InputError(f"the metadata of this adapter does not contain {', '.join(missing)}", where=path, fix=fix)
    facts = AdapterFacts(**values | {name: tuple(values[name]) for name in lists})
    return Adapter(f"{found.get('general.name') or path.stem}@{sha256[:12]}", path, sha256, facts)


def _check_base(adapter: Adapter) -> None:
    facts = adapter.facts
    if facts.base_sha256 not in {base.sha256 for base in BASES.values() if facts.base in (base.name, base.release)}:
        raise InputError(
            f"this adapter was trained for base weights that fluents does not provide: {facts.base!r} with SHA-256 "
            f"{facts.base_sha256[:12]}…",
            where=adapter.path,
            fix="give the GGUF file of these base weights as `model`",
        )


def _read_metadata(path: Path) -> dict[str, Any]:
    import gguf

    try:
        return {name: field.contents() for name, field in gguf.GGUFReader(str(path)).fields.items()}
    except (OSError, ValueError, IndexError, KeyError, TypeError, OverflowError) as error:  # all that its reader raises
        raise InputError(f"this file is not a complete GGUF file: {error}", where=path, fix=_TRAINED) from None


# Embedded models


class EmbeddedModel(NamedTuple):
    """An adapter, and what it is added to."""

    adapter: Adapter
    file: Path | None = None
    """A GGUF file in place of the base weights that the adapter names."""

    @property
    def base(self) -> str:
        """What the base weights are called in the provenance of a trace."""
        return self.adapter.base if self.file is None else f"{self.file.stem}@{sha256_once(self.file)[:12]}"

    @property
    def size(self) -> BaseWeights | None:
        """The base weights that the adapter names, unless a file takes their place."""
        return None if self.file else find(self.adapter.base)

    def base_path(self, console: Console | None = None) -> Path:
        """The file of the base weights, fetched if need be, with a progress bar in a terminal."""
        return self.file or ensure_shown(self.adapter.base, console)


def open_embedded(model: str | Path | None = None, adapter: str | Path | None = None) -> EmbeddedModel:
    """An embedded model with an adapter: a size by name, a GGUF file, or the base weights the adapter belongs to.

    A size has an adapter of its own, which ships with fluents.
    """
    if model is None or model in BASES:
        if model is None and adapter is None:
            raise InputError("`model` or `adapter` is required", fix=f"set `model` to one of: {', '.join(BASES)}")
        opened = open_adapter(adapter if adapter is not None else shipped_adapter(str(model)))
        if model is not None and opened.facts.base_sha256 != find(str(model)).sha256:
            own = next((base.name for base in BASES.values() if base.release == opened.base), opened.base)
            raise InputError(
                f"the adapter {opened.name} was trained for the model {own}, not for {model}",
                fix=f"leave out `model`, or set `adapter` to one for {model}, such as {shipped_adapter(str(model))}",
            )
        return EmbeddedModel(opened)
    file = Path(model).expanduser()
    if not file.is_file():
        raise _no_file(file)
    if adapter is None:
        known = next((name for name, base in BASES.items() if base.sha256 == sha256_once(file)), None)
        if known is None:
            what = "fluents has no adapter for this model file"
            raise InputError(
                what, where=file, fix="give an `adapter` that `fluents train adapter` trained for this model file"
            )
        adapter = shipped_adapter(known)
    return EmbeddedModel(open_adapter(adapter, any_base=True), file)


def base_file(model: str | Path | None = None, console: Console | None = None) -> tuple[Path, str]:
    """The file of a model without an adapter, fetched if need be, and the name to serve it under.

    The name is not the size: that always means the embedded model, and a served one is asked at its endpoint.
    """
    if model is None:
        model = default_model()
    if model in BASES:
        return ensure_shown(str(model), console), find(str(model)).release
    file = Path(model).expanduser()
    if not file.is_file():
        raise _no_file(file)
    return file, file.stem


def _no_file(file: Path) -> DataMissingError:
    return DataMissingError(
        "no such model file", where=file, fix=f"give the path of a GGUF file, or one of: {', '.join(BASES)}"
    )


def shipped_adapter(model: str) -> str:
    """The name of the adapter that ships for a size."""
    name = f"transcript-{model}"
    if name not in ADAPTERS:
        raise InputError(f"fluents has no adapter for the `model` {model}", fix="give an `adapter`")
    return name


def ensure_shown(name: str, console: Console | None = None, *, source: str | None = None) -> Path:
    """The base weights on this machine; where they must be fetched, a terminal shows what, why and how long."""
    base = find(name)
    if is_checked(base):
        return base.path
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = console or Console(stderr=True, highlight=False)
    size = f"{base.size / 1e9:.1f} GB" if base.size >= 1e9 else f"{base.size / 1e6:.0f} MB"
    what = f"downloading the model {base.name} ({base.about}; {size}, only once; then it runs offline)"
    if not console.is_terminal:
        return ensure(name, source=source)
    console.print(what, markup=False, soft_wrap=True)
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(TextColumn(base.name), *columns, console=console, transient=True) as progress:
        task = progress.add_task(base.name, total=base.size)
        return ensure(name, lambda done, total: progress.update(task, completed=done, total=total), source=source)


# GGUF files made from adapters, kept in the cache

TRANSPOSED = ".lora_b_transposed"
"""GGUF quantises rows in blocks of 32. The matrices B of an adapter of rank 16 have rows of 16, which only 16 bits a
number can hold; transposed, they have long rows. So a packed file holds B transposed."""


def pack(adapter: Path, out: Path, metadata: dict[str, str | list[str]], kind: str = "Q8_0") -> None:
    """Write an adapter with `metadata`, its matrices quantised."""
    import gguf
    import numpy as np

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
    import numpy as np

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
    import numpy as np

    reader, lora = gguf.GGUFReader(str(base)), gguf.GGUFReader(str(adapter))
    if gguf.Keys.Adapter.LORA_ALPHA not in lora.fields:
        raise InputError("this GGUF file is not a LoRA adapter", where=adapter, fix=_TRAINED)
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
            raise InputError(
                "this adapter was trained for other base weights", where=adapter, fix="choose another adapter"
            )
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
