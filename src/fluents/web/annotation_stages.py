"""The stages of annotation projects: opening one after the other, and how far they have come."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, TypeAlias

from sqlalchemy import delete, func, insert, select, text
from sqlalchemy.orm import Session

from fluents.annotation import stages
from fluents.annotation.design import MAX_JUDGES
from fluents.annotation.items import Decision, Item
from fluents.annotation.outcomes import StageOutcome
from fluents.records import Trace
from fluents.web.annotation_authors import insert_authors, written_before
from fluents.web.annotation_records import (
    BLOCK,
    ConflictError,
    Project,
    decisions_of,
    dumped,
    items_of,
    keep_sources,
    lock_project,
    of_stage,
    source_count,
    systems_of,
    traces_of,
)
from fluents.web.annotation_tables import DecisionRow, ItemRow, PlaceRow, StageRow
from fluents.web.store import Store

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many procedures are done, and how many there are."""
TRACES = 20
"""Whose outcome is computed at once."""


@dataclass(frozen=True)
class StageProgress:
    """How far a stage that was opened has come."""

    number: int
    opened: float
    closed: float | None
    items: int
    decided: int


class ProjectStages:
    """The stages of all projects in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._opening = threading.Lock()

    def progress(self, project_id: str) -> list[StageProgress]:
        """The stages that were opened, in order."""
        with self._store.reading() as session:
            counted = select(ItemRow.stage, func.count()).where(ItemRow.project_id == project_id, ItemRow.decided)
            decided = dict(session.execute(counted.group_by(ItemRow.stage)).all())
            chosen = select(StageRow).where(StageRow.project_id == project_id).order_by(StageRow.number)
            return [
                StageProgress(row.number, row.opened, row.closed, row.items, decided.get(row.number, 0))
                for row in session.scalars(chosen)
            ]

    def open_next(
        self, project: Project, *, force: bool = False, closing: int | None = None, progress: Progress = lambda *_: None
    ) -> int | None:
        """Close the open stage, which must be `closing` if that is given, and open the next one; None after the last.

        The stage is closed first, so a decision is either in time for the outcome or refused. Then the outcome and the
        new items are made while others go on writing; the new stage is there when all its items are. Where that was
        interrupted, it is done again.
        """
        with self._opening:
            closed = self._close(project, force, closing)
            if closed:
                self._keep_outcome(project, closed)
            if closed == len(project.design.stages):
                return None
            self._open(project, closed + 1, progress)
            return closed + 1

    def _close(self, project: Project, force: bool, closing: int | None) -> int:
        """The number of the last stage, which is closed now; 0 before the first."""
        with self._store.writing() as session:
            lock_project(session, project.id)
            last = last_stage(session, project.id)
            if closing is not None and (last is None or last.number != closing):
                raise ConflictError(f"stage {closing} is not open", fix="reload the page to see which stage is open")
            if last is None:
                return 0
            if last.closed is not None:
                if last.left is not None and last.number == len(project.design.stages):
                    raise ConflictError("all stages of this project are done", fix="export the results")
                return last.number
            undecided = select(func.count()).select_from(ItemRow)
            undecided = undecided.where(
                ItemRow.project_id == project.id, ItemRow.stage == last.number, ~ItemRow.decided
            )
            count = session.scalar(undecided)
            if count and not force:
                raise ConflictError(
                    f"stage {last.number} is not finished: {count} of {last.items} items still need answers",
                    fix="wait for the annotators, or use `force` to close the stage anyway",
                )
            last.closed = time.time()
            return last.number

    def _keep_outcome(self, project: Project, number: int) -> None:
        """Keep the traces that go on after a closed stage, block by block."""
        count = 0
        with self._store.reading() as session, closing(left_traces(session, project, number)) as traces:
            while block := list(islice(traces, TRACES)):
                with self._store.writing() as writing:
                    count += keep_sources(writing, project.id, "stage", str(number + 1), block, count)
        with self._store.writing() as session:
            keep_sources(session, project.id, "stage", str(number + 1), (), count)  # none of an interrupted attempt
            session.get_one(StageRow, (project.id, number)).left = count

    def _open(self, project: Project, number: int, progress: Progress) -> None:
        """Make the items of a stage, and their places, block by block; nobody sees them before the last."""
        with self._store.writing() as session:
            session.execute(delete(ItemRow).where(ItemRow.project_id == project.id, ItemRow.stage == number))
        count = 0
        with (
            self._store.reading() as session,
            closing(traces_of(session, project.id, "stage", str(number))) as traces,
            closing(traces_of(session, project.id, "draft", "")) as drafts,
        ):
            told = _told(traces, source_count(session, project.id, "stage", str(number)), progress)
            made = stages.items(project.design, number, told, drafts=drafts, systems=systems_of(session, project.id))
            written = written_before(session, project, number)
            while block := list(islice(made, BLOCK)):
                with self._store.writing() as writing:
                    insert_items(writing, project.id, number, block, count)
                    insert_authors(writing, project.id, block, written)
                count += len(block)
        with self._store.writing() as session:
            session.add(
                StageRow(project_id=project.id, number=number, opened=time.time(), closed=None, items=count, left=None)
            )
            session.flush()
            if self._store.kind == "postgresql":  # or its plans are those for empty tables
                session.execute(text("ANALYZE annotation_items, annotation_places"))


def _told(traces: Iterable[Trace], total: int, progress: Progress) -> Iterator[Trace]:
    for done, trace in enumerate(traces, start=1):
        yield trace
        progress(done, total)


def left_traces(session: Session, project: Project, number: int) -> Generator[Trace]:
    """The traces that go on after a stage, as its decisions are now. What becomes of one does not depend on others, so
    some are worked on at a time."""
    with (
        closing(traces_of(session, project.id, "stage", str(number))) as traces,
        closing(items_of(session, project.id, number)) as all_items,
    ):
        of_procedure = groupby(all_items, key=lambda item: item.procedure)
        following = next(of_procedure, None)  # items are in the order of the traces, of which some have none
        while block := list(islice(traces, TRACES)):
            items: list[Item] = []
            for trace in block:
                if following is not None and following[0] == trace.id:
                    items += following[1]
                    following = next(of_procedure, None)
            decisions: list[Decision] = []
            for begin in range(0, len(items), BLOCK):
                some = [item.id for item in items[begin : begin + BLOCK]]
                decisions += decisions_of(session, project.id, DecisionRow.item_id.in_(some))
            yield from stages.outcome(project.design, number, block, items, decisions).traces


def stage_outcome(session: Session, project: Project, number: int) -> StageOutcome:
    """What the decisions so far make of a stage."""
    return stages.outcome(
        project.design,
        number,
        traces_of(session, project.id, "stage", str(number)),
        items_of(session, project.id, number),
        decisions_of(session, project.id, of_stage(number)),
    )


def last_stage(session: Session, project_id: str) -> StageRow | None:
    """The stage that was opened last, whether it is open or closed."""
    chosen = select(StageRow).where(StageRow.project_id == project_id)
    return session.scalar(chosen.order_by(StageRow.number.desc()).limit(1))


def stage_rows(project: Project, opened: Sequence[StageProgress]) -> list[dict[str, Any]]:
    """All stages of the design, and how far each has come."""
    known = {one.number: one for one in opened}
    rows = []
    for number, stage in enumerate(project.design.stages, start=1):
        one = known.get(number)
        state = "waiting" if one is None else "open" if one.closed is None else "done"
        counts = {"items": one.items if one else 0, "decided": one.decided if one else 0}
        rows.append({"number": number, "kind": stage.kind, "state": state, **counts})
    return rows


def insert_items(session: Session, project_id: str, stage: int, items: Iterable[Item], begin: int) -> None:
    """Add items with free places; `begin` is the number of the first."""
    rows: list[dict[str, Any]] = []
    places: list[dict[str, Any]] = []
    for number, item in enumerate(items, start=begin):
        key = {"project_id": project_id, "stage": stage}
        rows.append(key | {"id": item.id, "number": number, "record": dumped(item), "decided": False})
        places += [new_place(project_id, stage, item, number, place) for place in range(item.judges)]
    session.connection().execute(insert(ItemRow), rows)
    session.connection().execute(insert(PlaceRow), places)


def new_place(project_id: str, stage: int, item: Item, number: int, place: int) -> dict[str, Any]:
    """A free place of an item: items are worked through one after the other."""
    return {
        "project_id": project_id,
        "item_id": item.id,
        "number": place,
        "stage": stage,
        "position": number * (MAX_JUDGES + 1) + place,
        "apart": item.id if item.apart is None else hashlib.sha256(item.apart.encode()).hexdigest()[:40],
        "holder": None,
        "until": None,
        "decision": None,
    }
