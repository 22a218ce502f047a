"""The file format: one record a line, `{"fluents": 1, "kind": "trace", …}`. Read and written here alone.

Reading streams and never holds more than a line; writing is atomic, so a file is either whole or not there.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import from_json

from fluents.errors import InputError
from fluents.installation import install_command
from fluents.records import FORMAT_VERSION, Procedure, Trace
from fluents.task_records import CrepeCase, PddlTask

MAX_LINE_BYTES = 32 * 1024 * 1024
"""No record comes near this; a longer line is another kind of file, and would eat the memory."""

_BYTE_ORDER_MARKS = {  # that of UTF-32 first: it begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

AnyRecord: TypeAlias = Trace | Procedure | CrepeCase | PddlTask
KINDS: dict[str, type[AnyRecord]] = {"trace": Trace, "procedure": Procedure, "crepe": CrepeCase, "pddl": PddlTask}
_KIND_OF = {cls: kind for kind, cls in KINDS.items()}
_PREFIX = {cls: f'{{"fluents":{FORMAT_VERSION},"kind":"{kind}",'.encode() for cls, kind in _KIND_OF.items()}


def dumps(record: AnyRecord) -> bytes:
    """One record as a line of JSON, without the line break. Fields at their default are left out."""
    body = record.__pydantic_serializer__.to_json(record, exclude_defaults=True)
    return _PREFIX[type(record)] + body[1:]


def loads(line: bytes | str, where: str = "input") -> AnyRecord:
    """The record a line holds. `where` is named in the error if it holds none."""
    data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    try:
        for cls, prefix in _PREFIX.items():  # the form `dumps` writes: straight into the record
            if data.startswith(prefix):
                record: AnyRecord = cls.__pydantic_validator__.validate_json(b"{" + data[len(prefix) :])
                _refuse_repeated_keys(data, where)
                return record
        value = parse_json(data, where)
        if not isinstance(value, dict):
            raise InputError(
                f"expected a JSON object, found {json_type(value)}", where=where, fix="write one JSON object per line"
            )
        return _class_for(value, where).model_validate(value)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            parse_json(data, where)  # raises with the better message
        raise _input_error(error, where) from None


def kind_of(record: AnyRecord) -> str:
    """The name of its kind, as a line says it."""
    return _KIND_OF[type(record)]


def is_ours(value: object) -> bool:
    """Whether a decoded JSON value says it is a fluents record."""
    return isinstance(value, dict) and "fluents" in value and "kind" in value


def _class_for(value: dict[str, Any], where: str) -> type[AnyRecord]:
    version, kind = value.pop("fluents", None), value.pop("kind", None)
    if version is None or kind is None:
        fix = 'write, for example, {"fluents": 1, "kind": "trace", …}; put records in other formats into another file'
        raise InputError(
            'this is not a fluents record: a record has the keys "fluents" and "kind"', where=where, fix=fix
        )
    if type(version) is not int or version < 1:
        what = f'"fluents" must be the number of a format version, not {json.dumps(version):.40}'
        raise InputError(what, where=where, fix=f'set "fluents" to the number {FORMAT_VERSION}')
    if version > FORMAT_VERSION:
        what = (
            f"this record has format version {version!r}, but this version of fluents reads only format versions up to "
            f"{FORMAT_VERSION}"
        )
        raise InputError(what, where=where, fix=f"{install_command()} --upgrade")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(
            f"unknown kind of record {kind!r}", where=where, fix=f'set "kind" to one of: {", ".join(KINDS)}'
        )
    return KINDS[kind]


def parse_json(data: bytes, where: str) -> Any:
    """Decoded JSON, or an InputError that says what is wrong with it. A key that comes twice in one object is wrong."""
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        decoded(data, where)
        if str(error).startswith("EOF while parsing"):
            raise InputError(
                "incomplete JSON: it ends in the middle of a value",
                where=where,
                fix="copy or create the file again; JSONL needs each record on one line",
            ) from None
        said = str(error)
        if b"\n" not in data.rstrip():  # `where` may name a line, and this one would contradict it
            said = said.replace(" at line 1 column ", " at column ")
        raise InputError(f"malformed JSON: {said}", where=where, fix="correct the JSON at this place") from None
    _refuse_repeated_keys(data, where)
    return value


def decoded(data: bytes, where: str) -> str:
    """The text of UTF-8, or an InputError."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        what = f"invalid UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise InputError(what, where=where, fix="save the file as UTF-8") from None


