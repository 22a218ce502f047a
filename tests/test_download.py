"""Downloads against a real server on this machine that answers well, badly, late or not at all."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fluents import download as downloads
from fluents.download import download, sha256_of
from fluents.errors import ChecksumError, DataMissingError

CONTENT = bytes(range(256)) * 2000
HALF = len(CONTENT) // 2
WAIT = 60.0

PROGRAM = """
import sys
from pathlib import Path
from fluents.download import download
print("ready", flush=True)
download(sys.argv[1], Path(sys.argv[2]), sha256=sys.argv[3], size=int(sys.argv[4]))
"""


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Server(ThreadingHTTPServer):
    """Answers each request with the next word of `script`, and with "ranged" when there is none left."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.script: list[str] = []
        self.asked: list[str | None] = []
        """The Range header of every request."""
        self.go_on = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(self.headers.get("Range"))
        answer = self.server.script.pop(0) if self.server.script else "ranged"
        with suppress(ConnectionError):
            getattr(self, answer)()

    def head(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def whole(self) -> None:
        self.head(200, Content_Length=len(self.server.content))
        self.wfile.write(self.server.content)

    def ranged(self) -> None:
        content, asked = self.server.content, self.headers.get("Range")
        if asked is None:
            return self.whole()
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            return self.head(416, Content_Range=f"bytes */{len(content)}", Content_Length=0)
        span = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.head(206, Content_Range=span, Content_Length=len(content) - start)
        self.wfile.write(content[start:])
        return None

    def wrong_range(self) -> None:
        self.head(206, Content_Range=f"bytes 7-9/{len(self.server.content)}", Content_Length=3)
        self.wfile.write(self.server.content[7:10])

    def dropped(self) -> None:
        self.head(200, Content_Length=len(self.server.content))
        self.wfile.write(self.server.content[:HALF])

    def dropped_unsaid(self) -> None:
        self.head(200)  # no length: the end of the connection looks like the end of the file
        self.wfile.write(self.server.content[:HALF])

    def stalled(self) -> None:
        self.dropped()
        self.wfile.flush()
        self.server.go_on.wait(WAIT)

    def slow(self) -> None:
        self.server.go_on.wait(WAIT)
        self.whole()

    def failing(self) -> None:
        self.head(500, Content_Length=0)

    def busy(self) -> None:
        self.head(429, Content_Length=0)

    def missing(self) -> None:
        self.head(404, Content_Length=0)

    def redirect(self) -> None:
        self.head(302, Location="/elsewhere", Content_Length=0)

    def redirect_to_disk(self) -> None:
        self.head(302, Location="file:///etc/hostname", Content_Length=0)

    def endless(self) -> None:
        self.head(200)
        for _ in range(10_000):
            self.wfile.write(bytes(65536))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(downloads, "FIRST_PAUSE", 0.001)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.go_on.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "er" / "file.bin"


def part_of(target: Path) -> Path:
    return target.with_name("file.bin.part")


def write_part(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True)
    part_of(target).write_bytes(content)


def get(server: Server, target: Path, size: int | None = len(CONTENT)) -> Path:
    return download(server.url, target, sha256=checksum(CONTENT), size=size)


def assert_whole(target: Path) -> None:
    assert target.read_bytes() == CONTENT
    assert not part_of(target).exists()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def start_process(server: Server, target: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, server.url, str(target), checksum(CONTENT), str(len(CONTENT))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_sha256_of_a_file_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT * 5)
    assert sha256_of(path) == checksum(CONTENT * 5)


@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_plain_download_reports_progress(server: Server, target: Path, size: int | None) -> None:
    seen: list[tuple[int, int | None]] = []
    digest = checksum(CONTENT).upper()  # either case is the same checksum
    found = download(server.url, target, sha256=digest, size=size, progress=lambda *now: seen.append(now))
    assert found == target
    assert_whole(target)
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_file_that_is_there_is_not_asked_for(server: Server, target: Path) -> None:
    get(server, target)
    get(server, target)
    assert server.asked == [None]


def test_a_wrong_file_at_the_place_is_replaced(server: Server, target: Path) -> None:
    target.parent.mkdir(parents=True)
    target.write_bytes(b"something else")
    get(server, target)
    assert_whole(target)


def test_empty_file(server: Server, target: Path) -> None:
    server.content = b""
    for size in (0, None):
        path = target.with_name(f"empty{size}")
        assert download(server.url, path, sha256=checksum(b""), size=size).read_bytes() == b""


@pytest.mark.parametrize("answer", ["dropped", "dropped_unsaid"])
def test_after_a_drop_only_the_rest_is_asked_for(server: Server, target: Path, answer: str) -> None:
    server.script = [answer]
    get(server, target)
    assert server.asked == [None, f"bytes={HALF}-"]
    assert_whole(target)


def test_a_server_without_ranges_sends_all_again(server: Server, target: Path) -> None:
    server.script = ["dropped", "whole"]
    get(server, target)
    assert server.asked == [None, f"bytes={HALF}-"]
    assert_whole(target)


def test_another_range_than_asked_for_is_not_used(server: Server, target: Path) -> None:
    server.script = ["dropped", "wrong_range"]
    get(server, target)
    assert server.asked == [None, f"bytes={HALF}-", None]
    assert_whole(target)


def test_passing_failures_are_retried(server: Server, target: Path) -> None:
    server.script = ["failing", "failing", "busy", "redirect"]
    get(server, target)
    assert_whole(target)


def test_lasting_failure_keeps_the_part_and_says_what_to_do(server: Server, target: Path) -> None:
    server.script = ["dropped", *["failing"] * (downloads.ATTEMPTS - 1)]
    with pytest.raises(DataMissingError, match=r"5 attempts: the server replied with HTTP status 500") as caught:
        get(server, target)
    assert caught.value.where == server.url
    assert caught.value.fix is not None
    assert part_of(target).read_bytes() == CONTENT[:HALF]
    get(server, target)
    assert server.asked[-1] == f"bytes={HALF}-"
    assert_whole(target)


def test_not_found_is_said_at_once(server: Server, target: Path) -> None:
    server.script = ["missing"]
    with pytest.raises(DataMissingError, match="404"):
        get(server, target)
    assert len(server.asked) == 1
    assert not target.exists()


def test_wrong_content_leaves_nothing(server: Server, target: Path) -> None:
    server.content = b"!" + CONTENT[1:]
    with pytest.raises(ChecksumError) as caught:
        get(server, target)
    for told in (checksum(CONTENT), checksum(server.content), server.url):
        assert told in str(caught.value)
    assert not target.exists()
    assert not part_of(target).exists()


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"!", b""])
def test_wrong_length_is_a_wrong_file(server: Server, target: Path, content: bytes) -> None:
    server.content = content
    with pytest.raises(ChecksumError, match=f"expected {len(CONTENT)} bytes, found {len(content)}"):
        get(server, target)
    assert not part_of(target).exists()


