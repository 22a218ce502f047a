"""The file format: what is written is read back, and what cannot be read is said to be where it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from fluents import jsonl
from fluents.errors import InputError
from fluents.records import Procedure, Trace
from strategies import traces

TRACE = Trace(procedure=Procedure(id="tea", goal="Make tea", steps=("Boil the water.",)))


@given(traces())
def test_a_trace_survives_the_round_trip(trace: Trace) -> None:
    line = jsonl.dumps(trace)
    assert b"\n" not in line
    assert jsonl.loads(line) == trace
    assert jsonl.loads(json.dumps(json.loads(line), indent=1)) == trace, "whatever the order of keys and white space"


def test_a_line_says_its_format_and_kind() -> None:
    assert json.loads(jsonl.dumps(TRACE)) | {"procedure": ...} == {"fluents": 1, "kind": "trace", "procedure": ...}


def _write(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


GOOD = jsonl.dumps(TRACE) + b"\n"


def _with_id(number: int) -> bytes:
    return jsonl.dumps(TRACE.replace(procedure=TRACE.procedure.replace(id=f"p{number}"))) + b"\n"


@pytest.mark.parametrize(
    ("lines", "what", "line"),
    [
        ([*(_with_id(n) for n in range(811)), b'{"fluents": 1, oops}\n'], "malformed JSON", 812),
        ([GOOD, b'{"fluents":1,"kind":"trace","procedure":{"id":"x","steps":[" "]}}\n'], "has no text", 2),
        ([GOOD, b"\n", GOOD], "duplicate id 'tea'", 3),
        ([GOOD, _with_id(2)[:-20]], "incomplete JSON", 2),
        ([GOOD, b'{"fluents":1,"kind":"trace","procedure":{"id":"\xff\xfe"}}\n'], "invalid UTF-8: byte 0xff", 2),
        ([b'{"fluents":2,"kind":"trace"}\n'], "format version 2", 1),
        ([b'{"fluents":1,"kind":"recipe"}\n'], "unknown kind of record 'recipe'", 1),
        ([b'{"id":"x"}\n'], "not a fluents record", 1),
        ([b"[1, 2]\n"], "expected a JSON object", 1),
        ([b"[" * 100_000], "malformed JSON", 1),
        ([b'{"kind":"trace","fluents":1,"kind":"procedure"}\n'], "duplicate key 'kind' in a JSON object", 1),
        ([b'{"kind":"trace","fluents":1,"x":[{"%b":1,"%b":2}]}\n' % (b"k" * 999, b"k" * 999)], "duplicate key 'kkk", 1),
        ([b'{"fluents":1,"kind":"procedure","id":"x","steps":["a"],"id":"y"}\n'], "duplicate key 'id'", 1),
        ([b'{"fluents":1,"kind":"procedure","id":"x","steps":["a"],"extra":{"n":1,"n":2}}\n'], "duplicate key 'n'", 1),
        ([b'{"fluents":1,"kind":"procedure","id":"x","steps":["a"],"extra":{"n":[1e999]}}\n'], "finite", 1),
        ([b'{"fluents":1,"kind":"trace","procedure":{"id":"x","steps":["a"]},"chnages":[]}\n'], "chnages", 1),
    ],
)
def test_a_broken_line_is_named_with_its_number(tmp_path: Path, lines: list[bytes], what: str, line: int) -> None:
    path = _write(tmp_path / "traces.jsonl", *lines)
    with pytest.raises(InputError) as error:
        list(jsonl.read(path))
    assert what in error.value.what
    assert error.value.where == f"{path}:{line}"


def test_a_line_of_50_mb_is_refused_without_being_held(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as stream:
        stream.seek(50 * 1024 * 1024)  # a sparse file: a line of 50 MB of NUL
        stream.write(b"\n")
    with pytest.raises(InputError, match="longer than 32 MB"):
        list(jsonl.read(path))


def test_a_folder_or_a_missing_file_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a file, found a folder"):
        list(jsonl.read(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        list(jsonl.read(tmp_path / "none.jsonl"))


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    jsonl.write([TRACE], path)
    before = path.read_bytes()

    def failing() -> Iterator[Trace]:
        yield TRACE
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        jsonl.write(failing(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_writing_into_a_missing_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write the file"):
        jsonl.write([TRACE], tmp_path / "no" / "such.jsonl")


def test_reading_streams(tmp_path: Path) -> None:
    """The first record comes before a broken later line is even looked at."""
    path = _write(tmp_path / "traces.jsonl", GOOD, b"oops\n")
    records = jsonl.read(path)
    assert next(records) == TRACE
    with pytest.raises(InputError):
        next(records)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-8-sig"])
def test_other_unicode_encodings_are_read_if_they_are_marked(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "tea.jsonl"
    line = jsonl.dumps(Procedure(id="p", goal="Thé", steps=("Boil.",))).decode()
    path.write_bytes(("\ufeff" * (encoding == "utf-16-be") + line).encode(encoding))
    assert list(jsonl.read(path)) == [Procedure(id="p", goal="Thé", steps=("Boil.",))]


def test_broken_utf16_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "tea.txt"
    for data in (b"\xff\xfe\x41", b"\xff\xfe\x00\xd8\x00\x00", b"\xff\xfe\x00\x00\x41"):
        path.write_bytes(data)
        with pytest.raises(InputError, match="byte order mark") as caught:
            list(jsonl.read_lines(path))
        assert caught.value.where == str(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_is_read_where_standard_input_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """As in a service that was started without one."""
    (tmp_path / "a.txt").write_text("Boil the water.", encoding=encoding)
    monkeypatch.setattr(sys, "stdin", None)
    assert [line for _, line in jsonl.read_lines(tmp_path / "a.txt")] == [b"Boil the water."]
    with pytest.raises(InputError, match="standard input is closed"):
        list(jsonl.read_lines("-"))
