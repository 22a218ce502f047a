"""The short form of `make soak`: it counts, and leaves the times to the long one."""

from __future__ import annotations

import json
import os
import runpy
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from requests import ConnectionError, ReadTimeout, Request

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

SOAK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "soak_web.py"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of schemathesis are its own
def test_visitors_jobs_and_requests_of_every_kind_meet_no_error() -> None:
    found = SOAK["soak"](visitors=4, seconds=4, jobs=10, calls=150)
    assert found.errors == []
    assert found.jobs >= 10
    assert sum(found.statuses.values()) == 150
    assert found.server_errors == 0
    assert found.pages


# Requests made from the schema, to servers that do not answer them


class UnreliableServer(ThreadingHTTPServer):
    """A server whose schema has one kind of request, of which it answers the first few; then `fault` happens."""

    daemon_threads = True

    def __init__(self, fault: Callable[[UnreliableServer], None], answered: int = 5) -> None:
        super().__init__(("127.0.0.1", 0), _UnreliableHandler)
        self.fault, self.answered = fault, answered
        self.calls = 0
        self.is_hanging = False
        self.ended = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def __enter__(self) -> UnreliableServer:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()


class _UnreliableHandler(BaseHTTPRequestHandler):
    server: UnreliableServer

    def do_GET(self) -> None:
        if self.server.is_hanging:
            self.server.ended.wait(60)
        elif self.path == "/api/v1/openapi.json":
            self._send(json.dumps(SCHEMA).encode())
        elif self.path == "/api/v1/health" or self.server.calls < self.server.answered:
            self.server.calls += self.path != "/api/v1/health"
            self._send(b"{}")
        else:
            self.server.calls += 1
            self.server.fault(self.server)

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


ANSWER = {"responses": {"200": {"description": "fine"}}}
TEXT_QUERY = {"name": "text", "in": "query", "required": True, "schema": {"type": "string"}}
SCHEMA = {
    "openapi": "3.1.0",
    "info": {"title": "unreliable", "version": "1"},
    "paths": {"/api/v1/search": {"get": ANSWER | {"parameters": [TEXT_QUERY]}}, "/api/v1/health": {"get": ANSWER}},
}


def die(server: UnreliableServer) -> None:
    """Take no further connection, as if the process had ended."""
    server.socket.close()


def hang(server: UnreliableServer) -> None:
    server.is_hanging = True
    server.ended.wait(60)


def drop(_: UnreliableServer) -> None:
    """Close this connection only."""


@pytest.mark.parametrize(
    ("fault", "patience"), [(die, SOAK["PATIENCE"]), pytest.param(hang, 10.0, marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore")
def test_a_server_that_dies_or_hangs_is_missed_and_is_not_asked_on(
    fault: Callable[[UnreliableServer], None], patience: float
) -> None:
    """The requests before that must be answered in time, so a busy machine needs patience."""
    found = SOAK["Findings"]()
    with UnreliableServer(fault) as server:
        SOAK["call_by_schema"](server.address, 60, found, {}, patience=patience)
        assert server.calls == 6
    assert found.statuses[SOAK["CUT_OFF"]] == 1
    assert "/api/v1/search" in found.errors[0]
    assert "the server is gone" in found.errors[1]
    assert found.missed()[0].startswith("2 errors")


@pytest.mark.filterwarnings("ignore")
def test_each_request_without_an_answer_is_an_error_even_if_the_server_is_well() -> None:
    found = SOAK["Findings"]()
    with UnreliableServer(drop) as server:
        SOAK["call_by_schema"](server.address, 60, found, {})
        cut_off = server.calls - server.answered
    assert found.statuses.total() == 60
    assert len(found.errors) == found.statuses[SOAK["CUT_OFF"]] == cut_off > 1


@pytest.mark.filterwarnings("ignore")
def test_a_server_that_dies_after_the_last_request_is_missed() -> None:
    found = SOAK["Findings"]()
    calls = SOAK["SchemaCalls"](found, {}, "http://127.0.0.1:1/health")
    calls.check_health()
    calls.check_health()
    assert len(found.errors) == 1
    assert calls.server_is_gone


def test_only_a_body_that_is_too_large_may_be_cut_off() -> None:
    small, large = (Request("POST", "http://127.0.0.1/", data=b"x" * size).prepare() for size in (10, 6 * 2**20))
    assert SOAK["may_be_cut_off"](ConnectionError(request=large))
    assert not SOAK["may_be_cut_off"](ConnectionError(request=small))
    assert not SOAK["may_be_cut_off"](ReadTimeout(request=large))
    assert not SOAK["may_be_cut_off"](ConnectionError())
