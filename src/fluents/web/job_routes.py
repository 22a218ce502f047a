"""The routes of jobs: to start, show, cancel and resume them, and to follow them while they run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Body, Header, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from fluents.report.trace_page import trace_fragment
from fluents.web.archive import KeptTrace
from fluents.web.jobs import ENDED, JobEvent
from fluents.web.resources import Job, JobGiven, JobProgress, JobState, TraceSummary
from fluents.web.services import Id, Services, Web
from fluents.web.store import NotFoundError
from fluents.web.trace_resources import TraceView
from fluents.web.trace_views import trace_view

HEARTBEAT = 15.0
"""Seconds after which a stream without news says that it is alive."""

router = APIRouter()
"""Part of the router in `api.py`, which gives it its prefix."""


@router.post("/documents/{document_id}/jobs", status_code=202)
def start_job(web: Web, document_id: Id, request: Request, given: Annotated[JobGiven, Body()]) -> Job:
    """Track a document. Jobs run one at a time; clients take turns."""
    tracker, options = web.menu.chosen(given)
    procedure = web.archive.document(document_id).procedure
    job = web.jobs.add(document_id, procedure, request.state.client, tracker, options)
    web.runner.wake()
    return job


@router.get("/jobs")
def list_jobs(web: Web, state: JobState | None = None) -> list[Job]:
    """Jobs, newest first, at most 100."""
    return web.jobs.latest(state)


@router.get("/jobs/{job_id}")
def show_job(web: Web, job_id: Id) -> Job:
    """A job."""
    return web.jobs.get(job_id)


@router.post("/jobs/{job_id}/cancel")
def cancel_job(web: Web, job_id: Id) -> Job:
    """Stop a job, within two seconds. Its finished steps are kept."""
    web.runner.cancel(job_id)
    return web.jobs.get(job_id)


@router.post("/jobs/{job_id}/resume", status_code=202)
def resume_job(web: Web, job_id: Id) -> Job:
    """Let a job that was cancelled or failed go on from its next step."""
    job = web.jobs.resume(job_id)
    web.runner.wake()
    return job


@router.get("/jobs/{job_id}/trace")
def show_job_trace(web: Web, job_id: Id) -> TraceView:
    """The finished steps so far."""
    job, trace = web.jobs.get(job_id), web.jobs.trace(job_id)
    summary = TraceSummary(
        id=job.trace or job.id,
        document=job.document,
        job=job.id,
        name=job.tracker,
        created=job.created,
        steps=job.steps,
        changes=len(trace.changes),
        corrections=0,
    )
    return trace_view(KeptTrace(summary, trace, []))


@router.get("/jobs/{job_id}/views", response_class=HTMLResponse)
def draw_job(web: Web, job_id: Id) -> str:
    """The finished steps so far as HTML: the three views of a trace, for a page that has their style."""
    return trace_fragment(web.jobs.trace(job_id))


@router.get(
    "/jobs/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        204: {"description": "No more"},
    },
)
async def job_events(
    web: Web, job_id: Id, last_event_id: Annotated[str | None, Header(max_length=20)] = None
) -> Response:
    """What happens to a job, as server-sent events; those with an id can be had again by `Last-Event-ID`."""
    given = int(last_event_id) if last_event_id and last_event_id.isascii() and last_event_id.isdigit() else 0
    job, last = await run_in_threadpool(lambda: (web.jobs.get(job_id), web.jobs.last_event(job_id)))
    after = min(given, last)
    if job.state in ENDED and after == last:
        return Response(status_code=204)
    return StreamingResponse(_stream(web, job_id, after), media_type="text/event-stream")


async def _stream(web: Services, job_id: str, after: int) -> AsyncIterator[str]:
    listening = web.broadcast.listen(job_id)  # first, so that nothing is missed
    try:
        while True:
            try:
                events = await run_in_threadpool(web.jobs.events, job_id, after)
            except NotFoundError:  # deleted
                return
            for event in events:
                after = event.number
                yield f"id: {event.number}\n{_message(event.kind, json.dumps(event.data))}"
            if events and _is_last(events[-1]):
                return
            news: JobProgress | str | None = await listening.wait(HEARTBEAT)
            while isinstance(news, JobProgress):
                yield _message("progress", news.model_dump_json())
                news = await listening.wait(HEARTBEAT)
            if news is None:
                return
            if not events:
                yield ": alive\n\n"
    finally:
        listening.stop()


def _message(kind: str, data: str) -> str:
    return f"event: {kind}\ndata: {data}\n\n"


def _is_last(event: JobEvent) -> bool:
    return event.kind == "state" and event.data["state"] in ENDED
