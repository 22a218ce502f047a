"""Procedures from files and folders: what is read, what is passed over, and what a bad file does."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from fluents import jsonl
from fluents.data.inputs import looks_like_json, procedures
from fluents.errors import FluentsError, InputError
from fluents.records import Procedure, Trace


def folder(path: Path, **texts: str | bytes) -> Path:
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else text.encode()
        (path / name.replace("_", ".")).write_bytes(data)
    return path


def test_a_bad_file_among_good_ones_is_skipped_and_named(tmp_path: Path) -> None:
    """On a folder of a thousand texts, one must not stop the others."""
    folder(tmp_path, a_md="# Tea\n\n1. Boil.", b_txt=b"\xff\xfe\xff", c_json="{broken", d_md="# Toast\n\n1. Slice.")
    skipped: list[FluentsError] = []
    assert [procedure.goal for procedure in procedures([tmp_path], skipped=skipped)] == ["Tea", "Toast"]
    assert [Path((error.where or "").partition(":")[0]).name for error in skipped] == ["b.txt", "c.json"]


def test_without_a_list_to_put_it_in_the_first_error_is_raised(tmp_path: Path) -> None:
    folder(tmp_path, a_md="# Tea\n\n1. Boil.", b_txt="")
    found = procedures([tmp_path])
    assert next(found).goal == "Tea"
    with pytest.raises(InputError, match=r"b\.txt"):
        next(found)


def test_a_file_read_in_part_keeps_what_was_read(tmp_path: Path) -> None:
    good = jsonl.dumps(Procedure(id="p", steps=("Boil.",)))
    folder(tmp_path, a_jsonl=good + b"\n{broken\n")
    skipped: list[FluentsError] = []
    assert [procedure.id for procedure in procedures([tmp_path], skipped=skipped)] == ["p"]
    assert "a.jsonl:2" in str(skipped[0])


def test_when_nothing_can_be_read_that_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no such file"):
        list(procedures([tmp_path / "none.md"], skipped=[]))
    with pytest.raises(InputError, match="none of the 2 inputs can be read"):
        list(procedures([tmp_path / "none.md", tmp_path / "empty"], skipped=[]))


def test_a_misspelt_dataset_is_told_from_a_missing_file() -> None:
    with pytest.raises(InputError, match="no such file or dataset") as caught:
        list(procedures(["oenpi:test"]))
    assert "fluents data list" in str(caught.value)


def test_a_url_must_be_downloaded_first() -> None:
    with pytest.raises(InputError, match="found a URL"):
        list(procedures(["https://example.com/soup.html"]))


def test_an_input_that_would_be_overwritten_is_never_just_skipped(tmp_path: Path) -> None:
    folder(tmp_path, a_md="Boil.", b_md="Pour.")
    with pytest.raises(InputError, match="overwrite this input"):
        procedures([tmp_path / "a.md", tmp_path / "b.md"], outputs=[tmp_path / "a.md"], skipped=[])
    assert len(list(procedures([tmp_path], outputs=[None, "-", tmp_path / "a.md"]))) == 1


def test_ids_are_unique_and_the_goal_can_be_given(tmp_path: Path) -> None:
    record = jsonl.dumps(Trace(procedure=Procedure(id="brew", goal="Tea", steps=("Boil.",))))
    folder(tmp_path, a_md="Boil the water.", b_jsonl=record)
    found = list(procedures([tmp_path, tmp_path / "a.md"], goal="Brew"))
    assert [(procedure.id, procedure.goal) for procedure in found] == [
        ("brew", "Brew"),
        ("brew-2", "Brew"),
        ("brew-3", "Brew"),
    ]


def test_standard_input_is_told_apart_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def stdin(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))

    stdin("Boil the water. Pour it.")
    assert len(next(procedures(["-"])).steps) == 2
    stdin(json.dumps({"id": "1", "goal": "Tea", "steps": ["Boil."]}))
    assert next(procedures(["-"])).goal == "Tea"
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        next(procedures(["-"]))


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "openpi:nothing"])
def test_a_name_that_nothing_has_is_an_input_error(name: str) -> None:
    with pytest.raises(FluentsError):
        list(procedures([name], skipped=[]))


@pytest.mark.parametrize(
    ("head", "json_like"),
    [(b'\xef\xbb\xbf {"id"', True), (b'[\n {"a"', True), (b"{}", True), (b"[ ] Boil", False), (b"{Soup}", False)],
)
def test_json_is_told_from_text(head: bytes, json_like: bool) -> None:
    assert looks_like_json(head) is json_like


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_texts_and_json_in_utf16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    """Notepad and PowerShell save so."""
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    text = f"{mark}# Thé\n\n1. Boil.".encode(encoding)
    folder(tmp_path, a_txt=text, b_json=(mark + '{"id": "1", "goal": "Té", "steps": ["Boil."]}').encode(encoding))
    assert [procedure.goal for procedure in procedures([tmp_path])] == ["Thé", "Té"]
    for data, goal in ((text, "Thé"), ((tmp_path / "b.json").read_bytes(), "Té")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
        assert next(procedures(["-"])).goal == goal
