"""Jobs in the store: whose turn it is, what is finished, and what happened in which order."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from fluents import jsonl
from fluents.errors import FluentsError
from fluents.records import Procedure, Provenance, Reject, StateChange, Trace
from fluents.web.archive import get_row, insert_trace, moment, procedure_of
from fluents.web.resources import Job, JobState, StepDone
from fluents.web.store import NotFoundError, Store, new_id
from fluents.web.tables import DocumentRow, EventRow, JobRow, TraceRow

MAX_FAILURES = 2
"""So often may a worker end without finishing a step."""
MAX_LISTED = 100
ENDED: tuple[JobState, ...] = ("done", "cancelled", "failed")


class TooManyJobsError(FluentsError):
    """The queue, or a client's part of it, is full."""


class JobStateError(FluentsError):
    """A job that is in no state for what is asked of it."""


class Waiting(NamedTuple):
    """A job in the queue."""

    id: str
    client: str
    created: float


class JobEvent(NamedTuple):
    """Something that happened to a job."""

    number: int
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True)
class TakenJob:
    """A job whose turn it is."""

    id: str
    tracker: str
    options: dict[str, Any]
    procedure: Procedure
    done: Trace | None
    """The steps that are finished already."""


@dataclass(frozen=True)
class StepResult:
    """A finished step as the worker reports it."""

    step: int
    changes: Sequence[StateChange]
    """All that the next steps build on."""
    shown: Sequence[int]
    """Which of them the trace will hold."""
    rejects: Sequence[Reject]
    seconds_left: float | None


def turns(queued: Iterable[Waiting], last: Mapping[str, float]) -> list[str]:
    """The order of the queue: clients take turns, whoever waited longest since the `last` first; each by age."""
    waiting: dict[str, list[Waiting]] = {}
    for job in sorted(queued, key=lambda job: (job.created, job.id), reverse=True):
        waiting.setdefault(job.client, []).append(job)
    turn = {client: last.get(client, float("-inf")) for client in waiting}
    later = max([0.0, *last.values()])
    order = []
    while waiting:
        client = min(waiting, key=lambda name: (turn[name], waiting[name][-1].created, name))
        order.append(waiting[client].pop().id)
        later += 1
        turn[client] = later
        if not waiting[client]:
            del waiting[client]
    return order


