"""What a batch run reads: documents in files, folders and tables, here or at any fsspec address, cut into shards."""

from __future__ import annotations

import io
import json
import lzma
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, NamedTuple, TypeAlias

from fluents import jsonl
from fluents.batches.store import MANIFEST, Manifest, ShardStore
from fluents.data.datasets import DATASETS
from fluents.errors import FluentsError, InputError, needs_extra
from fluents.records import Procedure, Trace

with needs_extra("batch"):
    import fsspec
    import pyarrow as pa

Kind: TypeAlias = Literal["text", "record", "unreadable"]
OnNotice: TypeAlias = Callable[[str], None]
"""Told what the user should know."""

TEXTS = (".txt", ".md", ".markdown", ".html", ".htm")
LINES = (".jsonl", ".ndjson")
TABLES = (".json", ".csv", ".tsv")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
MAX_SHARD_BYTES = 4 * 2**20
"""A shard is closed when its documents have so many, however few they are: workers hold it in memory."""
READABLE = (
    f"{' '.join((*TEXTS, *LINES, '.parquet'))} (all of these also compressed: {' '.join(COMPRESSED)}), "
    f"{' '.join(TABLES)}"
)
EXAMPLE = '{"goal": "Make tea", "steps": ["Boil water.", "Add the tea."]}'


class InputDocument(NamedTuple):
    """One procedure as it was found: a text, a JSON object, or the reason why neither could be read."""

    where: str
    """The file as the run calls it, and the line or row: the id of a procedure that has none."""
    text: str
    kind: Kind

    @property
    def id(self) -> str:
        """The id it gives itself, or where it was found: all that is known of one that cannot be read."""
        try:
            value = json.loads(self.text) if self.kind == "record" else None
            given = value.get("id") or value.get("procedure", {}).get("id") if isinstance(value, dict) else None
        except (ValueError, RecursionError, AttributeError):
            return self.where
        return str(given) if given and str(given).strip() else self.where

    def content(self) -> Trace:
        """The procedure in it, with its changes if it has any; an InputError if there is none."""
        if self.kind == "unreadable":
            raise InputError(self.text, where=self.where)
        if self.kind == "text":
            from fluents.segmentation import segment  # slow to import, and records have steps

            return Trace(procedure=segment(self.text, id=self.where, source=self.where))
        value = jsonl.parse_json(self.text.encode("utf-8", "surrogatepass"), self.where)
        if jsonl.is_ours(value):
            found = jsonl.loads(self.text, self.where)
            if isinstance(found, Trace):
                return found
            if isinstance(found, Procedure):
                return Trace(procedure=found)
            raise InputError(
                f"expected a procedure or a trace, found a `{jsonl.kind_of(found)}` record",
                where=self.where,
                fix="remove this record from the input",
            )
        return Trace(procedure=self._procedure(value))

    def _procedure(self, value: Any) -> Procedure:
        """From somebody else's object: {"steps": […]} or {"text": "…"}, and what else of ours it names."""
        shape = 'expected a JSON object with "steps" (a list) or "text" (a string)'
        with jsonl.wrong_shape_is_input_error(shape, self.where, fix=f"write, for example, {EXAMPLE}"):
            known = {key: str(value[key]) for key in ("id", "topic") if value.get(key) not in (None, "")}
            goal = value.get("goal") or value.get("title")
            named = {"id": self.where, "source": self.where} | known
            if value.get("steps") is not None:
                steps = [step for step in jsonl.list_of(value["steps"], "steps") if not _is_blank(step)]
                return Procedure(goal=str(goal or ""), steps=tuple(steps), **named)
            from fluents.segmentation import segment

            found = segment(value["text"], goal=None if goal is None else str(goal), source=self.where)
            return found.replace(**named)


def _is_blank(step: object) -> bool:
    return isinstance(step, str) and not step.strip()


@dataclass(frozen=True)
class Shard:
    """Documents that one worker takes together."""

    name: str
    """Made of their hash: the same documents make the same name."""
    documents: tuple[InputDocument, ...]


class InputFile(NamedTuple):
    """A file to read: its address, and what the run calls it wherever it lies."""

    address: str
    name: str