def test_an_endless_answer_is_cut_off(server: Server, target: Path) -> None:
    server.script = ["endless"]
    with pytest.raises(ChecksumError):
        get(server, target)
    assert not part_of(target).exists()


def test_a_whole_part_needs_no_bytes(server: Server, target: Path) -> None:
    write_part(target, CONTENT)
    get(server, target)
    assert server.asked == []
    assert_whole(target)


def test_a_whole_part_of_unknown_size_is_recognised(server: Server, target: Path) -> None:
    write_part(target, CONTENT)
    get(server, target, size=None)
    assert server.asked == [f"bytes={len(CONTENT)}-"]
    assert_whole(target)


@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_a_part_that_is_too_long_is_thrown_away(server: Server, target: Path, size: int | None) -> None:
    write_part(target, CONTENT + b"more")
    get(server, target, size)
    assert server.asked[-1] is None
    assert_whole(target)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=st.binary(max_size=40), content=st.binary(max_size=30), sized=st.booleans(), ranges=st.booleans())
def test_whatever_the_part_holds_the_file_is_right(
    server: Server, tmp_path: Path, part: bytes, content: bytes, sized: bool, ranges: bool
) -> None:
    server.content = content
    server.script = [] if ranges else ["whole"] * 3
    target = tmp_path / "file.bin"
    target.unlink(missing_ok=True)
    part_of(target).write_bytes(part)
    download(server.url, target, sha256=checksum(content), size=len(content) if sized else None)
    assert target.read_bytes() == content