def _refuse_repeated_keys(data: bytes, where: str) -> None:
    """pydantic keeps the last of two values under one key without a word. What the numbers say does not matter here."""
    json.loads(data, object_pairs_hook=partial(_refuse_repeated_key, where), parse_int=str, parse_float=str)


def _refuse_repeated_key(where: str, pairs: list[tuple[str, None]]) -> None:
    if len(dict(pairs)) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise InputError(f"duplicate key {repeated!r:.80} in a JSON object", where=where, fix="remove one of them")


def json_type(value: Any) -> str:
    """What JSON calls a decoded value, for messages."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "a string" if isinstance(value, str) else f"{json.dumps(value):.40}"


class WrongShape(ValueError):
    """Says what is wrong with a value in somebody else's file; `wrong_shape_is_input_error` adds where."""


@contextmanager
def wrong_shape_is_input_error(what: str, where: str, fix: str | None = None) -> Iterator[None]:
    """Turn whatever goes wrong while a decoded file is taken apart into an InputError that begins with `what`."""
    try:
        yield
    except InputError as error:
        if error.where is not None:
            raise
        raise InputError(error.what, where=where, fix=error.fix or fix) from None
    except ValidationError as error:
        raise _input_error(error, where) from None
    except WrongShape as error:
        raise InputError(f"{what}: {error}", where=where, fix=fix) from None
    except KeyError as error:
        missing = f": {error.args[0]!r:.80} is missing" if error.args and isinstance(error.args[0], str) else ""
        raise InputError(what + missing, where=where, fix=fix) from None
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError):
        raise InputError(what, where=where, fix=fix) from None


def list_of(value: Any, what: str) -> list[Any]:
    """The value, if it is a list; else a WrongShape. (A string would pass for a list of its letters.)"""
    if not isinstance(value, list):
        raise WrongShape(f"{what} must be a list, found {json_type(value)}")
    return value


def _input_error(error: ValidationError, where: str) -> InputError:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    plainly = {
        "string_pattern_mismatch": f"{field} has no text",
        "missing": f"{field} is missing",
        "extra_forbidden": f"unknown field {field}",
    }
    what = plainly.get(first["type"], f"{field}: {said}" if field else said)
    others = error.error_count() - 1
    more = f" (and {others} more error{'s' * (others > 1)})" if others else ""
    return InputError(what + more, where=where)


