"""The stages of a batch run: a shard of documents in, a row for each of them out, whatever becomes of it."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from fluents.batches.documents import InputDocument
from fluents.batches.store import ShardFile, ShardFormat, ShardStore, signature
from fluents.errors import (
    ChecksumError,
    DataMissingError,
    FluentsError,
    FluentsWarning,
    InputError,
    UnknownNameError,
)
from fluents.llm.question import EndpointError
from fluents.records import Procedure, Trace
from fluents.trackers import Listener, Tracker, open_tracker, settings_of, unanswered

Stage: TypeAlias = Literal["segment", "track", "canonicalise", "salience"]
STAGES: tuple[Stage, ...] = get_args(Stage)
MAX_ERROR = 500
"""Characters kept of an error: it may repeat what a text or a model said."""

Beat: TypeAlias = Callable[[Sequence[int], int], None]
"""Told that work goes on: the rows underway, and how many steps are done in all."""


def in_order(stages: Sequence[str]) -> tuple[Stage, ...]:
    """The stages, checked: known, each once, in the order in which they make sense."""
    for stage in stages:
        if stage not in STAGES:
            raise UnknownNameError(f"unknown stage {stage!r}", fix=f"choose one of: {', '.join(STAGES)}")
    ordered = tuple(stage for stage in STAGES if stage in stages)
    if not stages or ordered != tuple(stages):
        if not stages:
            what = "`stages` is empty"
        elif len(ordered) < len(stages):
            what = f"`stages` contains a stage twice: {','.join(stages)}"
        else:
            what = f"`stages` is in the wrong order: {','.join(stages)}"
        raise InputError(
            what,
            fix=f"give each stage once, in this order: {','.join(ordered or STAGES)}",
        )
    return ordered


@dataclass(frozen=True)
class BatchSettings:
    """All that decides what becomes of a document."""

    stages: tuple[Stage, ...] = STAGES
    tracker: Mapping[str, Any] = field(default_factory=dict)
    """What `open_tracker` takes."""
    max_steps: int = 1000
    """A procedure with more is not tracked: it is mostly a book, or a table, and would hold a worker for hours."""
    format: ShardFormat = "parquet"

    @property
    def settings(self) -> dict[str, Any]:
        """What a later run must share to go on with this one; opens the tracker, which says what counts of it."""
        found: dict[str, Any] = {"stages": list(self.stages), "format": self.format, "max_steps": self.max_steps}
        if "track" in self.stages:
            with self.opened_tracker() as tracker:
                found["tracker"] = settings_of(tracker.provenance)
        return found

    def file_name(self, shard: str, settings: Mapping[str, Any]) -> str:
        """The name of a shard's file: made of its documents and these settings."""
        return f"{shard}-{signature(settings)}.{self.format}"

    def opened_tracker(self) -> Tracker:
        return open_tracker(**self.tracker)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> BatchSettings:
        return cls(**{**values, "stages": tuple(values["stages"])})


