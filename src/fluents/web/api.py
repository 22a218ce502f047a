"""The REST API: each function takes what came, makes one or two calls of the library, and gives back a resource."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from fluents import jsonl
from fluents.errors import InputError
from fluents.planning.trace_plan import plan
from fluents.questions import ask
from fluents.records import id_from
from fluents.report.trace_page import trace_fragment
from fluents.segmentation import language
from fluents.version import __version__
from fluents.web import backup
from fluents.web.archive import Archive, KeptTrace
from fluents.web.guard import TOKEN, GuardRules, RefusedError, digest
from fluents.web.jobs import ENDED, JobEvent, Jobs, TooManyJobsError
from fluents.web.resources import (
    MAX_NAME,
    Correction,
    CorrectionGiven,
    Document,
    DocumentPage,
    ErrorAnswer,
    FoundPage,
    Health,
    Job,
    JobGiven,
    JobProgress,
    JobState,
    LikelihoodAnswer,
    Limits,
    PlanFound,
    PlanGiven,
    QuestionGiven,
    Restored,
    Segmented,
    ServerInfo,
    SideBySide,
    SignIn,
    StepsGiven,
    TextGiven,
    TraceSummary,
    TraceView,
    Uploaded,
)
from fluents.web.runner import Broadcast, JobRunner
from fluents.web.store import NotFoundError, Store
from fluents.web.trace_views import MEDIA_TYPES, DownloadFormat, Filters, download, drawn, side_by_side, trace_view
from fluents.web.tracker_choices import TrackerMenu
from fluents.web.uploads import read_given_text, read_upload

HEARTBEAT = 15.0
"""Seconds after which a stream without news says that it is alive."""
PLAN_SECONDS, PLAN_MEMORY = 20.0, 1024
"""What a planner may take."""
THINKING = 2
"""Questions and plans that are worked on at once."""
PATIENCE = 30.0
"""Seconds that one waits for its turn."""
RESTORE_SECONDS = 600.0
"""In which a backup must have come."""


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

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (400, 401, 403, 404, 408, 409, 413, 415, 422, 429)
}
router = APIRouter(prefix="/api/v1", responses=_ERRORS)


# The server


@router.get("/health")
def health(web: Web) -> Health:
    """Whether the server works, and what it is busy with."""
    queued, running = web.jobs.counts()
    return Health(status="ok", version=__version__, store=web.store.kind, queued=queued, running=running)


@router.get("/server")
def server(web: Web, request: Request) -> ServerInfo:
    """What this server can do."""
    return ServerInfo(
        version=__version__,
        trackers=web.menu.trackers(),
        default_tracker=web.menu.default,
        features={"ask": True, "plan": True},
        limits=Limits(body_bytes=web.rules.body_bytes, backup_bytes=web.backup_bytes, queued_jobs=web.jobs.most),
        needs_token=bool(web.rules.tokens),
        signed_in=request.state.signed_in,
    )


@router.post("/session", status_code=204)
def sign_in(web: Web, given: SignIn, request: Request) -> Response:
    """Exchange a token for a cookie, so that the page need not keep it."""
    if web.rules.tokens and digest(given.token) not in web.rules.tokens:
        raise RefusedError(401, "invalid access token")
    answer = Response(status_code=204)
    if web.rules.tokens:
        secure = request.url.scheme == "https"
        answer.set_cookie(TOKEN, given.token, httponly=True, samesite="strict", secure=secure)
    return answer


@router.delete("/session", status_code=204)
def sign_out() -> Response:
    """Forget the cookie."""
    answer = Response(status_code=204)
    answer.delete_cookie(TOKEN)
    return answer


# Documents


@router.post("/segment")
def segment_text(given: TextGiven) -> Segmented:
    """The goal and the steps of a text. Nothing is kept."""
    read = read_given_text(given.text, given.goal, given.name)
    return Segmented(goal=read.procedure.goal, steps=list(read.procedure.steps), warnings=read.warnings)


@router.post("/documents", status_code=201)
def add_document(web: Web, given: TextGiven) -> Document:
    """Keep a text, read as steps."""
    read = read_given_text(given.text, given.goal, given.name)
    return _document(web, web.archive.add(read.procedure, given.text.encode(), given.name, read.warnings))


@router.post("/documents/upload", status_code=201, openapi_extra=FILE)
async def upload(web: Web, request: Request, name: Annotated[str, Query(max_length=MAX_NAME)] = "file.txt") -> Uploaded:
    """Keep a file: a text, a web page, or records in any format that fluents reads. The body is the file itself."""
    data = await request.body()
    return await run_in_threadpool(_keep_upload, web, data, name)


def _keep_upload(web: Services, data: bytes, name: str) -> Uploaded:
    read = read_upload(data, name)
    if read.text is not None:
        document = web.archive.add(read.text.procedure, data, read.name, read.text.warnings)
        return Uploaded(documents=web.archive.summaries([document]), traces=[])
    documents, traces = web.archive.add_traces(read.traces, read.name)
    return Uploaded(documents=web.archive.summaries(documents), traces=web.archive.trace_summaries(traces))


@router.get("/documents")
def list_documents(web: Web, q: SearchWords = "", offset: Offset = 0, limit: Limit = 20) -> DocumentPage:
    """The archive, newest first; with `q`, the documents that have all these words in goal, name or steps."""
    return web.archive.documents(q, offset, limit)


@router.get("/documents/{document_id}")
def show_document(web: Web, document_id: Id) -> Document:
    """A document with its jobs and traces."""
    return _document(web, document_id)


@router.patch("/documents/{document_id}")
def correct_document(web: Web, document_id: Id, given: StepsGiven) -> Document:
    """Correct goal and steps. The text, and what was read from it, stay; `null` for both goes back to them."""
    web.archive.correct_steps(document_id, given.goal, given.steps)
    return _document(web, document_id)


@router.delete("/documents/{document_id}", status_code=204)
def delete_document(web: Web, document_id: Id) -> Response:
    """Delete a document with its jobs, traces and corrections."""
    for job in web.jobs.latest(document_id=document_id):
        if job.state not in ENDED:
            web.runner.cancel(job.id)
    web.archive.delete_document(document_id)
    return Response(status_code=204)


def _document(web: Services, document_id: str) -> Document:
    kept = web.archive.document(document_id)
    return Document(
        id=kept.id,
        goal=kept.procedure.goal,
        steps=list(kept.procedure.steps),
        read_goal=kept.read.goal,
        read_steps=list(kept.read.steps),
        corrected=kept.corrected is not None,
        text=kept.text,
        name=kept.name,
        created=kept.created,
        language=language(" ".join((kept.procedure.goal, *kept.procedure.steps))),
        warnings=kept.warnings,
        jobs=web.jobs.latest(document_id=document_id),
        traces=web.archive.traces_of(document_id),
    )


# Jobs


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


# Traces


@router.get("/traces/{trace_id}")
def show_trace(web: Web, trace_id: Id, shown: Shown) -> TraceView:
    """A trace with what people said of it."""
    return trace_view(web.archive.trace(trace_id), shown)


@router.get("/traces/{trace_id}/views", response_class=HTMLResponse)
def draw_trace(web: Web, trace_id: Id) -> str:
    """The three views of a trace as HTML, in the model's words, for a page that has their style."""
    return drawn(web.archive.trace(trace_id).trace)