class Jobs:
    """The jobs of a store. Every change of state and every finished step is an event, and kept at once."""

    def __init__(self, store: Store, *, most: int = 20, most_of_all: int = 500) -> None:
        self._store = store
        self.most, self.most_of_all = most, most_of_all

    def add(self, document_id: str, procedure: Procedure, client: str, tracker: str, options: Mapping[str, Any]) -> Job:
        """Put a document into the queue."""
        with self._store.writing() as session:
            get_row(session, DocumentRow, document_id)
            queue = _queued(session)
            if len(queue) >= self.most_of_all or sum(job.client == client for job in queue) >= self.most:
                raise TooManyJobsError(
                    "too many jobs are waiting", fix="wait until some jobs have finished, or cancel some"
                )
            row = JobRow(
                id=new_id(),
                document_id=document_id,
                client=client,
                state="queued",
                tracker=tracker,
                options=json.dumps(dict(options)),
                procedure=jsonl.dumps(procedure).decode(),
                created=time.time(),
                steps=len(procedure.steps),
                done=0,
                failures=0,
            )
            session.add(row)
            session.flush()
            return _note_state(session, row)

    def get(self, job_id: str) -> Job:
        with self._store.reading() as session:
            return _views(session, [get_row(session, JobRow, job_id)])[0]

    def latest(self, state: JobState | None = None, document_id: str | None = None) -> list[Job]:
        """Newest first."""
        chosen = select(JobRow)
        if state is not None:
            chosen = chosen.where(JobRow.state == state)
        if document_id is not None:
            chosen = chosen.where(JobRow.document_id == document_id)
        with self._store.reading() as session:
            newest = chosen.order_by(JobRow.created.desc(), JobRow.id).limit(MAX_LISTED)
            return _views(session, list(session.scalars(newest)))

    def counts(self) -> tuple[int, str | None]:
        """How many are queued, and which one runs."""
        with self._store.reading() as session:
            queued = session.scalar(select(func.count()).where(JobRow.state == "queued")) or 0
            return queued, session.scalar(select(JobRow.id).where(JobRow.state == "running").limit(1))

    def events(self, job_id: str, after: int = 0) -> list[JobEvent]:
        """What happened after the event of this number, as clients see it."""
        chosen = select(EventRow).where(EventRow.job_id == job_id, EventRow.number > after).order_by(EventRow.number)
        with self._store.reading() as session:
            get_row(session, JobRow, job_id)
            return [JobEvent(row.number, row.kind, _shown(row)) for row in session.scalars(chosen)]

    def last_event(self, job_id: str) -> int:
        """The number of the latest event."""
        with self._store.reading() as session:
            return session.scalar(select(func.max(EventRow.number)).where(EventRow.job_id == job_id)) or 0

    def trace(self, job_id: str) -> Trace:
        """The finished steps so far, as the trace will hold them."""
        with self._store.reading() as session:
            row = get_row(session, JobRow, job_id)
            return _finished_steps(session, row, shown_only=True)

    # What the runner tells

    def recover(self) -> int:
        """Jobs that ran when the server ended go on; returns how many."""
        with self._store.writing() as session:
            rows = list(session.scalars(select(JobRow).where(JobRow.state == "running")))
            for row in rows:
                _set_state(session, row, "queued")
            return len(rows)

    def take(self) -> TakenJob | None:
        """The job whose turn it is, now running."""
        with self._store.writing() as session:
            queue = _queued(session)
            if not queue:
                return None
            row = get_row(session, JobRow, turns(queue, _last_turns(session))[0], lock=True)
            if row.state != "queued":
                return None
            done = _finished_steps(session, row, shown_only=row.done == row.steps)
            row.started = time.time()
            _set_state(session, row, "running")
            return TakenJob(
                row.id, row.tracker, json.loads(row.options), done.procedure, done if done.covered_steps else None
            )

    def begin(self, job_id: str, provenance: Provenance) -> None:
        """The tracker is open."""
        with self._store.writing() as session:
            get_row(session, JobRow, job_id).provenance = provenance.model_dump_json(exclude_defaults=True)

    def add_step(self, job_id: str, result: StepResult) -> None:
        """A step is finished."""
        with self._store.writing() as session:
            row = get_row(session, JobRow, job_id, lock=True)
            row.done += 1
            row.failures = 0
            seen = StepDone(
                step=result.step,
                text=procedure_of(row.procedure).steps[result.step - 1],
                changes=list(result.changes),
                rejects=list(result.rejects),
                done=row.done,
                steps=row.steps,
                seconds_left=result.seconds_left,
            )
            data = seen.model_dump(mode="json", exclude_defaults=False)
            data["changes"] = [change.model_dump(mode="json", exclude_defaults=True) for change in result.changes]
            _note(session, job_id, "step", data | {"shown": list(result.shown)})

    def warn(self, job_id: str, message: str) -> None:
        """Something the reader of the trace should know."""
        with self._store.writing() as session:
            _note(session, get_row(session, JobRow, job_id).id, "warning", {"message": message})

    def finish(self, job_id: str, trace: Trace) -> None:
        """The job is done, and this is its trace."""
        with self._store.writing() as session:
            row = get_row(session, JobRow, job_id, lock=True)
            insert_trace(session, row.document_id, trace, row.tracker, job_id)
            _set_state(session, row, "done")

    def end(self, job_id: str, state: JobState, error: str | None = None) -> None:
        """The job is cancelled or failed; its finished steps stay. One that was deleted meanwhile is forgotten."""
        with self._store.writing() as session:
            try:
                row = get_row(session, JobRow, job_id, lock=True)
            except NotFoundError:
                return
            _set_state(session, row, state, error)

    def worker_ended(self, job_id: str, reason: str) -> None:
        """The job goes back into the queue; after MAX_FAILURES without a finished step it has failed."""
        with self._store.writing() as session:
            try:
                row = get_row(session, JobRow, job_id, lock=True)
            except NotFoundError:
                return
            row.failures += 1
            if row.failures >= MAX_FAILURES:
                _set_state(session, row, "failed", reason)
            else:
                _set_state(session, row, "queued")

    # What clients tell

    def cancel_queued(self, job_id: str) -> bool:
        """Take a job out of the queue; False if it is not there."""
        with self._store.writing() as session:
            row = get_row(session, JobRow, job_id, lock=True)
            if row.state != "queued":
                return False
            _set_state(session, row, "cancelled")
            return True

    def resume(self, job_id: str) -> Job:
        """Put a job that was cancelled or failed back into the queue."""
        with self._store.writing() as session:
            row = get_row(session, JobRow, job_id, lock=True)
            if row.state not in ("cancelled", "failed"):
                raise JobStateError(
                    f"cannot resume this job, because it is {row.state}",
                    fix="resume only jobs that were cancelled or have failed",
                )
            queue = _queued(session)
            if len(queue) >= self.most_of_all or sum(job.client == row.client for job in queue) >= self.most:
                raise TooManyJobsError(
                    "too many jobs are waiting", fix="wait until some jobs have finished, or cancel some"
                )
            row.failures = 0
            return _set_state(session, row, "queued")


