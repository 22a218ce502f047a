"""Downloads: verified, resumed where they broke off, and shared by processes that want the same file.

A file appears at its place only complete and with the right SHA-256; until then it is `<name>.part`. Not pooch, which
neither resumes a partial download nor locks between processes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from fluents.errors import ChecksumError, DataMissingError

ATTEMPTS = 5
"""Number of attempts before a download fails."""

FIRST_PAUSE = 0.5
"""Seconds before the second attempt; the pause doubles with every further one."""

LOCK_TIMEOUT = 30 * 60.0
"""Seconds to wait for another process that downloads the same file."""

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes received and the bytes in total, if known."""

_BUSY = {408, 425, 429}  # "later", said by servers in the range that otherwise means "never"
_TRY_AGAIN = "check the network connection, or wait a few minutes; then run this command again to resume the download"


def cache_root() -> Path:
    """The folder for all downloads: FLUENTS_CACHE, or the user's cache folder of this system."""
    root = os.environ.get("FLUENTS_CACHE")
    return Path(root).expanduser() if root else user_cache_path("fluents", appauthor=False)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in lower-case hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def sha256_once(path: Path) -> str:
    """The same, hashed again only if the size or the time of change of the file differ."""
    found = path.stat()
    return _sha256_then(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4096)
def _sha256_then(path: Path, _size: int, _modified: int) -> str:
    return sha256_of(path)


def open_client() -> httpx.Client:
    """A client that several downloads can share; close it when done."""
    try:
        return httpx.Client(follow_redirects=True)
    except (ImportError, OSError, ValueError) as error:  # a proxy or a certificate file that cannot be used
        raise DataMissingError(
            f"cannot set up a network connection: {error}",
            fix="check the proxy and certificate settings in environment variables, such as HTTPS_PROXY",
        ) from None


def download(
    url: str,
    target: Path,
    *,
    sha256: str,
    size: int | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
    client: httpx.Client | None = None,
) -> Path:
    """Download `url` (http, https or file) to `target` and verify its SHA-256; no request if it is there already.

    `timeout` is the longest silence of the server, in seconds. `client`, from `open_client`, is shared if given.
    """
    sha256 = sha256.lower()
    part = target.with_name(f"{target.name}.part")
    with storing(target):
        if _holds(target, sha256):
            return target
        with alone(target):
            if not _holds(target, sha256):  # nobody fetched it while we waited
                _Transfer(url, part, sha256, size, progress, timeout).run(client)
                os.replace(part, target)
    return target


def _holds(path: Path, sha256: str) -> bool:
    return path.is_file() and sha256_of(path) == sha256


