"""HTTP connections whose replies neither last for ever nor fill the memory.

The body of a reply has a deadline and a maximum size. Its headers have only the client's timeout, which restarts with
each piece that is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import openai

_bases = (base.__module__ for base in openai.DefaultHttpxClient.__mro__)
_http: Any = import_module(next(module for module in _bases if not module.startswith("openai")).partition(".")[0])
"""httpx, under the name this version of the client uses it by."""

MAX_REPLY_BYTES = 16 * 2**20
"""No answer comes near this."""


class _Bounded:
    """A body that ends when it gets too long or takes too long: the client's timeout is for each piece of it."""

    def __init__(self, stream: Any, seconds: float) -> None:
        self._stream, self._deadline = stream, time.monotonic() + seconds

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for piece in self._stream:
            size += len(piece)
            if size > MAX_REPLY_BYTES:
                raise _http.ReadError(f"the reply is larger than {MAX_REPLY_BYTES // 2**20} MB")
            if time.monotonic() > self._deadline:
                raise _http.ReadTimeout("the endpoint did not finish its reply")
            yield piece

    def close(self) -> None:
        self._stream.close()


_BoundedStream: Any = type("_BoundedStream", (_Bounded, _http.SyncByteStream), {})  # a base that mypy cannot see


def bounded_client(timeout: float, *, use_proxies: bool) -> Any:
    """The HTTP client under the official one. It follows no redirect: what is asked goes where the user said."""

    def bound(response: Any) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            # Unpacked, a small reply may be huge.
            raise _http.DecodingError("the reply is compressed, but fluents asked for an uncompressed reply")
        response.stream = _BoundedStream(response.stream, timeout)

    return openai.DefaultHttpxClient(
        trust_env=use_proxies,
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [bound]},
    )


def could_not_connect(error: openai.APIConnectionError) -> bool:
    """Whether no connection came about: nobody listens there or speaks https, or there is no such name."""
    return isinstance(error.__cause__, (_http.ConnectError, _http.ConnectTimeout))