def _queued(session: Session) -> list[Waiting]:
    chosen = select(JobRow.id, JobRow.client, JobRow.created).where(JobRow.state == "queued")
    return [Waiting(*row) for row in session.execute(chosen)]


def _last_turns(session: Session) -> dict[str, float]:
    """When a job of each client began last, of those that have one in the queue."""
    waiting = select(JobRow.client).where(JobRow.state == "queued")
    chosen = select(JobRow.client, func.max(JobRow.started)).where(
        JobRow.client.in_(waiting), JobRow.started.is_not(None)
    )
    found = session.execute(chosen.group_by(JobRow.client))
    return {client: started for client, started in found if started is not None}


def _set_state(session: Session, row: JobRow, state: JobState, error: str | None = None) -> Job:
    row.state, row.error = state, error
    row.ended = time.time() if state in ENDED else None
    session.flush()
    return _note_state(session, row)


def _note_state(session: Session, row: JobRow) -> Job:
    [view] = _views(session, [row])
    _note(session, row.id, "state", view.model_dump(mode="json"))
    return view


def _note(session: Session, job_id: str, kind: str, data: Mapping[str, Any]) -> None:
    last = session.scalar(select(func.max(EventRow.number)).where(EventRow.job_id == job_id)) or 0
    session.add(EventRow(job_id=job_id, number=last + 1, kind=kind, data=json.dumps(data)))
    session.flush()


def _shown(row: EventRow) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(row.data)
    if row.kind == "step":
        data["changes"] = [data["changes"][place] for place in data.pop("shown")]
    return data


def _finished_steps(session: Session, row: JobRow, *, shown_only: bool) -> Trace:
    chosen = select(EventRow).where(EventRow.job_id == row.id, EventRow.kind == "step").order_by(EventRow.number)
    steps = sorted(
        (_shown(event) if shown_only else json.loads(event.data) for event in session.scalars(chosen)),
        key=lambda data: int(data["step"]),
    )
    covered = tuple(data["step"] for data in steps)
    return Trace(
        procedure=procedure_of(row.procedure),
        changes=tuple(StateChange(**change) for data in steps for change in data["changes"]),
        rejects=tuple(Reject(**reject) for data in steps for reject in data["rejects"]),
        covered=None if len(covered) == row.steps else covered,
        provenance=Provenance(**json.loads(row.provenance or "{}")),
    )


def _views(session: Session, rows: Sequence[JobRow]) -> list[Job]:
    """Jobs as clients see them."""
    ids = [row.id for row in rows]
    made = session.execute(select(TraceRow.job_id, TraceRow.id).where(TraceRow.job_id.in_(ids)))
    traces = dict(made.all())
    places: dict[str, int] = {}
    if any(row.state == "queued" for row in rows):
        running = session.scalar(select(func.count()).where(JobRow.state == "running")) or 0
        order = turns(_queued(session), _last_turns(session))
        places = {job: place + running for place, job in enumerate(order)}
    return [
        Job.model_validate(
            {
                "id": row.id,
                "document": row.document_id,
                "goal": procedure_of(row.procedure).goal,
                "state": row.state,
                "tracker": row.tracker,
                "options": json.loads(row.options),
                "created": moment(row.created),
                "started": None if row.started is None else moment(row.started),
                "ended": None if row.ended is None else moment(row.ended),
                "steps": row.steps,
                "done": row.done,
                "ahead": places.get(row.id),
                "trace": traces.get(row.id),
                "error": row.error,
            }
        )
        for row in rows
    ]
