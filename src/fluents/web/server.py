"""Serving the application: the address, the limits on connections, and the end."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from fluents.errors import InputError
from fluents.web.application import WebSettings, create_app
from fluents.web.guard import Guard, is_loopback_host
from fluents.web.runner import Broadcast
from fluents.web.store import Store

HEADER_SECONDS = 10.0
"""In which a client must have sent the head of a request."""
KEEP_ALIVE = 15
CONNECTIONS = 500
HEAD_BYTES = 64 * 1024
TURN = 0.0005
"""Seconds after which a thread that computes lets another one have its turn. Python's own 0.005 would make a request of
twenty queries wait for a tenth of a second, five milliseconds after each query, while agreement is computed."""


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1, and a client that does not send its request in time is cut off: uvicorn would wait for ever."""

    _watch: asyncio.TimerHandle | None = None
    patience = HEADER_SECONDS

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_idle():
            if self._watch is None:
                self._wait_for_head()
        else:
            self._stop_waiting()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._watch = self.loop.call_later(self.patience, self._cut_off)

    def _stop_waiting(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _cut_off(self) -> None:
        self._watch = None
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; an InputError says why there is none."""
    try:
        [family, kind, protocol, _, address] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen on {host}: {reason}", fix="choose another `host`") from None
    try:
        if os.name != "nt":  # a port whose last connections are fading counts as free
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(256)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        if getattr(error, "errno", None) == errno.EADDRNOTAVAIL:  # no address of this machine
            raise InputError(f"cannot listen on {host}: {reason}", fix="choose another `host`") from None
        raise InputError(
            f"cannot listen on port {port}: {reason}", where=host, fix="choose another `port`; 0 picks a free one"
        ) from None
    return listening


def check_host(host: str, tokens: object) -> None:
    """Whoever can reach the server can read and write everything: beyond this machine, tokens must say who may."""
    if not tokens and not is_loopback_host(host):
        raise InputError(
            f"`host` {host} can be reached from other machines, which requires access tokens",
            fix="give a `token_file`, or leave out `host` to serve only this machine",
        )


class GuardedServer(uvicorn.Server):
    """An application, served. `run(sockets=[…])` returns when `should_exit` is set or the process is told to stop.

    `announce` is called when requests are answered.
    """

    def __init__(self, app: Guard, announce: Callable[[], None] | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=ImpatientProtocol,
                ws="none",
                lifespan="on",
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=3,
                limit_concurrency=CONNECTIONS,
                h11_max_incomplete_event_size=HEAD_BYTES,
            )
        )
        self._announce = announce

    async def startup(self, sockets: Any = None) -> None:
        sys.setswitchinterval(TURN)
        await super().startup(sockets)
        if self.started and self._announce is not None:
            self._announce()


class WebServer(GuardedServer):
    """The web application, served."""

    def __init__(self, store: Store, settings: WebSettings, announce: Callable[[], None] | None = None) -> None:
        self._broadcast = Broadcast()
        super().__init__(create_app(store, settings, self._broadcast), announce)

    async def shutdown(self, sockets: Any = None) -> None:
        self._broadcast.close()  # first: uvicorn waits for answers that are not whole yet
        await super().shutdown(sockets)
