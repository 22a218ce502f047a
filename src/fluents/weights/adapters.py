"""The adapters that ship with fluents: small GGUF files that turn base weights into a tracker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fluents.download import sha256_of
from fluents.errors import ChecksumError, DataMissingError, UnknownNameError

FOLDER = Path(__file__).with_name("adapters")


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter for the base weights `base`; `file` and `card` (its model card) are names in FOLDER."""

    file: str
    card: str
    base: str
    sha256: str
    licence: str
    about: str


ADAPTERS: dict[str, Adapter] = {}


def adapter_path(name: str) -> Path:
    """The adapter's file, with its checksum checked."""
    if name not in ADAPTERS:
        raise UnknownNameError(f"unknown adapter {name!r}", fix=f"one of: {', '.join(ADAPTERS) or '(none is shipped)'}")
    path = FOLDER / ADAPTERS[name].file
    if not path.is_file():
        raise DataMissingError(f"the adapter {name} is not in this installation", where=path, fix=_REINSTALL)
    if sha256_of(path) != ADAPTERS[name].sha256:
        raise ChecksumError(f"the adapter {name} is damaged", where=path, fix=_REINSTALL)
    return path


_REINSTALL = "pip install --force-reinstall --no-deps fluents"
