"""What stands before the application: who may ask, from where, how much, and what a browser may do with the answer.

A page in the browser can send requests to this machine, so neither the address nor the port protects anything: the
Host header must be ours (or a name that somebody points here would be let in), and whatever writes must come from our
own page or from no page at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from fluents.errors import InputError
from fluents.jsonl import open_input

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

SAFE = ("GET", "HEAD", "OPTIONS")
CLIENT, TOKEN = "fluents_client", "fluents_token"
"""Cookies: who takes turns in the queue, and who may ask at all."""
MIN_TOKEN = 16
"""Characters of a token."""
OPEN_PATHS = ("/api/v1/health", "/api/v1/server", "/api/v1/session")
"""What may be asked without a token, beside the page itself."""
STREAMED = ("/api/v1/restore",)
"""Whose body is read bit by bit, and limited, by the application."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
        "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class GuardRules:
    """What is let in."""

    hosts: Collection[str] = ()
    """Names that the server answers to, beside those of loopback."""
    any_address: bool = False
    """Whether it answers to every numeric address: nobody can point a name of theirs at one."""
    tokens: Collection[str] = ()
    """Where there are any, one is needed. As SHA-256."""
    body_bytes: int = 5 * 2**20
    read_seconds: float = 30.0
    """In which a body must have come."""
    write_seconds: float = 60.0
    """In which a client must take the next part of an answer."""


class RefusedError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, error: str, fix: str | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.fix = status, error, fix


def read_tokens(path: str | Path) -> frozenset[str]:
    """The SHA-256 of each token in a file, one on each line; # begins a comment."""
    with open_input(path) as stream:
        lines = [line.split("#")[0].strip() for line in stream.read(2**20).decode("utf-8", "replace").splitlines()]
    tokens = [line for line in lines if line]
    if not tokens or min(map(len, tokens)) < MIN_TOKEN:
        raise InputError(
            f"the file must contain one token per line, each of at least {MIN_TOKEN} characters",
            where=path,
            fix="to create a token, run: python -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    return frozenset(map(digest, tokens))


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def is_loopback_host(host: str) -> bool:
    """Whether a server that binds to this host can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """The middleware. It tells the application who asks, in the state's `client`."""

    def __init__(self, app: App, rules: GuardRules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close"})
            return
        answer = _Answer(send, self._rules.write_seconds)
        try:
            headers = _headers(scope)
            self._check_host(headers)
            self._check_origin(scope["method"], headers)
            cookies = _cookies(headers)
            state = scope.setdefault("state", {})
            state["client"] = self._client(scope, headers, cookies)
            if CLIENT not in cookies:
                answer.cookie = (
                    f"{CLIENT}={secrets.token_urlsafe(16)}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
                )
            if scope["path"] not in STREAMED:
                receive = await self._body(headers, receive)
            await self._app(scope, receive, answer.send)
        except RefusedError as refused:
            await answer.refuse(refused)
        except TimeoutError:  # a client that does not take its answer: the server closes the connection
            return

    def _check_host(self, headers: Mapping[str, str]) -> None:
        host = _host_name(headers.get("host", ""))
        if is_loopback_host(host) or host in self._rules.hosts or (self._rules.any_address and _is_address(host)):
            return
        other = "the IP address of the server" if self._rules.any_address else "localhost"
        raise RefusedError(
            403,
            f"unknown host name {host[:100]!r}",
            f"start the server with --allow-host NAME, or use {other} instead of this name",
        )

    def _check_origin(self, method: str, headers: Mapping[str, str]) -> None:
        if method in SAFE:
            return
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        ours = origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        if not ours or site not in (None, "same-origin", "none"):
            raise RefusedError(
                403, "pages of other websites must not change data on this server", "use the page of this server"
            )

    def _client(self, scope: Mapping[str, Any], headers: Mapping[str, str], cookies: Mapping[str, str]) -> str:
        """Who asks, as far as turns are concerned."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        token = given.strip() if scheme.lower() == "bearer" else cookies.get(TOKEN, "")
        known = next((one for one in self._rules.tokens if hmac.compare_digest(one, digest(token))), None)
        scope["state"]["signed_in"] = known is not None or not self._rules.tokens
        if known is not None:
            return known[:32]
        path = scope["path"]
        if self._rules.tokens and path.startswith("/api/") and path not in OPEN_PATHS:
            raise RefusedError(
                401, "this server requires an access token", "send the header `Authorization: Bearer TOKEN`"
            )
        if CLIENT in cookies:
            return cookies[CLIENT]
        return f"at {(scope.get('client') or ['unknown'])[0]}"[:64]

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> Receive:
        """The body, read before anything works on it: all in good time, and not too much."""
        length = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,18}", length):
            raise RefusedError(400, "the header Content-Length must be a number")
        if int(length) > self._rules.body_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._rules.read_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        parts = []
                        break
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._rules.body_bytes:
                        raise self._too_large()
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            raise RefusedError(408, "sending the request took too long", "send the request again") from None
        whole: Message | None = {"type": "http.request", "body": b"".join(parts), "more_body": False}

        async def again() -> Message:
            nonlocal whole
            if whole is not None:
                message, whole = whole, None
                return message
            return await receive()

        return again

    def _too_large(self) -> RefusedError:
        return RefusedError(
            413, f"the request is larger than {self._rules.body_bytes:,} bytes", "send a smaller request"
        )


class _Answer:
    """What goes back, with the headers that every answer has."""

    def __init__(self, send: Send, patience: float) -> None:
        self._send, self._patience = send, patience
        self._started = False
        self.cookie: str | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            headers = list(message.get("headers", ()))
            given = {name.lower() for name, _ in headers}
            headers += [
                (name.lower().encode(), value.encode())
                for name, value in HEADERS.items()
                if name.lower().encode() not in given
            ]
            if b"cache-control" not in given:
                headers.append((b"cache-control", b"no-store"))
            if self.cookie is not None:
                headers.append((b"set-cookie", self.cookie.encode()))
            message["headers"] = headers
        await asyncio.wait_for(self._send(message), self._patience)

    async def refuse(self, refused: RefusedError) -> None:
        if self._started:
            return
        body = json.dumps({"error": refused.error, "where": None, "fix": refused.fix}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers.append((b"connection", b"close"))  # the rest of its body is not read
        await self.send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    """By name; one that decides something may come once only."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "authorization", "content-length", "cookie"):
            raise RefusedError(400, f"the request contains the header {key} twice")
        found[key] = value.decode("latin-1")
    return found


def _cookies(headers: Mapping[str, str]) -> dict[str, str]:
    try:
        found = {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}
    if not re.fullmatch(r"[\w-]{8,64}", found.get(CLIENT, ""), re.ASCII):
        found.pop(CLIENT, None)
    return found


def _host_name(host: str) -> str:
    """The name or address in a Host header, without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
