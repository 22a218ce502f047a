"""The embedded model as an OpenAI-compatible server on this machine, for the llm tracker offline and for any client."""

from __future__ import annotations

import json
import os
import re
import secrets
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fluents.errors import InputError
from fluents.prompts.local import VERSION as MERGED_PROMPT
from fluents.trackers.embedded import ModelError, free_cores
from fluents.weights.adapters import base_file, merged, open_embedded, unpacked
from fluents.weights.base_weights import load_fix

HOST = "127.0.0.1"
CONTEXT = 8192
"""Tokens, as many as the model was trained for; the slots share them."""
_HOP_BY_HOP = {
    "authorization",
    "connection",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
}
"""Headers of one connection, not of the request."""


@dataclass(frozen=True)
class Server:
    """A server that runs. `model` is the name to ask for."""

    base_url: str
    model: str


@contextmanager
def serve(
    port: int = 0, adapter: str | Path | None = None, slots: int = 1, model: str | Path | None = None
) -> Iterator[Server]:
    """Serve while the block runs; port 0 picks a free one. `model` is a size by name or a GGUF file.

    Without an adapter this is the base model, which chats; with one it completes the embedded tracker's own prompt.
    One slot answers one request after another, and the same request always alike; more slots are faster, but an answer
    then depends on what else is asked at that moment.
    """
    check_free(port)
    lora = None
    if adapter is None:
        path, name = base_file(model)
    else:
        embedded = open_embedded(model, adapter)
        path, name = embedded.base_path(), f"{embedded.base}+{embedded.adapter.name}"
        if embedded.adapter.facts.prompt == MERGED_PROMPT:
            path = merged(path, embedded.adapter.path)
        else:
            lora = unpacked(embedded.adapter.path)
    key = secrets.token_hex()
    llama = _start_llama(path, lora, name, slots, key)
    try:
        with _gate(port, urlsplit(llama.listening_address).netloc, key, name) as gate:
            yield Server(f"http://{HOST}:{gate.server_port}/v1", name)
    finally:
        del llama


def _start_llama(path: Path, lora: Path | None, name: str, slots: int, key: str) -> Any:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the engine does, and for its reasons
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {name}
    if lora is not None:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(lora), 1.0)]
    params.hostnames, params.port, params.api_keys = [HOST], 0, [key]
    params.verbosity = -1
    params.n_parallel, params.kv_unified, params.n_ctx = slots, True, CONTEXT
    params.cache_prompt, params.cache_ram_mib = False, 0  # what was asked before must not change an answer
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = free_cores()
    params.ui = params.endpoint_slots = False  # what others ask is nobody's business
    # Pages in a browser must not use the model, but llama.cpp lets every site in: so it gets a site that has none.
    params.cors_origins, params.cors_credentials = f"http://{HOST}", False
    try:
        server: Any = xllamacpp.Server(params)
    except RuntimeError as error:
        raise ModelError(
            f'the model could not be loaded; llama.cpp reports: "{error}"', where=path, fix=load_fix(path)
        ) from None
    # llama.cpp's loop starts beside; ended before it runs, it would wait for ever. A first answer proves it runs.
    server.handle_completions({"prompt": "\n", "max_tokens": 1})
    return server


def refusal(body: bytes, model: str) -> tuple[int, dict[str, Any]] | None:
    """(status, error) in OpenAI's form for a request that cannot be served; None if it can, or llama.cpp will tell.

    llama.cpp answers to any model name, and writes until the context is full where more is asked for.
    """
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(asked, dict):
        return None
    if asked.get("model", model) != model:
        message = f"The model {asked['model']!r:.200} does not exist; this server has {model!r}."
        return 404, _error(message, "model", "model_not_found")
    for limit in ("max_tokens", "max_completion_tokens", "n_predict"):
        if isinstance(asked.get(limit), int | float) and asked[limit] > CONTEXT:
            message = f"{limit} is too large: {asked[limit]}. The context of this model has {CONTEXT} tokens."
            return 400, _error(message, limit, "invalid_value")
    return None


def _error(message: str, parameter: str | None, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": parameter, "code": code}}


class _GateServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, inner: str, key: str, model: str) -> None:
        super().__init__((HOST, port), _Gate)
        self.inner, self.key, self.model = inner, key, model


@contextmanager
def _gate(port: int, inner: str, key: str, model: str) -> Iterator[_GateServer]:
    with _GateServer(port, inner, key, model) as gate:
        thread = threading.Thread(target=gate.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield gate
        finally:
            gate.shutdown()
            thread.join()


class _Gate(BaseHTTPRequestHandler):
    """Passes requests to llama.cpp once `refusal` lets them through."""

    server: _GateServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._pass_on(b"")

    do_HEAD = do_OPTIONS = do_DELETE = do_GET

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,8}", length):  # without one the body would have no end
            self._answer(411, _error("Content-Length is missing or too large.", None, "length_required"))
            return
        body = self.rfile.read(int(length))
        refused = refusal(body, self.server.model)
        if refused:
            self._answer(*refused)
        else:
            self._pass_on(body)

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _pass_on(self, body: bytes) -> None:
        llama = HTTPConnection(self.server.inner)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        try:
            llama.request(self.command, self.path, body, headers | {"Authorization": f"Bearer {self.server.key}"})
            if self._client_waits_for(llama.sock):
                self._return(llama.getresponse())
        except OSError:  # the client or llama.cpp has gone; closing the other side ends the work there
            self.close_connection = True
        finally:
            llama.close()

    def _client_waits_for(self, llama: socket.socket) -> bool:
        """Wait for llama.cpp to answer; False if the client went away before that."""
        watched = [llama, self.connection]
        while True:
            ready, _, _ = select.select(watched, [], [])
            if llama in ready:
                return True
            if not self.connection.recv(1, socket.MSG_PEEK):
                return False
            watched = [llama]  # the client has sent its next request already

    def _return(self, response: HTTPResponse) -> None:
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Connection", "close")  # which also ends a body of unknown length
        self.end_headers()
        while block := response.read1(1 << 16):
            self.wfile.write(block)


def check_free(port: int) -> None:
    """Raise an error if the port cannot be used."""
    with socket.socket() as probe:
        if os.name != "nt":  # as servers do, so that a port whose last connections are fading counts as free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            raise InputError(
                f"cannot listen on port {port}: {getattr(error, 'strerror', None) or error}",
                where=HOST,
                fix="choose another `port`; 0 picks a free one",
            ) from None
