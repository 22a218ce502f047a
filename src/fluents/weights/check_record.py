"""A record beside a large file that was found right, so that it is not hashed at every start.

`<file>.checked.json` holds the size, the time of change and the SHA-256 of the file; the file is hashed again only when
one of the first two differs.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from fluents.download import sha256_of


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
            with _place(file).open("rb") as stream:
                return cls(**json.loads(stream.read(1000)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def write(self, file: Path) -> None:
        """Put the record beside a file; where the cache cannot be written, the file is hashed at every start."""
        with suppress(OSError):
            _place(file).write_text(json.dumps(asdict(self)), encoding="utf-8")


def forget(file: Path) -> None:
    """Remove the record of a file."""
    with suppress(OSError):
        _place(file).unlink(missing_ok=True)


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


def _place(file: Path) -> Path:
    return file.with_name(f"{file.name}.checked.json")
