"""Where a batch run writes: one file a shard, whole or not there, and a manifest that lists them."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

from fluents import jsonl
from fluents.errors import FluentsError, InputError, needs_extra
from fluents.records import Trace
from fluents.text.names import counted

with needs_extra("batch"):
    import fsspec

ShardFormat: TypeAlias = Literal["parquet", "jsonl"]

MANIFEST = "manifest.json"
RUNS = "runs.jsonl"
"""A line for each run: when, how long, how many. Beside the manifest, which is the same whoever made it."""
VERSION = 1
STALE_SECONDS = 3600
"""A temporary file that nobody has written to for so long was left by a process that was killed."""


class ShardDamagedError(FluentsError):
    """A file that is not the shard its name says."""


@dataclass(frozen=True)
class ShardFile:
    """What the manifest says of a shard."""

    file: str
    procedures: int
    steps: int
    changes: int
    failures: int
    bytes: int
    sha256: str


class ShardStore:
    """A folder with shards, on this machine or at an fsspec address.

    A file appears under its name when it is whole. Several runs may write to one folder, as their shards differ in
    their names, or in nothing.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = str(folder)
        try:
            self.system, self.path = fsspec.core.url_to_fs(self.folder)
        except (ValueError, ImportError) as error:
            fix = "install the missing Python packages" if isinstance(error, ImportError) else "correct the path or URL"
            raise InputError(f"cannot use this path or URL: {error}", where=self.folder[:300], fix=fix) from None
        self.is_local = "file" in self.system.protocol

    def create(self) -> None:
        """Make the folder, see that it can be written to, and remove what killed runs left behind."""
        try:
            self.system.makedirs(self.path, exist_ok=True)
            if self.is_local:
                for left in Path(self.path).glob(".*.tmp"):
                    with suppress(FileNotFoundError):
                        if time.time() - left.stat().st_mtime > STALE_SECONDS:
                            left.unlink()
        except FileExistsError:
            raise InputError(
                "`out` must be a folder, but is a file", where=self.folder, fix="choose another name as `out`"
            ) from None
        except OSError as error:
            fix = "check that you may write to this folder, or choose another folder as `out`"
            what = f"cannot write to this folder: {error.strerror or error}"
            raise InputError(what, where=self.folder, fix=fix) from None
        probe = f".{sha256(str(time.time_ns()).encode()).hexdigest()[:8]}.probe"
        self.write(probe, b"")
        self.system.rm_file(self.of(probe))

    def of(self, name: str) -> str:
        """The path of a file, as the file system knows it."""
        return str(PurePosixPath(self.path) / name)

    def names(self) -> set[str]:
        """All files in the folder."""
        self.system.invalidate_cache(self.path)
        return {PurePosixPath(path).name for path in self.system.ls(self.path, detail=False)}

    def write(self, name: str, data: bytes) -> None:
        """Write a file as a whole, or not at all."""
        if self.is_local:
            with jsonl.atomic_output(self.of(name)) as stream:
                stream.write(data)
            return
        # An object store shows a file when it is whole; other systems move it in one go.
        temporary = self.of(f".{name}.{time.time_ns():x}.tmp")
        try:
            self.system.pipe_file(temporary, data)
            self.system.mv(temporary, self.of(name))
        except OSError as error:
            fix = "check that there is space on the disk, and that you may write to the folder of this file"
            raise InputError(f"cannot write the file: {error}", where=self.of(name), fix=fix) from None

    def remove_unfinished(self, process: int) -> None:
        """Remove what a process of this machine was writing when it was ended."""
        if self.is_local:
            for left in Path(self.path).glob(f".*.{process}.*.tmp"):
                left.unlink(missing_ok=True)

    def append(self, name: str, line: bytes) -> None:
        """Add a line to a log. Where files cannot grow, there is no log."""
        if self.is_local:
            with jsonl.disk_errors_name(Path(self.of(name))), Path(self.of(name)).open("ab") as stream:
                stream.write(line + b"\n")

    def read(self, name: str) -> bytes:
        data: bytes = self.system.cat_file(self.of(name))
        return data

    def set_aside(self, name: str) -> str:
        """Rename a file that is damaged, so that it can be looked into; returns its new name."""
        moved = f"{name}.damaged"
        with suppress(FileNotFoundError):  # another task of an array job was faster
            self.system.mv(self.of(name), self.of(moved))
        return moved

    # Shards

    def write_shard(self, name: str, traces: Sequence[Trace]) -> ShardFile:
        """Write the rows of a shard; returns what the manifest says of it."""
        data = encode(traces, _format(name))
        self.write(name, data)
        return _facts(name, traces, data)

    def read_shard(self, name: str) -> list[Trace]:
        """The rows of a shard, or a ShardDamagedError."""
        return list(self._decoded(name, self.read(name)))

    def check_shard(
        self, name: str, known: ShardFile | None, count: int, holds: Callable[[Sequence[Trace]], bool]
    ) -> ShardFile:
        """What the manifest says of a shard that is there: as it said before, or by reading it as a whole.

        A ShardDamagedError if it is not what the manifest knows, or has not `count` rows, or rows that `holds` refuses.
        """
        data = self.read(name)
        while known is not None and known.sha256 != sha256(data).hexdigest():
            # Another task of an array job may be retrying it: such a task first takes it out of the manifest.
            known, before = self._listed(name), known
            if known == before:
                raise self._damaged(name, f"its checksum differs from the one in {MANIFEST}")
            data = self.read(name)
        # A file that is as the manifest says is not read again: that would make every resumed run slower.
        traces = [] if known else self._decoded(name, data)
        facts = known or _facts(name, traces, data)
        if facts.procedures != count:
            raise self._damaged(name, f"it contains {counted(facts.procedures, 'procedure')} instead of {count}")
        if known is None and not holds(traces):
            raise self._damaged(name, "it contains other procedures than the input")
        return facts

    def is_as(self, known: ShardFile) -> bool:
        """Whether the file of a shard is there, and as the manifest says."""
        try:
            return sha256(self.read(known.file)).hexdigest() == known.sha256
        except OSError:
            return False

    def _decoded(self, name: str, data: bytes) -> list[Trace]:
        try:
            return decode(data, _format(name), name)
        except InputError as error:
            raise self._damaged(name, error.what) from None

    def _damaged(self, name: str, why: str) -> ShardDamagedError:
        return ShardDamagedError(
            f"this shard is damaged: {why}",
            where=self.of(name),
            fix="run the same `fluents batch` command again: it repairs damaged files",
        )

    # The row that a worker is at, where rows are done one by one because workers died

    def write_row(self, name: str, row: int | None) -> None:
        """Note the row before it is begun: nobody can ask a worker that is dead."""
        self.write(f".{name}.row", b"" if row is None else b"%d" % row)

    def read_row(self, name: str) -> int | None:
        """The row that the last worker was at."""
        try:
            return int(self.read(f".{name}.row") or b"none")
        except (FileNotFoundError, ValueError):
            return None

    def remove_row(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.system.rm_file(self.of(f".{name}.row"))

    # The manifest

    def read_manifest(self) -> Manifest | None:
        """What earlier runs said; None if there is none."""
        try:
            data = self.read(MANIFEST)
        except FileNotFoundError:
            return None
        where = self.of(MANIFEST)
        what, fix = "this file is not the manifest of a batch run", "delete or rename this file"
        with jsonl.wrong_shape_is_input_error(what, where, fix=fix):
            value = jsonl.parse_json(data, where)
            if value["fluents-batch"] != VERSION:
                raise InputError(
                    f"this manifest has format version {value['fluents-batch']}, but this version of fluents reads "
                    f"only format version {VERSION}",
                    where=where,
                    fix="run `fluents batch` again, with another folder as `out`",
                )
            shards = tuple(ShardFile(**one) for one in value["shards"])
            return Manifest(value["settings"], shards, bool(value["complete"]))

    def _listed(self, name: str) -> ShardFile | None:
        """What the manifest says of a shard now."""
        manifest = self.read_manifest()
        return next((shard for shard in manifest.shards if shard.file == name), None) if manifest else None

    def write_manifest(self, manifest: Manifest) -> None:
        self.write(MANIFEST, manifest.as_json())


@dataclass(frozen=True)
class Manifest:
    """The settings of a run, its shards in the order of the input, and whether they are all there."""

    settings: Mapping[str, Any]
    shards: tuple[ShardFile, ...] = ()
    complete: bool = False

    @property
    def totals(self) -> dict[str, int]:
        return {
            name: sum(getattr(shard, name) for shard in self.shards)
            for name in ("procedures", "steps", "changes", "failures", "bytes")
        }

    def incomplete(self, folder: str | Path) -> str | None:
        """What whoever reads the results in this folder should know; None if they are all there."""
        if self.complete:
            return None
        return (
            f"the run that writes {folder} is not complete: the folder contains only "
            f"{counted(self.totals['procedures'], 'procedure')} so far. Wait until the run ends. If it has already "
            "ended, run the same `fluents batch` command again; if you used `--part`, leave it out"
        )

    def as_json(self) -> bytes:
        value = {
            "fluents-batch": VERSION,
            "complete": self.complete,
            "totals": self.totals,
            "settings": self.settings,
            "shards": [asdict(shard) for shard in self.shards],
        }
        return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def signature(settings: Mapping[str, Any]) -> str:
    """A short hash of settings."""
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def _format(name: str) -> ShardFormat:
    return "parquet" if name.endswith(".parquet") else "jsonl"


def encode(traces: Sequence[Trace], format: ShardFormat) -> bytes:
    """The bytes of a shard: the same traces make the same bytes."""
    if format == "jsonl":
        return b"".join(jsonl.dumps(trace) + b"\n" for trace in traces)
    from fluents.data import parquet

    stream = io.BytesIO()
    parquet.write(traces, stream)
    return stream.getvalue()


def decode(data: bytes, format: ShardFormat, where: str) -> list[Trace]:
    """The rows of a shard; an InputError if it is damaged."""
    if format == "parquet":
        from fluents.data import parquet

        try:
            return list(parquet.read(io.BytesIO(data), where))
        except OSError as error:  # a page whose checksum is wrong, or that cannot be unpacked
            raise InputError(str(error)[:200], where=where) from None
    if not data.endswith(b"\n"):
        raise InputError("the file ends in the middle of a line", where=where)
    return list(_traces(data.splitlines(), where))


def _traces(lines: Iterable[bytes], where: str) -> Iterator[Trace]:
    for number, line in enumerate(lines, start=1):
        record = jsonl.loads(line, f"{where}:{number}")
        if not isinstance(record, Trace):
            raise InputError(f"expected a trace, found a `{jsonl.kind_of(record)}` record", where=f"{where}:{number}")
        yield record


def _facts(name: str, traces: Sequence[Trace], data: bytes) -> ShardFile:
    return ShardFile(
        name,
        procedures=len(traces),
        steps=sum(len(trace.procedure.steps) for trace in traces),
        changes=sum(len(trace.changes) for trace in traces),
        failures=sum(trace.error is not None for trace in traces),
        bytes=len(data),
        sha256=sha256(data).hexdigest(),
    )
