"""The REST API: each function takes what came, makes one or two calls of the library, and gives back a resource."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from fluents import jsonl
from fluents.errors import InputError
from fluents.planning.trace_plan import plan
from fluents.questions import ask
from fluents.records import id_from
from fluents.segmentation import language
from fluents.version import __version__
from fluents.web import backup, job_routes
from fluents.web.guard import TOKEN, RefusedError, digest
from fluents.web.jobs import ENDED
from fluents.web.resources import (
    MAX_NAME,
    Document,
    DocumentPage,
    ErrorAnswer,
    FoundPage,
    Health,
    Limits,
    Restored,
    Segmented,
    ServerInfo,
    SignIn,
    StepsGiven,
    TextGiven,
    Uploaded,
)
from fluents.web.services import FILE, Id, IdQuery, Limit, Offset, SearchWords, Services, Shown, Web
from fluents.web.trace_resources import (
    Correction,
    CorrectionGiven,
    LikelihoodAnswer,
    PlanFound,
    PlanGiven,
    QuestionGiven,
    SideBySide,
    TraceView,
)
from fluents.web.trace_views import MEDIA_TYPES, DownloadFormat, download, drawn, filtered, side_by_side, trace_view
from fluents.web.uploads import read_given_text, read_upload

PLAN_SECONDS, PLAN_MEMORY = 20.0, 1024
"""What a planner may take."""
RESTORE_SECONDS = 600.0
"""In which a backup must have come."""


_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (400, 401, 403, 404, 408, 409, 413, 415, 422, 429)
}
router = APIRouter(prefix="/api/v1", responses=_ERRORS)


# The server


@router.get("/health", responses={503: {"model": ErrorAnswer}})
def health(web: Web) -> Health:
    """Whether the server works, and what it is busy with; 503 if it cannot run jobs."""
    if web.runner.trouble is not None:
        fix = "look for the error in the output of the server; the server keeps trying, and needs no restart"
        raise RefusedError(503, f"the server cannot run jobs: {web.runner.trouble}", fix)
    queued, running = web.jobs.counts()
    return Health(status="ok", version=__version__, store=web.store.kind, queued=queued, running=running)


@router.get("/server")
def server(web: Web, request: Request) -> ServerInfo:
    """What this server can do."""
    return ServerInfo(
        version=__version__,
        trackers=web.menu.trackers(),
        default_tracker=web.menu.default,
        limits=Limits(body_bytes=web.rules.body_bytes, backup_bytes=web.backup_bytes, queued_jobs=web.jobs.most),
        needs_token=bool(web.rules.tokens),
        signed_in=request.state.signed_in,
    )


@router.post("/session", status_code=204)
def sign_in(web: Web, given: SignIn, request: Request) -> Response:
    """Exchange a token for a cookie, so that the page need not keep it."""
    if web.rules.tokens and digest(given.token) not in web.rules.tokens:
        raise RefusedError(401, "invalid access token", "ask the operator of this server for a token")
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

router.include_router(job_routes.router)


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
    trace = filtered(kept, shown) if corrected else shown(kept.trace)
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
                        raise RefusedError(
                            413, f"the backup is too large: this server accepts at most {web.backup_bytes:,} bytes"
                        )
                    file.write(part)
        except TimeoutError:
            raise RefusedError(
                408, "the upload of the backup took too long", "upload the backup over a faster connection"
            ) from None
        except ClientDisconnect:
            raise InputError("the upload of the backup was interrupted", fix="upload the backup again") from None
        file.seek(0)
        return await run_in_threadpool(backup.restore, web.store, file)


def _file(parts: Iterator[bytes], name: str, media_type: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(parts, media_type=media_type, headers=headers)