@dataclass(frozen=True)
class ShardTask:
    """A shard to do, and what was learnt from workers that died over it."""

    file: str
    documents: tuple[InputDocument, ...]
    retry: bool = False
    """Only the rows of the file that failed."""
    alone: bool = False
    """One row after the other, so that it is seen over which one a worker dies."""
    given_up: Mapping[int, str] = field(default_factory=dict)
    """Rows over which workers died, and how."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"given_up": {str(row): why for row, why in self.given_up.items()}}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ShardTask:
        documents = tuple(InputDocument(*one) for one in values["documents"])
        given_up = {int(row): why for row, why in values["given_up"].items()}
        return cls(**{**values, "documents": documents, "given_up": given_up})


class Stages:
    """The stages, opened once for many shards: one load of the model, one of each built-in method."""

    def __init__(self, settings: BatchSettings) -> None:
        self.settings = settings
        self._open = ExitStack()
        self._tracker: Tracker | None = None
        if "track" in settings.stages:
            self._tracker = _for_many(self._open.enter_context(settings.opened_tracker()))
        self._after: dict[Stage, Callable[[Trace], Trace]] = {}
        if "canonicalise" in settings.stages:
            from fluents.canonicalisation import canonicalise, open_method  # slow to import

            self._after["canonicalise"] = partial(canonicalise, method=self._open.enter_context(open_method()))
        if "salience" in settings.stages:
            from fluents.salience import open_rater, rate_salience

            self._after["salience"] = partial(rate_salience, method=self._open.enter_context(open_rater()))

    def close(self) -> None:
        self._open.close()

    def do(self, task: ShardTask, store: ShardStore, beat: Beat) -> ShardFile:
        """Do a shard and write its file. Of a retried one, what went well is kept as it is."""
        kept: dict[int, Trace] = {}
        if task.retry:
            kept = {row: trace for row, trace in enumerate(store.read_shard(task.file)) if trace.error is None}
        rows = {row: document for row, document in enumerate(task.documents) if row not in kept}
        noted: list[int] | None = None

        def note(underway: Sequence[int], steps: int) -> None:
            nonlocal noted
            if task.alone and list(underway) != noted:
                noted = list(underway)
                store.write_row(task.file, noted[0] if noted else None)
            beat(underway, steps)

        made = self.rows(rows, note, alone=task.alone, given_up=task.given_up)
        written = store.write_shard(task.file, [(kept | made)[row] for row in range(len(task.documents))])
        if task.alone:
            store.remove_row(task.file)
        return written

    def rows(
        self,
        documents: Mapping[int, InputDocument],
        beat: Beat,
        *,
        alone: bool = False,
        given_up: Mapping[int, str] | None = None,
    ) -> dict[int, Trace]:
        """The trace of each document, by its row. One that fails has its error, and no other suffers from it."""
        found: dict[int, Trace] = {}
        for row, document in documents.items():
            beat([row], 0)
            if given_up and row in given_up:
                found[row] = _failed(document, given_up[row])
            else:
                with _failures("segment", document, found, row):
                    found[row] = self._read(document)
        _make_ids_differ(found)
        beat([], 0)
        steps = 0
        if self._tracker is not None:
            wanted = {row: trace.procedure for row, trace in found.items() if trace.error is None}
            for row, trace in _Tracking(self._tracker, wanted, beat, alone):
                found[row] = trace
                steps += len(trace.procedure.steps)
        for row, trace in list(found.items()):
            if trace.error is None:
                beat([row], steps)
                self._finish(row, documents[row], found)
        return found

    def _read(self, document: InputDocument) -> Trace:
        if document.kind == "text" and "segment" not in self.settings.stages:
            raise InputError('this input is plain text: to split it into steps, add "segment" to `stages`')
        trace = document.content()
        count, most = len(trace.procedure.steps), self.settings.max_steps
        if count > most:
            what = f"the procedure has {count:,} steps, but `max_steps` is {most:,}"
            raise InputError(f"{what}: raise `max_steps`, or split the procedure into shorter ones")
        return Trace(procedure=trace.procedure) if self._tracker is not None else trace.replace(error=None)

    def _finish(self, row: int, document: InputDocument, found: dict[int, Trace]) -> None:
        for stage, work in self._after.items():
            if found[row].error is None:
                with _failures(stage, document, found, row):
                    found[row] = work(found[row])


def _for_many(tracker: Tracker) -> Tracker:
    """The tracker as it is fastest for many procedures."""
    if tracker.provenance.tracker != "llm":
        return tracker
    from fluents.batches.endpoint_tracker import EndpointTracker  # slow to import

    return EndpointTracker(tracker)


@contextmanager
def _failures(stage: Stage, document: InputDocument, found: dict[int, Trace], row: int) -> Iterator[None]:
    """What goes wrong with a row becomes its error; what it had so far stays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FluentsWarning)  # a line for one procedure; here are thousands
        try:
            yield
        except (FluentsError, ValueError, RecursionError, LookupError, TypeError, ArithmeticError) as error:
            why = f"{stage}: {_told(error)}"
            found[row] = found[row].replace(error=why) if row in found else _failed(document, why)


def _told(error: Exception) -> str:
    said = error.what if isinstance(error, FluentsError) else f"{type(error).__name__}: {error}"
    return _one_line(said) or type(error).__name__


def _one_line(said: str) -> str:
    return " ".join(said.split())[:MAX_ERROR]


def _failed(document: InputDocument, why: str) -> Trace:
    """The row of a document of which nothing else is known."""
    return Trace(procedure=Procedure(id=document.id, steps=(), source=document.where), error=why)


