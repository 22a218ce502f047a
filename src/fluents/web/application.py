"""The application: its store, its jobs and its API, put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fastapi import FastAPI

from fluents.errors import FluentsError
from fluents.segmentation import language
from fluents.web.api import router
from fluents.web.archive import Archive
from fluents.web.assembly import ABOUT, assembled
from fluents.web.guard import Guard, GuardRules
from fluents.web.jobs import Jobs, JobStateError, TooManyJobsError
from fluents.web.runner import Broadcast, JobRunner, WorkerLimits
from fluents.web.services import Services
from fluents.web.store import NotFoundError, Store
from fluents.web.tracker_choices import TrackerMenu

STATUS: Mapping[type[FluentsError], int] = {NotFoundError: 404, JobStateError: 409, TooManyJobsError: 429}
"""Of errors that a user can fix; all others are 422."""


@dataclass(frozen=True)
class WebSettings:
    """What a server is started with, beside its address."""

    menu: TrackerMenu
    rules: GuardRules = field(default_factory=GuardRules)
    limits: WorkerLimits = field(default_factory=WorkerLimits)
    queued_jobs: int = 20
    """Of one client."""
    all_queued_jobs: int = 500
    backup_bytes: int = 2**30


def create_app(store: Store, settings: WebSettings, broadcast: Broadcast) -> Guard:
    """The application on an open store. Its worker starts with the server, and ends with it; its streams of events end
    when `broadcast` is closed."""
    jobs = Jobs(store, most=settings.queued_jobs, most_of_all=settings.all_queued_jobs)
    runner = JobRunner(jobs, broadcast, settings.menu.choices, settings.limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        runner.start()
        # The first text would wait half a second for what tells languages apart.
        asyncio.get_running_loop().run_in_executor(None, language, "Any text.")
        try:
            yield
        finally:
            runner.close()

    app = FastAPI(**ABOUT, summary="What changes, from what to what, at every step of a procedure.", lifespan=lifespan)
    app.state.services = Services(
        store, Archive(store), jobs, runner, broadcast, settings.menu, settings.rules, settings.backup_bytes
    )
    app.include_router(router)
    return assembled(app, settings.rules, STATUS, {"/": "index.html"})
