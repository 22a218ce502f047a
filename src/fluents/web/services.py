"""The services that the routes of the API work with, and the parameters that several routes have."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request

from fluents.web.archive import Archive
from fluents.web.guard import GuardRules
from fluents.web.jobs import Jobs, TooManyJobsError
from fluents.web.resources import MAX_NAME
from fluents.web.runner import Broadcast, JobRunner
from fluents.web.store import Store
from fluents.web.trace_views import Filters
from fluents.web.tracker_choices import TrackerMenu

THINKING = 2
"""Questions and plans that are worked on at once."""
PATIENCE = 30.0
"""Seconds that one waits for its turn."""


@dataclass(frozen=True)
class Services:
    """What the API works with."""

    store: Store
    archive: Archive
    jobs: Jobs
    runner: JobRunner
    broadcast: Broadcast
    menu: TrackerMenu
    rules: GuardRules
    backup_bytes: int
    _thinking: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(THINKING))

    @contextmanager
    def thinking(self) -> Iterator[None]:
        """Around what takes a processor for a while."""
        if not self._thinking.acquire(timeout=PATIENCE):
            raise TooManyJobsError("the server is busy with other requests", fix="try again later")
        try:
            yield
        finally:
            self._thinking.release()


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


def _filters(
    min_confidence: Annotated[float | None, Query(ge=0, le=1)] = None,
    min_support: Annotated[float | None, Query(ge=0, le=1)] = None,
    min_salience: Annotated[float | None, Query(ge=0, le=5)] = None,
    top: Annotated[int | None, Query(ge=1, le=10_000, description="Keep so many of the most salient entities.")] = None,
) -> Filters:
    return Filters(min_confidence, min_support, min_salience, top)


Web = Annotated[Services, Depends(_services)]
Shown = Annotated[Filters, Depends(_filters)]
Id = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=["0123456789abcdef"])]
IdQuery = Annotated[str, Query(pattern="^[0-9a-f]{16}$")]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Limit = Annotated[int, Query(ge=1, le=100)]
SearchWords = Annotated[str, Query(max_length=MAX_NAME)]
FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