@router.delete("/traces/{trace_id}", status_code=204)
def delete_trace(web: Web, trace_id: Id) -> Response:
    """Delete a trace and the corrections of it."""
    web.archive.delete_trace(trace_id)
    return Response(status_code=204)


@router.get("/traces/{trace_id}/corrections")
def list_corrections(web: Web, trace_id: Id) -> list[Correction]:
    """All judgements on a trace, oldest first."""
    return web.archive.trace(trace_id).corrections


@router.post("/traces/{trace_id}/corrections", status_code=201)
def correct_trace(web: Web, trace_id: Id, given: CorrectionGiven) -> Correction:
    """Judge a change, or add one. The words of the model stay; the latest judgement on a change counts."""
    return web.archive.correct(trace_id, given)


@router.get("/traces/{trace_id}/download", response_class=StreamingResponse)
def download_trace(
    web: Web, trace_id: Id, shown: Shown, format: DownloadFormat = "jsonl", corrected: bool = True
) -> Response:
    """A trace as a file; as people left it, or in the model's words alone."""
    kept = web.archive.trace(trace_id)
    trace = shown(kept.corrected if corrected else kept.trace)
    return _file(download(trace, format), f"{id_from(trace.id)}.{format}", MEDIA_TYPES[format])


@router.get("/compare")
def compare_traces(web: Web, gold: IdQuery, pred: IdQuery, corrected: bool = False) -> SideBySide:
    """Two traces of the same steps: which changes match, and the score."""
    first, second = web.archive.trace(gold), web.archive.trace(pred)
    with web.thinking():
        return side_by_side(first, second, corrected=corrected)


