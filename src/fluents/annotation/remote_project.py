"""A project on a server, as one of its members works on it over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import httpx

from fluents.annotation.items import Item
from fluents.errors import FluentsError

API = "/api/v1/annotation"
RENEW = 60.0
"""Seconds after which an item is held for longer."""
TRIES = 6
"""How often a request is sent before its failure counts."""
PAUSE = 0.25
"""Seconds before the second time; then longer and longer."""
MAX_BESIDES = 50
"""Items that a request can name as unwanted; the server offers those that were given back last."""


class ServerError(FluentsError):
    """A server that does not answer, or refuses what was asked."""


class RemoteProject:
    """A member's view of a project. Close it, or use it in a `with` block.

    >>> with RemoteProject.join("http://127.0.0.1:8766/?join#CODE", "a model") as project:
    ...     while (item := project.next()) is not None:
    ...         project.decide(item, answer_to(item))
    """

    def __init__(self, address: str, token: str, client: httpx.Client | None = None) -> None:
        self.address, self.token = _origin(address), token
        self._client = client or httpx.Client(base_url=self.address, timeout=60)
        self._client.headers["Authorization"] = f"Bearer {token}"

    @classmethod
    def join(cls, link: str, name: str) -> Self:
        """Become a member by the link of an invitation."""
        code = urlsplit(link).fragment
        if not code:
            raise ServerError(
                "this link is incomplete: it has no invitation code after #",
                where=link[:200],
                fix="copy the whole link",
            )
        client = httpx.Client(base_url=_origin(link), timeout=60)
        answer = _sent(client, "POST", "/join", {"invitation": code, "name": name})
        return cls(link, answer["token"], client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def me(self) -> Any:
        """Who I am, and how far the project has come."""
        return _sent(self._client, "GET", "/me")

    def consent(self) -> None:
        """Agree to the terms of the project."""
        _sent(self._client, "POST", "/me/consent")

    def next(self, besides: Sequence[str] = ()) -> Item | None:
        """The next item for me, none of the last of `besides`."""
        given = _sent(self._client, "POST", "/next", {"besides": list(besides)[-MAX_BESIDES:]})
        return None if given is None else Item.model_validate(given["item"])

    @contextmanager
    def holding(self, item: Item) -> Iterator[None]:
        """Hold an item for as long as the block takes."""
        done = threading.Event()

        def renew() -> None:
            while not done.wait(RENEW):
                with suppress(ServerError):  # the decision will tell; the next renewal may go well
                    _sent(self._client, "POST", f"/items/{item.id}/renew", tries=1)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def decide(self, item: Item, answer: Any, seconds: float | None = None) -> None:
        """Send a decision, again if need be, until it is acknowledged."""
        given = {"id": uuid4().hex, "item": item.id, "answer": answer, "seconds": seconds}
        _sent(self._client, "POST", "/decisions", given)

    def write_blind_pass(self, item: Item, changes: Sequence[Mapping[str, Any]]) -> Item:
        """Save what I see without the draft of an item; returns the item with its draft."""
        given = _sent(self._client, "POST", f"/items/{item.id}/blind", {"changes": list(changes)})
        return Item.model_validate(given["item"])

    def release(self, item: Item) -> None:
        """Give an item back."""
        _sent(self._client, "POST", f"/items/{item.id}/release")


def _origin(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ServerError(
            "this is not the address of an annotation server",
            where=address[:200],
            fix="use a link that `fluents annotate invite` printed",
        )
    return f"{parts.scheme}://{parts.netloc}"


def _sent(client: httpx.Client, method: str, path: str, given: Any = None, tries: int | None = None) -> Any:
    """The JSON of the answer. What fails for a moment is sent again: all of it can be."""
    tries = tries or TRIES
    for left in reversed(range(tries)):
        try:
            answer = client.request(method, API + path, json=given)
        except httpx.HTTPError as error:
            if not left:
                raise ServerError(
                    f"the server does not answer: {error}",
                    where=str(client.base_url),
                    fix="check the address in the link, and that `fluents annotate serve` is running there",
                ) from None
        else:
            if answer.is_success:
                return answer.json() if answer.content else None
            if answer.status_code < 500 or not left:
                raise _refused(answer)
        time.sleep(min(10.0, PAUSE * 2 ** (tries - left)))
    raise AssertionError


def _refused(answer: httpx.Response) -> ServerError:
    try:
        said = answer.json()
        return ServerError(str(said["error"])[:500], where=said.get("where"), fix=said.get("fix"))
    except (ValueError, KeyError, TypeError):
        return ServerError(
            f"the server answered with HTTP status {answer.status_code}",
            where=str(answer.url.host),
            fix="try again; if this does not help, ask the person who runs the server to look at its output",
        )