def find_files(
    sources: Iterable[str | Path], out: str | Path | None = None, on_notice: OnNotice = lambda _: None
) -> list[InputFile]:
    """The files that sources name: files, folders with all below them, fsspec addresses, datasets.

    Of a folder with the results of a batch run, those that its manifest lists; if the run is not complete, `on_notice`
    is told. What is written to `out` is passed over.
    """
    written = None if out is None else _whole_address(str(out))
    found: list[InputFile] = []
    for source in map(str, sources):
        if source == "-":
            raise InputError(
                "`fluents batch` cannot read standard input, because it reads its input twice",
                fix="save the input to a file, and give the name of that file",
            )
        if source.partition(":")[0] in DATASETS and not Path(source).exists():
            found.append(InputFile(source, source))
        else:
            there = _files_at(source, on_notice)
            found += [file for file in there if written is None or not _is_below(file.address, written)]
    twice = [name for name, count in Counter(file.name for file in found).items() if count > 1]
    if twice:
        if len({file.address for file in found if file.name == twice[0]}) == 1:
            raise InputError(f"the input contains {twice[0]} twice", fix="give each file only once")
        raise InputError(
            f"two input files have the same name, {twice[0]}",
            fix="rename one of them, or give the folder that contains both",
        )
    return found


def _whole_address(address: str) -> str:
    try:
        system, path = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError):  # told when it is used
        return address
    return str(system.unstrip_protocol(path))


def _is_below(address: str, folder: str) -> bool:
    return _whole_address(address).startswith(f"{folder.rstrip('/')}/")


def _files_at(source: str, on_notice: OnNotice) -> list[InputFile]:
    try:
        system, path = fsspec.core.url_to_fs(source)
        if not system.isdir(path):
            if not system.exists(path):
                raise InputError("no such file or folder", where=source[:300], fix="check the path or URL")
            return [InputFile(source, PurePosixPath(path).name)]
        if system.exists(f"{path}/{MANIFEST}") and (results := _results(source)) is not None:
            if notice := results.incomplete(source):
                on_notice(notice)
            return [InputFile(system.unstrip_protocol(f"{path}/{one.file}"), one.file) for one in results.shards]
        inside = sorted(system.find(path))
    except (ValueError, ImportError, OSError) as error:  # an unknown scheme, its package missing, no network
        is_missing = isinstance(error, ImportError)
        fix = "install the missing Python packages" if is_missing else "check the path or URL, and that you may read it"
        raise InputError(f"cannot read this path or URL: {error}", where=source[:300], fix=fix) from None
    root = PurePosixPath(path)
    names = [(file, PurePosixPath(file).relative_to(root)) for file in inside]
    found = [
        InputFile(system.unstrip_protocol(file), str(root.name / name))
        for file, name in names
        if not any(part.startswith(".") for part in name.parts)
        and _suffix(file)[0] in (*TEXTS, *LINES, *TABLES, ".parquet")
    ]
    if not found:
        raise InputError(
            "no readable files in this folder",
            where=source,
            fix=f"give a folder with files in these formats: {READABLE}",
        )
    return found


def _results(folder: str) -> Manifest | None:
    """The manifest of a batch run; None if this is something else with such a name."""
    try:
        return ShardStore(folder).read_manifest()
    except InputError:
        return None


def _suffix(name: str) -> tuple[str, str | None]:
    """What the name ends in, and how it is compressed."""
    path = PurePosixPath(name.lower())
    if path.suffix in COMPRESSED:
        return PurePosixPath(path.stem).suffix, COMPRESSED[path.suffix]
    return path.suffix, None


def read_documents(file: InputFile) -> Iterator[InputDocument]:
    """The documents of a file. What cannot be read is a document too, and says why."""
    suffix, compression = _suffix(file.address)
    try:
        if file.address == file.name and file.address.partition(":")[0] in DATASETS:
            yield from _records(file)
        elif suffix == ".parquet":
            yield from _rows(file, compression)
        elif suffix in TABLES:
            yield from _records(file)
        elif suffix in LINES:
            yield from _lines(file, compression)
        else:
            yield InputDocument(file.name, _text(file, compression), "text")
    except FluentsError as error:
        yield InputDocument(file.name, error.what, "unreadable")
    except (OSError, EOFError, ValueError, ImportError, pa.ArrowException, zlib.error, lzma.LZMAError) as error:
        # Cut off or damaged in compression, gone; whatever came before it counts.
        yield InputDocument(file.name, f"cannot read the file: {error}"[:500], "unreadable")


def _open(file: InputFile, compression: str | None) -> IO[bytes]:
    if compression == "zstd":  # fsspec wants one more package for it
        packed = fsspec.open(file.address, "rb").open()
        return io.BufferedReader(pa.CompressedInputStream(packed, compression))
    stream: IO[bytes] = fsspec.open(file.address, "rb", compression=compression).open()
    return stream


