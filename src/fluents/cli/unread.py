"""Answers of a model that could not be read: counted while a command runs, and told when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fluents.cli.output import messages
from fluents.report.terminal import plain

MAX_REASON = 200
"""Characters: a reason may repeat what a model or an endpoint said."""


class Unread:
    """How many there were, and why the first could not be read: mostly the others have the same reason."""

    def __init__(self) -> None:
        self.count = 0
        self._first = ""

    def add(self, reasons: Iterable[str]) -> None:
        for reason in reasons:
            self._first = self._first or " ".join(reason[:MAX_REASON].split())
            self.count += 1

    def tell(self, kept: str) -> None:
        if self.count:
            text = f"{self.count} answers or parts of them could not be read: they are {kept}; the first: {self._first}"
            messages.print(plain(text), soft_wrap=True)


@contextmanager
def telling_unread(kept: str = "among the rejects") -> Iterator[Unread]:
    """Told also when the run is interrupted or fails."""
    unread = Unread()
    try:
        yield unread
    finally:
        unread.tell(kept)