def _make_ids_differ(found: dict[int, Trace]) -> None:
    """Trackers know procedures by their ids, which must differ within a shard."""
    seen: set[str] = set()
    for row in sorted(found):
        name, number = found[row].id, 1
        while found[row].id in seen:
            number += 1
            found[row] = found[row].replace(procedure=found[row].procedure.replace(id=f"{name}-{number}"))
        seen.add(found[row].id)


def are_rows_of(documents: Sequence[InputDocument], rows: Sequence[Trace]) -> bool:
    """Whether the ids of rows are those that their documents lead to."""
    return len(rows) == len(documents) and all(map(_is_row_of, documents, rows))


def _is_row_of(document: InputDocument, row: Trace) -> bool:
    if _is_id(row.id, document.id):
        return True
    if document.kind == "text":
        return False
    try:  # some records have an id that only reading them tells
        return _is_id(row.id, document.content().id)
    except (FluentsError, ValueError, RecursionError, LookupError, TypeError, ArithmeticError):
        return False


def _is_id(found: str, wanted: str) -> bool:
    """Whether it is this id, or what `_make_ids_differ` makes of it."""
    return bool(re.fullmatch(re.escape(wanted) + r"(-\d+)?", found))


_FOR_ALL = (EndpointError, DataMissingError, ChecksumError)
"""What fails for every procedure: the endpoint, or the weights."""


class _Tracking(Listener):
    """Tracks procedures as the tracker likes them best; where one fails, it alone does."""

    def __init__(self, tracker: Tracker, procedures: Mapping[int, Procedure], beat: Beat, alone: bool) -> None:
        self._tracker, self._procedures, self._beat, self._alone = tracker, procedures, beat, alone
        self._row = {procedure.id: row for row, procedure in procedures.items()}
        self._underway: dict[int, int] = {}
        self._steps = 0
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[tuple[int, Trace]]:
        left = list(self._procedures)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FluentsWarning)
            while left:
                if not self._alone:
                    try:
                        for trace in self._tracker.track_many([self._procedures[row] for row in left], self):
                            yield self._done(left.pop(0), trace)
                        return
                    except _FOR_ALL:  # the run ends, and can be resumed
                        raise
                    except (FluentsError, ValueError, RecursionError, LookupError, TypeError, ArithmeticError):
                        pass  # of the first that is left, or of several together: by itself it shows
                row = left.pop(0)
                yield self._done(row, self._one(self._procedures[row]))

    def _one(self, procedure: Procedure) -> Trace:
        try:
            return self._tracker.track(procedure, self)
        except _FOR_ALL:
            raise
        except (FluentsError, ValueError, RecursionError, LookupError, TypeError, ArithmeticError) as error:
            return Trace(procedure=procedure, covered=(), error=f"track: {_told(error)}")

    def _done(self, row: int, trace: Trace) -> tuple[int, Trace]:
        with self._lock:
            self._underway.pop(row, None)
            self._steps += len(trace.procedure.steps)
        self._tell()
        missing = 0 if trace.error else unanswered(self._tracker, trace)
        if missing:
            count = len(trace.procedure.steps)
            why = next((f": {one.reason}" for one in trace.rejects if one.step not in trace.covered_steps), "")
            trace = trace.replace(error=_one_line(f"track: {missing} of {count} steps got no answer{why}"))
        return row, trace

    def _tell(self) -> None:
        with self._lock:
            rows, steps = list(self._underway), self._steps + sum(self._underway.values())
        self._beat(rows, steps)

    def on_start(self, procedure: Procedure, done: int = 0) -> None:  # noqa: ARG002 - none is done before
        self._count(procedure, 0)

    def on_step(self, trace: Trace) -> None:
        self._count(trace.procedure, len(trace.covered_steps))

    def on_progress(self, procedure: Procedure, steps: float) -> None:
        self._count(procedure, int(steps))

    def on_draft(self, line: str) -> None:  # noqa: ARG002 - that it writes is what counts
        self._tell()

    def _count(self, procedure: Procedure, steps: int) -> None:
        with self._lock:
            self._underway[self._row[procedure.id]] = steps
        self._tell()


def memory_used() -> int:
    """The bytes of memory this process holds now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