@router.post("/traces/{trace_id}/ask")
def ask_trace(web: Web, trace_id: Id, given: QuestionGiven) -> LikelihoodAnswer:
    """How likely something is before step 1 and after each step."""
    trace = web.archive.trace(trace_id).corrected
    with web.thinking():
        answer = ask(trace, given.question, states=given.states, min_salience=given.min_salience)
    return LikelihoodAnswer(question=given.question, likelihoods=list(answer.likelihoods))


@router.post("/traces/{trace_id}/plan")
def plan_trace(web: Web, trace_id: Id, given: PlanGiven) -> PlanFound:
    """The steps as planning actions, and a plan to the goal."""
    trace = web.archive.trace(trace_id).corrected
    limits: dict[str, Any] = {"time_limit": PLAN_SECONDS, "memory_limit": PLAN_MEMORY}
    with web.thinking():
        found = plan(trace, **given.model_dump(), **limits)
    return PlanFound.model_validate(found.to_dict())


# The whole store


@router.get("/search")
def search(
    web: Web,
    q: SearchWords = "",
    entity: SearchWords = "",
    attribute: SearchWords = "",
    before: SearchWords = "",
    after: SearchWords = "",
    offset: Offset = 0,
    limit: Limit = 20,
) -> FoundPage:
    """Changes of all traces that have these words: `after=hot` is everything that becomes hot."""
    given = {"entity": entity, "attribute": attribute, "before": before, "after": after}
    return web.archive.search(q, offset, limit, **{name: words for name, words in given.items() if words})


@router.get("/corrections/export", response_class=StreamingResponse)
def export_corrections(web: Web) -> Response:
    """All traces that somebody judged, as people left them: data for `fluents train adapter`."""
    lines = (jsonl.dumps(trace) + b"\n" for trace in web.archive.corrected_traces())
    return _file(lines, "corrections.jsonl", MEDIA_TYPES["jsonl"])


@router.get("/backup", response_class=StreamingResponse)
def download_backup(web: Web) -> Response:
    """The whole store as one file."""
    return _file(backup.written(web.store), f"fluents{backup.SUFFIX}", "application/gzip")


@router.post("/restore", openapi_extra=FILE)
async def restore_backup(web: Web, request: Request) -> Restored:
    """Add what a backup holds. What is there already stays as it is; all is restored, or nothing."""
    with tempfile.TemporaryFile(prefix="fluents-restore-") as file:
        size = 0
        try:
            async with asyncio.timeout(RESTORE_SECONDS):
                async for part in request.stream():
                    size += len(part)
                    if size > web.backup_bytes:
                        raise RefusedError(413, f"the backup is larger than {web.backup_bytes:,} bytes")
                    file.write(part)
        except TimeoutError:
            raise RefusedError(408, "the upload of the backup took too long") from None
        except ClientDisconnect:
            raise InputError("the upload of the backup was interrupted", fix="upload the backup again") from None
        file.seek(0)
        return await run_in_threadpool(backup.restore, web.store, file)


def _file(parts: Iterator[bytes], name: str, media_type: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(parts, media_type=media_type, headers=headers)
