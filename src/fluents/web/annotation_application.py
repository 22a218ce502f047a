"""The application of annotation projects: the store's parts and the API, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from anyio import to_thread
from fastapi import FastAPI

from fluents.errors import FluentsError
from fluents.web.annotation_api import router
from fluents.web.annotation_decisions import Decisions
from fluents.web.annotation_figures import Figures
from fluents.web.annotation_members import InvitationError, Members
from fluents.web.annotation_places import LEASE, Places
from fluents.web.annotation_projects import Projects
from fluents.web.annotation_records import ConflictError
from fluents.web.annotation_services import AnnotationServices
from fluents.web.annotation_stages import ProjectStages
from fluents.web.annotation_suggestions import Suggestions
from fluents.web.assembly import ABOUT, assembled
from fluents.web.guard import Guard, GuardRules
from fluents.web.store import NotFoundError, Store

ANNOTATION_STATUS: Mapping[type[FluentsError], int] = {NotFoundError: 404, ConflictError: 409, InvitationError: 403}
PAGE = "annotate/index.html"
THREADS = 10
"""Requests that are worked on at once. More would only wait for each other."""


@dataclass(frozen=True)
class AnnotationSettings:
    """What a server of annotation projects is started with, beside its address."""

    rules: GuardRules = field(default_factory=GuardRules)
    lease_seconds: float = LEASE
    """How long somebody holds an item that they neither decide on nor ask to hold for longer."""
    only: str | None = None
    """The id of the one project to serve; None for all."""


def create_annotation_app(store: Store, settings: AnnotationSettings) -> Guard:
    """The application on an open store."""
    places = Places(store, settings.lease_seconds)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield

    app = FastAPI(
        **ABOUT,
        lifespan=lifespan,
        summary="Annotation projects: people decide on items, and fluents makes a dataset of their decisions.",
    )
    app.state.services = AnnotationServices(
        store,
        Projects(store),
        ProjectStages(store),
        Members(store),
        places,
        Decisions(store, places),
        Figures(store),
        Suggestions(store, places),
        settings.only,
    )
    app.include_router(router)
    return assembled(app, settings.rules, ANNOTATION_STATUS, {"/": PAGE, "/annotate": PAGE})
