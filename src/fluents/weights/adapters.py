"""LoRA adapters: small GGUF files that turn base weights into a tracker; some ship with fluents, others you train.

A trained file says in its own metadata what it is (`AdapterFacts`). The shipped files are older than that: `ADAPTERS`
says what they are, and their SHA-256 is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from fluents.download import sha256_of
from fluents.errors import ChecksumError, DataMissingError, InputError, UnknownNameError
from fluents.weights.base_weights import BASES

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


def _openpi(name: str, sha256: str, about: str) -> Adapter:
    """An adapter for the published metrics, trained on wikiHow's steps."""
    both = name.startswith("both")
    data = ("openpi:train", "openpi-c:train") if both else (f"{name}:train",)
    styles = ("plain", "sorted", "clean", "clean sorted") if both else ("plain", "sorted")
    facts = AdapterFacts(BASES["tiny"].release, BASES["tiny"].sha256, "local-1", styles, data, "")
    return Adapter(name, FOLDER / f"{name}.gguf", sha256, facts, "CC BY-NC-SA 3.0", about)


def _transcript(base: str, sha256: str) -> Adapter:
    """An adapter for readers, trained on our own corpus."""
    name, weights = f"transcript-{base}", BASES[base]
    facts = AdapterFacts(weights.release, weights.sha256, "transcript-1", ("plain",), ("fluents:train",), "")
    about = f"for {base}, trained on fluents:train"
    return Adapter(name, FOLDER / f"{name}.gguf", sha256, facts, "CC BY 4.0", about)


_SHIPPED = (
    _transcript("tiny", "8bf18f67100603247f8e58a733bd517af0661f42fb5e4fd17ca9a80f56a782e9"),
    _transcript("small", "98aba93ec46216592cdd167db4f90101c175d6aca3dac3be3a46a6a052ea8839"),
    _transcript("base", "bab1fe4ab11d05107fbd06a926ff805e848e33879532cb6f90066d1f863df597"),
    _openpi(
        "openpi-c", "94426aa263d56d269050d3dcb0b146e5ab45867e7c7bdbaf1ce09fd277239a45", "for tiny, trained on OpenPI-C"
    ),
    _openpi(
        "both",
        "f3b49de5c18a0115f1a5828bfc3905591f18a502712968fed9cb96dd477d1f82",
        "for tiny, trained on OpenPI v1.0 and OpenPI-C",
    ),
    _openpi(
        "both-2",
        "d67f1a4737ae6a5366c5ded78e007f81c27380fa523a2cf1b883d15ee45a16d6",
        "the same with another seed, to vote with `both`",
    ),
)

ADAPTERS = {adapter.name: adapter for adapter in _SHIPPED}
"""The adapters that ship with fluents, by name. FOLDER holds their files and their model card, README.md."""

_TRAINED = "name the adapter.gguf that `fluents train adapter` wrote"


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
            fix = f"give the .gguf file, or a name: {', '.join(ADAPTERS)}"
            raise DataMissingError("there is no such adapter file", where=path, fix=fix)
        raise UnknownNameError(
            f"unknown adapter {str(name_or_path)!r}", fix=f"one of {', '.join(ADAPTERS)}, or the path of a .gguf file"
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
    raise DataMissingError(f"the adapter {adapter.name} is not in this installation", where=adapter.path, fix=again)


def _from_file(path: Path) -> Adapter:
    try:
        sha256 = sha256_of(path)
    except OSError as error:
        raise InputError(f"cannot read the adapter: {error.strerror or error}", where=path) from None
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
        fix = "start the same `fluents train adapter` again: a finished run only writes the file anew"
        raise InputError(f"this adapter lacks the metadata {', '.join(missing)}", where=path, fix=fix)
    facts = AdapterFacts(**values | {name: tuple(values[name]) for name in lists})
    return Adapter(f"{found.get('general.name') or path.stem}@{sha256[:12]}", path, sha256, facts)


def _check_base(adapter: Adapter) -> None:
    facts = adapter.facts
    if facts.base_sha256 not in {base.sha256 for base in BASES.values() if facts.base in (base.name, base.release)}:
        raise InputError(
            f"this adapter belongs to other base weights: {facts.base!r} with SHA-256 {facts.base_sha256[:12]}…",
            where=adapter.path,
            fix=f"give the GGUF file of these weights as `model`; fluents itself has {', '.join(BASES)}",
        )


def _read_metadata(path: Path) -> dict[str, Any]:
    import gguf

    try:
        return {name: field.contents() for name, field in gguf.GGUFReader(str(path)).fields.items()}
    except (OSError, ValueError, IndexError, KeyError, TypeError, OverflowError) as error:  # all that its reader raises
        raise InputError(f"this is not a complete GGUF file: {error}", where=path, fix=_TRAINED) from None
