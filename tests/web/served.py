"""A server in this process, on a port of its own, and a client that talks to it as a page would."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from soup import SOUP

from fluents import jsonl
from fluents.web.application import WebSettings
from fluents.web.server import WebServer, listening_socket
from fluents.web.store import Store
from fluents.web.tracker_choices import tracker_menu


class Event(NamedTuple):
    """A server-sent event."""

    id: str | None
    kind: str
    data: dict[str, Any]


class Client(httpx.Client):
    """Short ways to say what tests say often. `client("GET", "/health")` is a status and the JSON."""

    def call(self, method: str, path: str, json: Any = None, status: int | None = None, **more: Any) -> Any:
        answer = self.request(method, f"/api/v1{path}", json=json, **more)
        expected = status or {"POST": 201}.get(method, 200)
        assert answer.status_code == expected, answer.text
        return answer.json() if answer.content else None

    def document(self, text: str, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.call("POST", "/documents", {"text": text, **more})
        return found

    def job(self, document: dict[str, Any], **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.call("POST", f"/documents/{document['id']}/jobs", options, status=202)
        return found

    def events(self, job: dict[str, Any], after: str | None = None) -> Iterator[Event]:
        """What happens to a job, as it happens."""
        headers = {} if after is None else {"Last-Event-ID": after}
        with self.stream("GET", f"/api/v1/jobs/{job['id']}/events", headers=headers) as answer:
            assert answer.status_code == 200
            event: dict[str, str] = {}
            for line in answer.iter_lines():
                if line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    event[name] = value
                elif event:
                    yield Event(event.get("id"), event["event"], json.loads(event["data"]))
                    event = {}

    def tracked(self, text: str, **options: Any) -> dict[str, Any]:
        """The finished job of a text."""
        job = self.job(self.document(text), **options)
        *_, last = self.events(job)
        assert last.data["state"] == "done", last
        return last.data


def replaying(folder: Path, pause: float = 0.0) -> WebSettings:
    """Settings of a server that repeats `SOUP`."""
    file = folder / "replayed.jsonl"
    jsonl.write([SOUP], file)
    return WebSettings(menu=tracker_menu(replay=file, pause=pause))


@contextmanager
def served(store: str | Path, settings: WebSettings, **changed: Any) -> Iterator[Client]:
    """A client of a server that runs until the block ends."""
    ready = threading.Event()
    with Store(store) as opened, listening_socket("127.0.0.1", 0) as listening:
        server = WebServer(opened, replace(settings, **changed), ready.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert ready.wait(60)
            port = listening.getsockname()[1]
            with Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()