@contextmanager
def storing(target: Path) -> Iterator[None]:
    """Turn an error of the disk while `target` is made into one that says what to do."""
    try:
        yield
    except OSError as error:
        raise DataMissingError(
            f"cannot write {target.name}: {error.strerror or error}",
            where=target,
            fix="check that there is space on the disk and that you may write to this folder, or set FLUENTS_CACHE to "
            "another folder",
        ) from None


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Hold the lock of `target`. The system frees it when its holder dies, so no lock is ever stale."""
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        lock.acquire(timeout=LOCK_TIMEOUT)
    except Timeout:
        what = f"another process has been working on {target.name} for {LOCK_TIMEOUT / 60:g} minutes"
        raise DataMissingError(
            what, where=target, fix="wait until that process has finished, or stop it; then run this command again"
        ) from None
    try:
        yield
    finally:
        lock.release()


class _BrokenOffError(Exception):
    """An attempt failed, but the next one may succeed."""


@dataclass(frozen=True)
class _Transfer:
    """One file on its way into its `.part`."""

    url: str
    part: Path
    sha256: str
    size: int | None
    progress: Progress | None
    timeout: float

    def run(self, client: httpx.Client | None) -> None:
        """Fetch the whole file into the part, and verify it."""
        resumed = self.received() > 0
        self.fill(client)
        found = self.mismatch()
        if found and resumed:  # the old part may be of another file; what a server sends in one piece is not
            self.part.unlink()
            self.fill(client)
            found = self.mismatch()
        if found:
            self.part.unlink()
            fix = (
                "run this command again; if it fails again, the file at this address is not the published one: check "
                "the address, or upgrade fluents"
            )
            raise ChecksumError(f"{self.name} differs from the published file: {found}", where=self.address, fix=fix)

    @property
    def name(self) -> str:
        return self.part.name.removesuffix(".part")

    @property
    def address(self) -> str:
        """The address without its password, for messages."""
        try:
            parsed = httpx.URL(self.url)
        except httpx.InvalidURL:
            return self.url
        return str(parsed.copy_with(userinfo=b"")) if parsed.userinfo else self.url

    def received(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def mismatch(self) -> str | None:
        """What is wrong with the complete part; None if nothing is."""
        if self.size is not None and self.received() != self.size:
            return f"expected {self.size} bytes, found {self.received()}"
        found = sha256_of(self.part)
        return None if found == self.sha256 else f"expected SHA-256 {self.sha256}, found {found}"

    def fill(self, client: httpx.Client | None) -> None:
        if self.url.startswith("file:"):
            self.copy()
        elif client is not None:
            self.fetch(client)
        else:
            with open_client() as own:
                self.fetch(own)

    def copy(self) -> None:
        source = Path(url2pathname(urlsplit(self.url).path))
        if not source.is_file():
            raise DataMissingError("no such file", where=source, fix=f"check the address {self.url}")
        if not os.access(source, os.R_OK):
            raise DataMissingError("cannot read the file", where=source, fix="check the permissions of the file")
        shutil.copyfile(source, self.part)

    def fetch(self, client: httpx.Client) -> None:
        """Try, with growing pauses, until the part is complete."""
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(FIRST_PAUSE * 2 ** (attempt - 1))
            try:
                return self.attempt(client)
            except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.TooManyRedirects, UnicodeError) as error:
                raise DataMissingError(  # UnicodeError: a host name that cannot be one
                    f"cannot download {self.name}: {error}", where=self.address, fix="check the address"
                ) from None
            except (httpx.TransportError, _BrokenOffError) as error:
                reason = str(error) or type(error).__name__
        raise DataMissingError(
            f"could not download {self.name} in {ATTEMPTS} attempts: {reason}", where=self.address, fix=_TRY_AGAIN
        )

    def attempt(self, client: httpx.Client) -> None:
        """Request what is still missing."""
        start = self.received()
        if self.size is not None and start > self.size:
            self.part.unlink()
            start = 0
        if self.size is not None and start == self.size:
            self.part.touch()  # an empty file has an empty part
            return
        headers = {"Accept-Encoding": "identity"}  # the checksum is of the file, not of a packed form of it
        if start:
            headers["Range"] = f"bytes={start}-"
        with client.stream("GET", self.url, headers=headers, timeout=self.timeout) as response:
            if response.status_code == 416 and start:
                self.accept_end_of_file(response, start)
            else:
                self.receive(response, self.start_of_body(response, start))

    def accept_end_of_file(self, response: httpx.Response, start: int) -> None:
        """The server has nothing after the part: it is complete, or it belongs to another file."""
        if response.headers.get("Content-Range") != f"bytes */{start}":
            self.part.unlink()
            raise _BrokenOffError("the file on the server is shorter than the partial download (HTTP status 416)")

    def start_of_body(self, response: httpx.Response, asked: int) -> int:
        """The offset in the file at which this response begins."""
        status = f"{response.status_code} {response.reason_phrase}".strip()
        if response.status_code == 200:
            return 0  # asked for a range or not, this is the whole file
        if response.status_code == 206 and asked:
            if re.match(rf"bytes {asked}-", response.headers.get("Content-Range", "")):
                return asked
            self.part.unlink()
            raise _BrokenOffError("the server sent a different part of the file than requested")
        if response.is_server_error or response.status_code in _BUSY:
            raise _BrokenOffError(f"the server replied with HTTP status {status}")
        raise DataMissingError(
            f"cannot download {self.name}: the server replied with HTTP status {status}",
            where=self.address,
            fix="check that this address opens in a browser",
        )

    def receive(self, response: httpx.Response, start: int) -> None:
        """Write the body into the part, from `start` on."""
        total = self.size if self.size is not None else _length_of_file(response)
        done = start
        with self.part.open("ab" if start else "wb") as stream:
            for block in response.iter_raw():
                stream.write(block)
                done += len(block)
                if self.progress:
                    self.progress(done, total)
                if self.size is not None and done > self.size:
                    break  # not our file, and perhaps without end
            stream.flush()
            os.fsync(stream.fileno())
        if total is not None and done < total and _length_of_file(response) != done:
            raise _BrokenOffError(f"the connection closed after {done} of {total} bytes")


def _length_of_file(response: httpx.Response) -> int | None:
    """The length of the whole file, if the server says it."""
    if response.status_code == 206:
        length = response.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        length = response.headers.get("Content-Length", "")
    return int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None


# Records of files that were found right, so that large ones are not hashed at every start: `<file>.checked.json` holds
# the size, the time of change and the SHA-256; the file is hashed again only when one of the first two differs.


@dataclass(frozen=True)
class CheckRecord:
    """What a file was like when it was found right."""

    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def of(cls, file: Path, sha256: str) -> CheckRecord:
        """The record of a file as it is now."""
        found = file.stat()
        return cls(found.st_size, found.st_mtime_ns, sha256)

    @classmethod
    def read(cls, file: Path) -> CheckRecord | None:
        """The record beside a file; None where there is none or it is broken."""
        try:
            with _record_path(file).open("rb") as stream:
                return cls(**json.loads(stream.read(1000)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def write(self, file: Path) -> None:
        """Put the record beside a file; where the cache cannot be written, the file is hashed at every start."""
        with suppress(OSError):
            _record_path(file).write_text(json.dumps(asdict(self)), encoding="utf-8")


def forget(file: Path) -> None:
    """Remove the record of a file."""
    with suppress(OSError):
        _record_path(file).unlink(missing_ok=True)


def is_unchanged(file: Path) -> bool:
    """Whether a file is as its record says; it is hashed only if its size or time differ."""
    record = CheckRecord.read(file)
    if record is None or not file.is_file():
        return False
    now = CheckRecord.of(file, record.sha256)
    if now == record:
        return True
    if now.size != record.size or sha256_of(file) != record.sha256:
        return False
    now.write(file)
    return True


def made_once(target: Path, make: Callable[[Path], None]) -> Path:
    """A file that `make` writes, kept; made again if it was damaged."""
    with storing(target):
        if is_unchanged(target):
            return target
        with alone(target):
            if not is_unchanged(target):  # nobody made it while we waited
                part = target.with_name(f"{target.name}.part")
                try:
                    make(part)
                    sha256 = sha256_of(part)
                    os.replace(part, target)
                    CheckRecord.of(target, sha256).write(target)
                finally:
                    part.unlink(missing_ok=True)
    return target


def _record_path(file: Path) -> Path:
    return file.with_name(f"{file.name}.checked.json")
