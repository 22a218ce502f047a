"""The catalogue of published files: its own table, and the way from a name to a checked file on this machine."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path, PurePosixPath

import pytest

from fluents import download as downloads
from fluents.data import file_catalogue
from fluents.data.file_catalogue import DATASETS, DataFile, cache_dir, fetch, files, find, local_path
from fluents.download import sha256_of
from fluents.errors import ChecksumError, DataMissingError, UnknownNameError

ALL_FILES = [file for dataset in DATASETS for file in files(dataset)]
CONTENT = {"LICENSE": b"Do as you like.\n", "data/a b#1.jsonl": b"{}\n", "data/empty.txt": b""}


def data_file(path: str, content: bytes | None) -> DataFile:
    if content is None:
        return DataFile("openpi", "someone/something", "c0ffee", path, None, None)
    return DataFile("openpi", "someone/something", "c0ffee", path, len(content), hashlib.sha256(content).hexdigest())


OURS = tuple(data_file(path, content) for path, content in CONTENT.items())


def write_mirror(folder: Path) -> None:
    for file in OURS:
        path = folder / file.mirror_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT[file.path])


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test here sees the user's cache, mirror or proxy."""
    for name in ("FLUENTS_DATA_MIRROR", "FLUENTS_DATA_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache" / "data"


class QuietHandler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open, as the real server does
    disable_nagle_algorithm = True  # or every answer waits 40 ms for the client's acknowledgement

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a real server on this machine that serves the folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with the files of OURS, which stand in for those of openpi."""
    monkeypatch.setattr(file_catalogue, "_catalogue", lambda: {"openpi": (*OURS, data_file("data/lost.txt", None))})
    root = tmp_path / "upstream"
    for file in OURS:
        path = root / file.repo / file.commit / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT[file.path])
    with serving(root) as url:
        yield url


def test_the_table_is_sorted_and_each_file_is_in_it_once() -> None:
    text = (resources.files("fluents.data") / "catalogue.tsv").read_text(encoding="utf-8")
    header, *rows = [line.split("\t") for line in text.splitlines()]
    assert header == ["dataset", "repo", "commit", "path", "bytes", "sha256"]
    assert rows == sorted(rows)
    assert {row[0] for row in rows} == set(DATASETS)
    assert len({(row[0], row[1], row[3]) for row in rows}) == len(rows) == len(ALL_FILES)


def test_every_row_is_well_formed() -> None:
    for file in ALL_FILES:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", file.repo)
        assert re.fullmatch(r"[0-9a-f]{40}", file.commit)
        if file.sha256 is None:
            assert file.size is None
        else:
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
            assert file.size is not None


def test_no_path_leaves_its_folder() -> None:
    for file in ALL_FILES:
        path = PurePosixPath(file.mirror_path)
        assert not path.is_absolute()
        assert not set(file.mirror_path.split("/")) & {"", ".", ".."}
        assert not set(file.mirror_path) & set('\\:*?"<>|'), "a name Windows cannot have"


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_dataset_comes_with_its_licence(dataset: str) -> None:
    assert any(PurePosixPath(file.path).name == "LICENSE" for file in files(dataset))
    assert file_catalogue.LICENCES[dataset].startswith("MIT")


def test_url_is_quoted_and_pinned_to_the_commit() -> None:
    file = data_file("data/a b#1.jsonl", b"")
    assert file.url == "https://raw.githubusercontent.com/someone/something/c0ffee/data/a%20b%231.jsonl"
    assert file.mirror_path == "someone/something/data/a b#1.jsonl"


def test_find() -> None:
    file = find("crepe", "data_dev_v2.json")
    assert (file.dataset, file.path) == ("crepe", "data_dev_v2.json")
    with pytest.raises(UnknownNameError, match=r"data_dev_v2\.json"):
        find("crepe", "data_dev.json")
    with pytest.raises(UnknownNameError, match=r"openpi-v1\.1"):
        files("openpi3")


def test_cache_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_dir() == tmp_path / "cache" / "data"
    monkeypatch.setenv("FLUENTS_CACHE", "")  # empty is unset
    assert cache_dir().name == "data"
    assert "fluents" in str(cache_dir())
    assert cache_dir().is_absolute()


def test_missing_file_names_itself_the_place_and_the_remedy(own_cache: Path) -> None:
    with pytest.raises(DataMissingError) as caught:
        local_path(OURS[0])
    assert "LICENSE of someone/something" in caught.value.what
    assert caught.value.where == str(own_cache / "someone/something/LICENSE")
    assert caught.value.fix == "run `fluents data get openpi`, or set FLUENTS_DATA_MIRROR to a folder with the file"


def test_mirror_stands_in_for_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    write_mirror(own_cache)
    assert local_path(OURS[0]) == own_cache / OURS[0].mirror_path
    monkeypatch.setenv("FLUENTS_DATA_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(DataMissingError, match="FLUENTS_DATA_MIRROR must be the path of a folder"):
        local_path(OURS[0])
    (tmp_path / "mirror").mkdir()
    with pytest.raises(DataMissingError, match="not in the mirror") as caught:
        local_path(OURS[0])
    assert (
        caught.value.fix == "copy the file into the mirror; or unset FLUENTS_DATA_MIRROR, and run `fluents data get "
        f"{OURS[0].dataset}` to download it"
    )
    write_mirror(tmp_path / "mirror")
    assert [local_path(file) for file in OURS] == [tmp_path / "mirror" / file.mirror_path for file in OURS]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"Do as I like!!!\n", "SHA-256 " + hashlib.sha256(b"Do as I like!!!\n").hexdigest()),
        (b"Do", "2 bytes"),
        (b"", "0 bytes"),
    ],
)
def test_a_changed_file_is_refused(own_cache: Path, content: bytes, found: str) -> None:
    """The change is seen even though the file was found right before, in the same process."""
    write_mirror(own_cache)
    path = local_path(OURS[0])
    path.write_bytes(content)
    os.utime(path, ns=(0, 0))
    with pytest.raises(ChecksumError, match=f"differs from the published file.*found {found}"):
        local_path(OURS[0])


def test_a_file_is_hashed_once_per_process(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Path] = []

    def counting(path: Path) -> str:
        hashed.append(path)
        return sha256_of(path)

    monkeypatch.setattr("fluents.download.sha256_of", counting)
    write_mirror(own_cache)
    assert local_path(OURS[0]) == local_path(OURS[0])
    assert len(hashed) == 1


def test_a_file_that_may_not_be_read(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    write_mirror(own_cache)
    monkeypatch.setattr("fluents.download.sha256_of", refuse)  # file modes do not stop an administrator
    with pytest.raises(DataMissingError, match="Permission denied"):
        local_path(OURS[0])


def test_a_folder_in_place_of_a_file_is_no_file(own_cache: Path) -> None:
    (own_cache / OURS[0].mirror_path).mkdir(parents=True)
    with pytest.raises(DataMissingError, match="not on this machine"):
        local_path(OURS[0])


@pytest.mark.parametrize(
    ("dataset", "path"),
    [("openpi", "data/gold/train/id_answers_metadata.jsonl"), ("openpi-v1.1", "data/gold-v1.1/train.jsonl")],
)
def test_a_file_without_checksum_is_named_and_never_taken(dataset: str, path: str, own_cache: Path) -> None:
    file = find(dataset, path)
    placed = own_cache / file.mirror_path
    placed.parent.mkdir(parents=True)
    placed.write_bytes(b"anything")
    with pytest.raises(DataMissingError, match="the checksum of this file is not known") as caught:
        local_path(file)
    assert path in caught.value.what
    assert caught.value.where == file.url


def test_fetch_fills_the_cache(upstream: str, own_cache: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    paths = fetch("openpi", base_url=upstream + "/", progress=lambda *now: seen.append(now))
    assert paths == [own_cache / file.mirror_path for file in OURS]
    assert [local_path(file).read_bytes() for file in OURS] == list(CONTENT.values())
    total = sum(map(len, CONTENT.values()))
    assert seen[-1] == (total, total)
    assert seen == sorted(seen)


def test_fetch_takes_the_address_from_the_environment_and_skips_what_is_there(
    upstream: str, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    write_mirror(own_cache)
    (own_cache / OURS[0].mirror_path).write_bytes(b"broken")
    untouched = (own_cache / OURS[1].mirror_path).stat().st_mtime_ns
    monkeypatch.setenv("FLUENTS_DATA_URL", upstream)
    fetch("openpi")
    assert local_path(OURS[0]).read_bytes() == CONTENT["LICENSE"]
    assert (own_cache / OURS[1].mirror_path).stat().st_mtime_ns == untouched


def test_with_a_mirror_fetch_checks_it_and_asks_no_server(
    upstream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    assert upstream, "the files of the test stand for the published ones"
    write_mirror(tmp_path / "mirror")
    monkeypatch.setenv("FLUENTS_DATA_MIRROR", str(tmp_path / "mirror"))
    assert fetch("openpi", base_url="http://127.0.0.1:9") == [tmp_path / "mirror" / file.mirror_path for file in OURS]
    (tmp_path / "mirror" / OURS[1].mirror_path).unlink()
    with pytest.raises(DataMissingError, match="not in the mirror"):
        fetch("openpi", base_url="http://127.0.0.1:9")
    assert not own_cache.exists()


def test_fetch_of_a_file_that_is_gone(upstream: str, tmp_path: Path) -> None:
    (tmp_path / "upstream/someone/something/c0ffee/LICENSE").unlink()
    with pytest.raises(DataMissingError, match="404"):
        fetch("openpi", base_url=upstream)


def test_fetch_without_a_network(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "ATTEMPTS", 1)
    with pytest.raises(DataMissingError, match="could not download"):
        fetch("openpi-c", base_url="http://127.0.0.1:9")  # the discard port: nobody listens
    assert not [path for path in own_cache.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_fetch_of_an_unknown_dataset() -> None:
    with pytest.raises(UnknownNameError):
        fetch("../openpi")


@pytest.mark.parametrize("dataset", DATASETS)
def test_golden_every_published_file_has_its_checksum(
    dataset: str, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUENTS_DATA_MIRROR", str(mirror))
    for file in files(dataset):
        if file.sha256 is not None:
            path = local_path(file)
            assert path.stat().st_size == file.size
            assert sha256_of(path) == file.sha256


@pytest.mark.parametrize("dataset", DATASETS)
def test_golden_every_published_file_can_be_fetched(dataset: str, mirror: Path, tmp_path: Path) -> None:
    """From a real server laid out as the public one, through the cache, to the reader."""
    root = tmp_path / "upstream"
    for file in files(dataset):
        link = root / file.repo / file.commit
        if not link.exists():
            link.parent.mkdir(parents=True)
            link.symlink_to((mirror / file.repo).resolve())
    with serving(root) as url:
        paths = fetch(dataset, base_url=url)
    assert paths == [local_path(file) for file in files(dataset) if file.sha256 is not None]