def _text(file: InputFile, compression: str | None) -> str:
    with _open(file, compression) as stream:
        whole = io.BufferedReader(io.BytesIO(stream.read(jsonl.MAX_LINE_BYTES)))
    from fluents.segmentation import text_in

    return text_in(jsonl.as_utf8(whole, file.name), file.name)


def _lines(file: InputFile, compression: str | None) -> Iterator[InputDocument]:
    with _open(file, compression) as stream:
        numbered = _numbered(stream, file.name)
        first = next(numbered, None)
        if first is None:
            raise InputError("the file is empty")
        if first.kind == "record" and not _is_procedure(first.text):
            yield from _records(file)
        else:
            yield from chain([first], numbered)


def _numbered(stream: IO[bytes], name: str) -> Iterator[InputDocument]:
    number = 0
    while line := stream.readline(jsonl.MAX_LINE_BYTES + 1):
        number += 1
        where = f"{name}:{number}"
        if len(line) > jsonl.MAX_LINE_BYTES:
            yield InputDocument(where, f"this line is longer than {jsonl.MAX_LINE_BYTES // 2**20} MB", "unreadable")
            while line and not line.endswith(b"\n"):
                line = stream.readline(jsonl.MAX_LINE_BYTES)
        elif line.strip():
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                yield InputDocument(where, f"invalid UTF-8: byte 0x{line[error.start]:02x}", "unreadable")
            else:
                yield InputDocument(where, text, "record")


def _is_procedure(line: str) -> bool:
    """Whether a line of JSON is a procedure by itself; in some published formats several make one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return True  # a bad line among good ones
    return not isinstance(value, dict) or jsonl.is_ours(value) or bool({"steps", "text"} & value.keys())


def _records(file: InputFile) -> Iterator[InputDocument]:
    """The records of a format that only a whole file tells."""
    if _suffix(file.address)[1]:
        raise InputError("compressed files in this format cannot be read: decompress the file first")
    system, path = (None, file.address) if ":" in file.name else fsspec.core.url_to_fs(file.address)
    if system is not None and "file" not in system.protocol:
        raise InputError(
            "files in this format can be read only from a local disk: copy the file to this machine, or convert it to "
            "JSONL with `fluents data convert`"
        )
    from fluents.data.inputs import records

    for number, record in enumerate(records(path), start=1):
        trace = record if isinstance(record, Trace | Procedure) else record.procedure
        yield InputDocument(f"{file.name}:{number}", jsonl.dumps(trace).decode(), "record")


def _rows(file: InputFile, compression: str | None) -> Iterator[InputDocument]:
    import pyarrow.parquet as pq

    with _open(file, compression) as stream:
        table = pq.ParquetFile(stream, page_checksum_verification=True)
        names = set(table.schema_arrow.names)
        is_ours = {"procedure", "changes"} <= names
        number = 0
        for batch in table.iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                where = f"{file.name}:{number}"
                try:
                    yield InputDocument(
                        where, _row_text(row, where) if is_ours else json.dumps(row, default=str), "record"
                    )
                except InputError as error:
                    yield InputDocument(where, error.what, "unreadable")


def _row_text(row: dict[str, Any], where: str) -> str:
    from fluents.data.parquet import from_row

    return jsonl.dumps(from_row(row, where)).decode()


def cut(files: Sequence[InputFile], size: int) -> Iterator[Shard]:
    """The documents of files in shards of `size` at most.

    A file that begins when a shard is half full begins a new one: so a change in one file leaves the shards of most
    others as they are. The same documents a second time make a second shard.
    """
    seen: Counter[str] = Counter()
    held: list[InputDocument] = []
    weight = 0
    for file in files:
        if 2 * len(held) >= size:
            yield _shard(held, seen)
            held, weight = [], 0
        for document in read_documents(file):
            held.append(document)
            weight += len(document.text)
            if len(held) >= size or weight > MAX_SHARD_BYTES:
                yield _shard(held, seen)
                held, weight = [], 0
    if held:
        yield _shard(held, seen)


def _shard(documents: list[InputDocument], seen: Counter[str]) -> Shard:
    digest = sha256()
    for document in documents:
        for part in document:
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(encoded) + encoded)
    name = digest.hexdigest()[:20]
    seen[name] += 1
    return Shard(name if seen[name] == 1 else f"{name}.{seen[name]}", tuple(documents))