def test_no_server(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "ATTEMPTS", 2)
    monkeypatch.setattr(downloads, "FIRST_PAUSE", 0.001)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # taken, but nobody listens
        with pytest.raises(DataMissingError, match="2 attempts"):
            download(f"http://127.0.0.1:{free.getsockname()[1]}/", target, sha256=checksum(CONTENT))


def test_a_silent_server_is_given_up(server: Server, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "ATTEMPTS", 2)
    server.script = ["slow", "slow"]
    with pytest.raises(DataMissingError, match="2 attempts"):
        download(server.url, target, sha256=checksum(CONTENT), timeout=0.05)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "no address", "http://\x00/", f"http://{'a' * 300}/"])
def test_an_address_that_cannot_be_one_is_not_tried_again(target: Path, url: str) -> None:
    with pytest.raises(DataMissingError) as caught:
        download(url, target, sha256=checksum(CONTENT))
    assert caught.value.fix == "check the address"


def test_a_server_cannot_point_at_files_of_this_machine(server: Server, target: Path) -> None:
    server.script = ["redirect_to_disk"]
    with pytest.raises(DataMissingError):
        get(server, target)
    assert not target.exists()


def test_errors_do_not_show_passwords(server: Server, target: Path) -> None:
    server.script = ["missing"]
    with pytest.raises(DataMissingError) as caught:
        download(server.url.replace("//", "//me:secret@"), target, sha256=checksum(CONTENT))
    assert "secret" not in str(caught.value)


def test_an_unusable_proxy_is_named(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://nowhere")
    with pytest.raises(DataMissingError, match="gopher"):
        download("http://127.0.0.1/x", target, sha256=checksum(CONTENT))


def test_a_place_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataMissingError, match="cannot write"):
        get(server, tmp_path / "file" / "below")


def test_a_local_copy_is_checked_too(tmp_path: Path, target: Path) -> None:
    source = tmp_path / "a file, 100 % local"
    source.write_bytes(CONTENT)
    download(source.as_uri(), target, sha256=checksum(CONTENT))
    assert_whole(target)
    with pytest.raises(ChecksumError):
        download(source.as_uri(), target, sha256=checksum(b"other"))
    assert_whole(target)
    with pytest.raises(DataMissingError, match="no such file"):
        download((tmp_path / "none").as_uri(), target, sha256=checksum(b"other"))


def test_interrupt_keeps_the_part_and_frees_the_lock(server: Server, target: Path) -> None:
    server.script = ["stalled"]

    def interrupt(done: int, _: int | None) -> None:
        if done == HALF:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(server.url, target, sha256=checksum(CONTENT), progress=interrupt)
    assert part_of(target).read_bytes() == CONTENT[:HALF]
    assert not target.exists()
    get(server, target)
    assert server.asked == [None, f"bytes={HALF}-"]
    assert_whole(target)


def test_two_processes_share_one_download(server: Server, target: Path) -> None:
    server.script = ["slow"]
    processes = [start_process(server, target) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    until(lambda: len(server.asked) == 1)
    time.sleep(0.2)  # long enough for the second to ask, if nothing held it back
    server.go_on.set()
    for process in processes:
        process.communicate(timeout=WAIT)
        assert process.returncode == 0
    assert server.asked == [None]
    assert_whole(target)


def test_a_killed_process_is_continued_by_the_next(server: Server, target: Path) -> None:
    server.script = ["stalled"]
    process = start_process(server, target)
    until(lambda: part_of(target).exists() and part_of(target).stat().st_size > HALF // 2)
    process.kill()
    process.communicate(timeout=WAIT)
    kept = part_of(target).stat().st_size
    assert not target.exists()
    get(server, target)
    assert server.asked == [None, f"bytes={kept}-"]
    assert_whole(target)


def test_waiting_for_another_process_ends(server: Server, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "LOCK_TIMEOUT", 0.05)
    target.parent.mkdir(parents=True)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with FileLock(target.with_name(".file.bin.lock")):
            held.set()
            done.wait(WAIT)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(WAIT)
    try:
        with pytest.raises(DataMissingError, match="another process"):
            get(server, target)
    finally:
        done.set()
        holder.join()
    assert server.asked == []
