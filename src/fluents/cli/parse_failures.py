"""Answers of a model that could not be read: collected while a command runs, reported when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fluents.cli.output import messages
from fluents.report.terminal import plain
from fluents.text.plurals import counted

MAX_REASON = 200
"""Characters: a reason may repeat what a model or an endpoint said."""


class ParseFailures:
    """How many there were, and why the first could not be read: mostly the others have the same reason."""

    def __init__(self) -> None:
        self.count = 0
        self._first = ""

    def add(self, reasons: Iterable[str]) -> None:
        for reason in reasons:
            self._first = self._first or " ".join(reason[:MAX_REASON].split())
            self.count += 1

    def tell(self, kept: str = "see the rejects") -> None:
        if self.count:
            text = f"{counted(self.count, 'parse failure')} ({kept}), the first: {self._first}"
            messages.print(plain(text), soft_wrap=True)


@contextmanager
def report_parse_failures(kept: str = "see the rejects") -> Iterator[ParseFailures]:
    """Reported also when the run is interrupted or fails."""
    failures = ParseFailures()
    try:
        yield failures
    finally:
        failures.tell(kept)
