"""The file in the cache: found, trusted by its record, hashed again when the record does not fit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_weights import CONTENT, TINY

from fluents.download import sha256_of
from fluents.errors import ChecksumError, DataMissingError, UnknownNameError
from fluents.weights import base_weights
from fluents.weights.base_weights import (
    BASES,
    DEFAULT,
    is_checked,
    is_here,
    remember,
    verify,
    weights_dir,
    weights_path,
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(BASES, TINY.name, TINY)


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every file that is hashed, in order."""
    seen: list[Path] = []

    def counting(path: Path) -> str:
        seen.append(path)
        return sha256_of(path)

    monkeypatch.setattr(base_weights, "sha256_of", counting)
    return seen


@pytest.fixture
def stored() -> Path:
    TINY.path.parent.mkdir(parents=True)
    TINY.path.write_bytes(CONTENT)
    return TINY.path


def record() -> Path:
    return TINY.path.with_name("tiny.gguf.checked.json")


def test_every_entry_is_well_formed() -> None:
    assert DEFAULT in BASES
    for name, base in BASES.items():
        assert base.name == name
        assert re.fullmatch(r"[0-9a-f]{64}", base.sha256)
        assert re.fullmatch(r"[\w.-]+", base.file), "a plain file name, as it becomes part of the cache"
        assert base.size > 0


def test_the_folder_is_in_the_cache(tmp_path: Path) -> None:
    assert weights_dir() == tmp_path / "cache" / "weights"
    assert weights_dir() / "tiny.gguf" == TINY.path


def test_an_absent_file_is_told_with_the_remedy() -> None:
    with pytest.raises(DataMissingError, match="not on this machine") as caught:
        weights_path("toy")
    assert (caught.value.where, caught.value.fix) == (str(TINY.path), "fluents weights get toy")
    assert not is_here(TINY)
    assert not TINY.path.parent.exists(), "asking creates nothing"


@pytest.mark.parametrize("ask", [weights_path, verify])
def test_an_unknown_name_lists_those_there_are(ask: Callable[[str], Path]) -> None:
    with pytest.raises(UnknownNameError, match=DEFAULT):
        ask("../tiny")


def test_a_file_is_hashed_once_and_then_trusted_by_every_process(stored: Path, hashed: list[Path]) -> None:
    assert [weights_path("toy") for _ in range(3)] == [stored] * 3
    assert hashed == [stored]
    assert set(json.loads(record().read_bytes())) == {"size", "mtime_ns", "sha256"}


def test_verify_always_hashes(stored: Path, hashed: list[Path]) -> None:
    weights_path("toy")
    assert verify("toy") == stored
    assert len(hashed) == 2


def test_a_change_of_time_alone_is_hashed_again_and_recorded(stored: Path, hashed: list[Path]) -> None:
    weights_path("toy")
    os.utime(stored, ns=(1, 1))
    weights_path("toy")
    weights_path("toy")
    assert len(hashed) == 2


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"!", CONTENT[:-1], CONTENT + b"!", b""])
def test_a_changed_file_is_refused_and_no_longer_trusted(stored: Path, content: bytes) -> None:
    weights_path("toy")
    stored.write_bytes(content)
    os.utime(stored, ns=(1, 1))
    with pytest.raises(ChecksumError, match=TINY.sha256) as caught:
        weights_path("toy")
    assert caught.value.fix == "fluents weights get toy"
    assert not record().exists()
    assert not is_checked(TINY)


def test_damage_that_leaves_length_and_time_is_found_by_verify(stored: Path) -> None:
    weights_path("toy")
    time = stored.stat().st_mtime_ns
    stored.write_bytes(bytes(len(CONTENT)))
    os.utime(stored, ns=(time, time))
    assert weights_path("toy") == stored
    with pytest.raises(ChecksumError):
        verify("toy")
    with pytest.raises(ChecksumError):
        weights_path("toy")


@pytest.mark.parametrize("broken", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b'{"size": 1}', b"null"])
@pytest.mark.usefixtures("stored")
def test_a_broken_record_is_only_a_reason_to_hash(hashed: list[Path], broken: bytes) -> None:
    record().write_bytes(broken)
    weights_path("toy")
    weights_path("toy")
    assert len(hashed) == 1


def test_the_record_of_another_version_is_not_trusted(stored: Path) -> None:
    remember(TINY)
    record().write_bytes(record().read_bytes().replace(TINY.sha256.encode(), b"0" * 64))
    stored.write_bytes(bytes(len(CONTENT)))
    with pytest.raises(ChecksumError):
        weights_path("toy")


def test_a_cache_that_cannot_be_written_still_serves(stored: Path, hashed: list[Path]) -> None:
    record().mkdir()  # file modes do not stop an administrator, a folder in the way does
    assert [weights_path("toy"), verify("toy"), weights_path("toy")] == [stored] * 3
    assert len(hashed) == 3


def test_a_file_that_may_not_be_read(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(base_weights, "sha256_of", refuse)
    with pytest.raises(DataMissingError, match="Permission denied") as caught:
        weights_path("toy")
    assert caught.value.where == str(stored)


def test_is_here_goes_by_length(stored: Path) -> None:
    assert is_here(TINY)
    stored.write_bytes(b"short")
    assert not is_here(TINY)
