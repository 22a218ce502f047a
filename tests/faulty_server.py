"""A real OpenAI-compatible server on loopback that misbehaves on purpose, for tests of whatever asks a model.

with FaultyServer(answer=lambda body: '{"pot": ["heat"]}', fault=randomly(0.1, seed=1)) as server:
    Endpoint(server.base_url, "any")
"""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Body = dict[str, Any]

IN_TRANSPORT = ("429", "429-date", "500", "503", "drop", "half", "half-error", "hang", "html", "no-choices")
"""Faults of the connection or the server: the same request may succeed."""
IN_ANSWER = ("cut-json", "prose", "extra", "reversed", "empty", "length")
"""Faults of the model: the request succeeds, the answer is not as asked."""
FAULTS = IN_TRANSPORT + IN_ANSWER
HOSTILE = ("drip", "huge", "huge-error", "zipped", "429-hour")
"""Endless in time or size, compressed unasked, an hour's pause: to be asked for by name."""

Fault = Callable[[int, Body], str | None]
"""(number of the request, counted from 0, and its body) → a name of FAULTS, or None to behave."""


def never(number: int, body: Body) -> str | None:  # noqa: ARG001 - a Fault
    """Behave."""
    return None


def in_turn(*faults: str | None) -> Fault:
    """These faults for the first requests, then none."""
    return lambda number, body: faults[number] if number < len(faults) else None  # noqa: ARG005


def randomly(rate: float, seed: int, kinds: Sequence[str] = FAULTS) -> Fault:
    """Some fault at this rate."""
    draw = random.Random(seed)
    return lambda number, body: draw.choice(kinds) if draw.random() < rate else None  # noqa: ARG005


def prompt_of(body: Body) -> str:
    """What a request asks, its system message before it."""
    if "prompt" in body:
        return str(body["prompt"])
    return "\n\n".join(message["content"] for message in body["messages"])


class FaultyServer:
    """Answers what `answer` says, unless `fault` has other plans. `bodies` and `prompts` are what it was asked."""

    def __init__(self, answer: Callable[[Body], str], fault: Fault = never, *, hang: float = 3.0) -> None:
        self.answer, self.fault, self.hang = answer, fault, hang
        self.refuse: Callable[[Body], tuple[int, Body] | None] = lambda body: None  # noqa: ARG005
        """A status and a body instead of an answer, such as for a parameter the model does not take."""
        self.bodies: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[str] = []
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def prompts(self) -> list[str]:
        return [prompt_of(body) for body in self.bodies]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(owner: FaultyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body: Body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with owner.lock:
                fault = owner.fault(len(owner.bodies), body)
                owner.bodies.append(body)
                owner.headers.append({name.lower(): value for name, value in self.headers.items()})
                if fault:
                    owner.faults.append(fault)
            refused = owner.refuse(body)
            if refused:
                self._send(refused[0], json.dumps(refused[1]).encode())
            elif fault in IN_TRANSPORT + HOSTILE:
                getattr(self, "_" + fault.replace("-", "_"))()
            else:
                self._send(200, _completion(body, owner.answer(body), fault))

        def _send(self, status: int, content: bytes, kind: str = "application/json", **headers: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(content)

        def _429(self) -> None:
            self._send(429, b'{"error": {"message": "slow down"}}', retry_after="0.1")

        def _429_date(self) -> None:
            self._send(
                429, b'{"error": {"message": "slow down"}}', retry_after=formatdate(time.time() + 1, usegmt=True)
            )

        def _429_hour(self) -> None:
            self._send(429, b'{"error": {"message": "slow down"}}', retry_after="3600")

        def _500(self) -> None:
            self._send(500, b'{"error": {"message": "oops"}}')

        def _503(self) -> None:
            self._send(503, b"<html>busy</html>", kind="text/html")

        def _drop(self) -> None:
            self.close_connection = True

        def _half(self, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "500")
            self.end_headers()
            self.wfile.write(b'{"choices": [{"message": {"cont')
            self.close_connection = True

        def _half_error(self) -> None:
            self._half(500)

        def _hang(self) -> None:
            time.sleep(owner.hang)
            self.close_connection = True

        def _drip(self) -> None:
            self._pour(b" ", pause=0.1)

        def _huge(self) -> None:
            self._pour(b" " * 2**20)

        def _huge_error(self) -> None:
            self._pour(b" " * 2**20, status=401)

        def _zipped(self) -> None:
            self._send(200, gzip.compress(b" " * 2**20), content_encoding="gzip")

        def _pour(self, drop: bytes, pause: float = 0.0, status: int = 200) -> None:
            """The same without end, until the client has had enough."""
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.close_connection = True
            with suppress(OSError):
                while True:
                    self.wfile.write(drop)
                    time.sleep(pause)

        def _html(self) -> None:
            self._send(200, b"<html>Welcome to the hotel's network</html>", kind="text/html")

        def _no_choices(self) -> None:
            self._send(200, b'{"choices": [], "usage": null}')

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _completion(body: Body, text: str, fault: str | None) -> bytes:
    text = _spoilt(text, fault)
    ended = "length" if fault == "length" else "stop"
    choice: Body = {"index": 0, "finish_reason": ended}
    choice |= {"text": text} if "prompt" in body else {"message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": len(prompt_of(body).split()), "completion_tokens": len(text.split())}
    return json.dumps({"object": "completion", "choices": [choice], "usage": usage}).encode()


def _spoilt(text: str, fault: str | None) -> str:
    """An answer as a model may spoil it. Extra and reversed parts need JSON: an object's keys, a list's items."""
    if fault in ("cut-json", "length"):
        return text[: len(text) * 2 // 3]
    if fault == "prose":
        return "I am sorry, but nothing much seems to happen here."
    if fault == "empty":
        return ""
    if fault not in ("extra", "reversed"):
        return text
    value = json.loads(text)
    if isinstance(value, dict):
        pairs = list(value.items())
        return json.dumps(dict(pairs[::-1] if fault == "reversed" else [*pairs, ("99", pairs[0][1] if pairs else [])]))
    return json.dumps(value[::-1] if fault == "reversed" else value + value[:1])