def open_input(path: str | Path) -> IO[bytes]:
    """A file opened for reading, "-" for standard input. UTF-16 and UTF-32 with a byte order mark come as UTF-8."""
    if str(path) == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", fix="give the name of a file")
        return as_utf8(sys.stdin.buffer, "standard input")
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError("expected a file, found a folder", where=path, fix="give a file in this folder")
        return as_utf8(path.open("rb"), str(path))
    except FileNotFoundError:
        raise InputError("no such file", where=path, fix="check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        fix = "check the path, and that you may read the file"
        raise InputError(f"cannot open the file: {reason}", where=str(path)[:300], fix=fix) from None


def as_utf8(stream: IO[bytes], name: str) -> IO[bytes]:
    """The stream itself, or its text in UTF-8 if it begins with the mark of another Unicode encoding."""
    if not isinstance(stream, io.BufferedReader):
        return stream
    head = stream.peek(4)[:4]
    encoding = next((encoding for mark, encoding in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), None)
    if encoding is None:
        return stream
    data = stream.read(MAX_LINE_BYTES + 1)
    _close(stream)
    if len(data) > MAX_LINE_BYTES:
        fix = "save the file as UTF-8"
        raise InputError(
            f"{encoding.upper()} files larger than {MAX_LINE_BYTES // 2**20} MB cannot be read", where=name, fix=fix
        )
    try:
        return io.BytesIO(data.decode(encoding).encode())
    except UnicodeError as error:
        what = (
            f"the file begins with a {encoding.upper()} byte order mark, but is not valid {encoding.upper()}: "
            f"{getattr(error, 'reason', error)}"
        )
        raise InputError(what, where=name, fix="save the file as UTF-8") from None


def read_lines(path: str | Path, *, binary: bytes | None = None) -> Generator[tuple[str, bytes]]:
    """("file:line", bytes) for every line that is not blank; a line past MAX_LINE_BYTES is an error.

    A file that begins with `binary` has no lines, and comes as a whole.
    """
    stream = open_input(path)
    name = "standard input" if str(path) == "-" else str(path)
    try:
        yield from lines_of(stream, name, binary=binary)
    finally:
        _close(stream)


def lines_of(
    stream: IO[bytes] | io.BufferedIOBase, name: str, *, binary: bytes | None = None
) -> Generator[tuple[str, bytes]]:
    """Likewise, of a stream that is open."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        where = f"{name}:{number}"
        if binary and number == 1 and line.startswith(binary):
            yield where, line + stream.read()
            return
        if len(line) > MAX_LINE_BYTES:
            fix = "check that this is JSONL, with one record per line"
            raise InputError(f"this line is longer than {MAX_LINE_BYTES // 2**20} MB", where=where, fix=fix)
        if line.strip():
            yield where, line


def _close(stream: IO[bytes]) -> None:
    if sys.stdin is None or stream is not sys.stdin.buffer:
        stream.close()


def read(path: str | Path) -> Iterator[AnyRecord]:
    """The records of a file in our format, one at a time. An id that comes twice is an error."""
    with closing(read_lines(path)) as lines:  # an error on the way closes the file at once
        yield from read_records(lines)


def read_records(lines: Iterable[tuple[str, bytes]]) -> Iterator[AnyRecord]:
    """Likewise, from lines as `read_lines` gives them."""
    once = _Once()
    for where, line in lines:
        record = loads(line, where)
        once.check(record, where)
        yield record


class _Once:
    """Sees to it that an id comes once. Keeps hashes, not ids: a large file must not fill the memory."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def check(self, record: AnyRecord, where: str | Path) -> None:
        key = hash((type(record), record.id))
        if key in self._seen:
            raise InputError(f"duplicate id {record.id!r}", where=where, fix="give every procedure a unique id")
        self._seen.add(key)


@contextmanager
def atomic_output(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary stream that becomes the file only when the block ends well; `-` is standard output."""
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = output_path(path)
    if target.exists() and not target.is_file():  # a pipe or a device takes what comes; there is nothing to replace
        with disk_errors_name(target), target.open("wb") as stream:
            yield stream
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        stream = temporary.open("xb")
    except OSError as error:
        raise InputError(
            f"cannot write the file: {error.strerror}",
            where=target,
            fix=_WRITABLE,
        ) from None
    try:
        with disk_errors_name(target):
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def output_path(path: str | Path) -> Path:
    """The file to write: a link stays one, and what it names is written. A folder or a loop of links is an error."""
    try:
        target = Path(path).resolve()
        if target.is_symlink():  # from Python 3.13 on, resolve leaves a loop of links as it is
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        is_folder = target.is_dir()
        target.exists()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a loop; ValueError: a NUL byte
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot write the file: {reason}", where=str(path)[:300], fix=_OTHER_NAME) from None
    if is_folder:
        what = "cannot write the file: a folder has this name"
        raise InputError(what, where=target, fix="give the name of a file in this folder")
    return target


@contextmanager
def disk_errors_name(path: Path) -> Iterator[None]:
    """A full or failing disk does not say which file it could not write: this does."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _DISK_ERRORS:
            error.filename = str(path)
        raise


_OTHER_NAME = "give another file name, in a folder that you may write to"
_WRITABLE = "check that the folder exists and that you may write to it, or give another file name"
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def open_output(path: Path, *, append: bool) -> IO[bytes]:
    """A file that grows record by record, for runs that may be interrupted; an InputError says why it cannot be."""
    try:
        return path.open("ab" if append else "wb")
    except OSError as error:
        raise InputError(f"cannot write the file: {error.strerror}", where=path, fix=_WRITABLE) from None


def write(records: Iterable[AnyRecord], path: str | Path) -> int:
    """Write records to a file, atomically; returns how many. An id that comes twice is an error, as in reading."""
    count, once = 0, _Once()
    with atomic_output(path) as stream:
        for record in records:
            once.check(record, path)
            stream.write(dumps(record) + b"\n")
            count += 1
    return count


def write_text(path: str | Path, text: str) -> None:
    """Write a file as a whole, or not at all."""
    with atomic_output(path) as stream:
        stream.write(text.encode())
