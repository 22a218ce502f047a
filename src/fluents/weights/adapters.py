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


ADAPTERS: dict[str, Adapter] = {
    "openpi": Adapter(
        file="openpi.gguf",
        card="README.md",
        base="smollm2-135m-instruct",
        sha256="8a9b76c847fc5addb400fe6aafcc9d1a49dec51cfffb62dd52eea7277e3f68f4",
        licence="CC BY-NC-SA 3.0",
        about="trained on OpenPI v1.0",
    ),
    "openpi-c": Adapter(
        file="openpi-c.gguf",
        card="README.md",
        base="smollm2-135m-instruct",
        sha256="94426aa263d56d269050d3dcb0b146e5ab45867e7c7bdbaf1ce09fd277239a45",
        licence="CC BY-NC-SA 3.0",
        about="trained on OpenPI-C",
    ),
    "both": Adapter(
        file="both.gguf",
        card="README.md",
        base="smollm2-135m-instruct",
        sha256="f3b49de5c18a0115f1a5828bfc3905591f18a502712968fed9cb96dd477d1f82",
        licence="CC BY-NC-SA 3.0",
        about="trained on OpenPI v1.0 and OpenPI-C",
    ),
    "both-2": Adapter(
        file="both-2.gguf",
        card="README.md",
        base="smollm2-135m-instruct",
        sha256="d67f1a4737ae6a5366c5ded78e007f81c27380fa523a2cf1b883d15ee45a16d6",
        licence="CC BY-NC-SA 3.0",
        about="trained on OpenPI v1.0 and OpenPI-C, another seed, to vote with `both`",
    ),
}


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
