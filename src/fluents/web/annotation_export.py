"""What a project of the store leaves, as a file."""

from __future__ import annotations

from collections.abc import Iterator

from fluents.annotation.export import ExportFormat, written
from fluents.records import Trace
from fluents.web.annotation_history import history_lines
from fluents.web.annotation_records import Project, traces_of
from fluents.web.annotation_stages import last_stage, left_traces
from fluents.web.store import Store


def exported(store: Store, project: Project, format: ExportFormat, *, pseudonymous: bool = False) -> Iterator[bytes]:
    """The file, part by part. `pseudonymous` leaves the names of people out of the history; results have none."""
    if format == "history":
        return history_lines(store, project, pseudonymous=pseudonymous)
    return written(lambda: results(store, project), format)


def results(store: Store, project: Project) -> Iterator[Trace]:
    """The traces as they are now: those that the last closed stage left, and what the decisions of the open one make of
    them."""
    with store.reading() as session:
        last = last_stage(session, project.id)
        if last is None:
            yield from traces_of(session, project.id, "stage", "1")
        elif last.left is None:
            yield from left_traces(session, project, last.number)
        else:
            yield from traces_of(session, project.id, "stage", str(last.number + 1))
