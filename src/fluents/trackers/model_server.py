"""The embedded model as an OpenAI-compatible server on this machine, for the llm tracker offline and for any client."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fluents.errors import InputError
from fluents.trackers.llama_engine import ModelError, free_cores
from fluents.weights import DEFAULT, ensure
from fluents.weights.adapters import open_adapter
from fluents.weights.merge import merged

HOST = "127.0.0.1"
CONTEXT = 8192
"""Tokens, as many as the model was trained for; the slots share them."""


@dataclass(frozen=True)
class Server:
    """A server that runs. `model` is the name to ask for."""

    base_url: str
    model: str


@contextmanager
def serve(port: int = 0, adapter: str | Path | None = None, slots: int = 1) -> Iterator[Server]:
    """Serve while the block runs; port 0 takes a free one.

    Without an adapter this is the base model, which chats; with one it completes the embedded tracker's own prompt.
    One slot answers one request after another, and the same one always alike; more are faster, but a request's answer
    then depends on what else is asked at that moment.
    """
    check_free(port)
    if adapter is None:
        path, name = ensure(DEFAULT), DEFAULT
    else:
        opened = open_adapter(adapter)
        path, name = merged(ensure(opened.base), opened.path), f"{opened.base}+{opened.name}"
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the engine does, and for its reasons
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {name}
    params.hostnames, params.port = [HOST], port
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
        check_free(port)
        raise ModelError(f"the model could not be served: {error}", where=path, fix="fluents weights verify") from None
    # llama.cpp's loop starts beside; ended before it runs, it would wait for ever. A first answer proves it runs.
    server.handle_completions({"prompt": "\n", "max_tokens": 1})
    try:
        yield Server(f"{server.listening_address}/v1", name)
    finally:
        del server


def check_free(port: int) -> None:
    """Tells a port that cannot be had; llama.cpp only says that something failed."""
    with socket.socket() as probe:
        if os.name != "nt":  # as servers do, so that a port whose last connections are fading counts as free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            raise InputError(
                f"cannot listen on port {port}: {getattr(error, 'strerror', None) or error}",
                where=HOST,
                fix="another --port; 0 takes a free one",
            ) from None
