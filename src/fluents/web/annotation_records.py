"""What the parts of an annotation project's store share: rows as records of the library, inside a transaction."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Executable, bindparam, delete, exists, func, insert, select
from sqlalchemy.orm import Session

from fluents import jsonl
from fluents.annotation.design import ProjectDesign
from fluents.annotation.items import Decision, Item
from fluents.errors import FluentsError
from fluents.records import Trace
from fluents.web.annotation_tables import (
    DecisionRow,
    GuidelineRow,
    ItemRow,
    MemberRow,
    ProjectRow,
    SourceRow,
    StageRow,
)
from fluents.web.archive import trace_of
from fluents.web.store import NotFoundError, storable

BLOCK = 500
"""Rows that are read or written at once."""


class ConflictError(FluentsError):
    """Something that cannot be done now, or not any more: a stage is closed, a place is taken."""


@dataclass(frozen=True)
class Project:
    """A project as the store has it."""

    id: str
    name: str
    created: float
    design: ProjectDesign


def lock_project(session: Session, project_id: str, *, shared: bool = False) -> None:
    """Keep a stage from being opened or closed meanwhile. SQLite lets one write at a time anyway."""
    chosen = select(ProjectRow.id).where(ProjectRow.id == project_id)
    if session.scalar(chosen.with_for_update(read=shared)) is None:
        raise NotFoundError("this project no longer exists", fix="ask the person who runs the server")


def project_of(session: Session, project_id: str) -> Project:
    row = session.get(ProjectRow, project_id)
    if row is None:
        raise NotFoundError("this project no longer exists", fix="ask the person who runs the server")
    return project_from(row)


def item_of(session: Session, project_id: str, item_id: str) -> Item:
    row = session.get(ItemRow, (project_id, item_id))
    if row is None:
        raise NotFoundError("this project has no item with this id", fix="continue with the next question")
    return Item.model_validate_json(row.record)


def stage_now(session: Session, project_id: str) -> StageRow | None:
    """The open stage."""
    return session.execute(_OPEN_STAGE, {"project": project_id}).scalar_one_or_none()


# Built once, as every query of a request that many people send should be: that takes longer than running it.
_OPEN_STAGE = select(StageRow).where(StageRow.project_id == bindparam("project"), StageRow.closed.is_(None))


def guideline_version(session: Session, project_id: str) -> int:
    """The number of the newest version."""
    return session.scalar(select(func.max(GuidelineRow.version)).where(GuidelineRow.project_id == project_id)) or 0


def _streamed(session: Session, chosen: Executable) -> Iterator[Any]:
    """The rows of a query, some at a time; the query ends with the generator, also if that is given up."""
    with closing(session.execute(chosen, execution_options={"yield_per": BLOCK})) as rows:
        yield from rows


def traces_of(session: Session, project_id: str, role: str, name: str) -> Generator[Trace]:
    """What enters a stage, the drafts, or what a system predicted."""
    chosen = (
        select(SourceRow.record)
        .where(SourceRow.project_id == project_id, SourceRow.role == role, SourceRow.name == name)
        .order_by(SourceRow.number)
    )
    for (record,) in _streamed(session, chosen):
        yield trace_of(record)


def source_count(session: Session, project_id: str, role: str, name: str) -> int:
    """How many traces there are of these."""
    key = {"project_id": project_id, "role": role, "name": name}
    return session.scalar(select(func.count()).select_from(SourceRow).filter_by(**key)) or 0


def systems_of(session: Session, project_id: str) -> dict[str, list[Trace]]:
    """What each system predicted, by its name."""
    chosen = select(SourceRow.name).where(SourceRow.project_id == project_id, SourceRow.role == "system").distinct()
    names = session.scalars(chosen.order_by(SourceRow.name)).all()
    return {name: list(traces_of(session, project_id, "system", name)) for name in names}


def items_of(session: Session, project_id: str, stage: int, *where: ColumnElement[bool]) -> Generator[Item]:
    """The items of a stage, or some of them, in order."""
    chosen = (
        select(ItemRow.record)
        .where(ItemRow.project_id == project_id, ItemRow.stage == stage, *where)
        .order_by(ItemRow.number)
    )
    for (record,) in _streamed(session, chosen):
        yield Item.model_validate_json(record)


def decisions_of(session: Session, project_id: str, *where: ColumnElement[bool]) -> Generator[Decision]:
    """The decisions of a project, or some of them, in the order in which they came."""
    chosen = select(DecisionRow, MemberRow.number).join(MemberRow).where(DecisionRow.project_id == project_id, *where)
    for row, number in _streamed(session, chosen.order_by(DecisionRow.number)):
        yield decision_of(row, number)


def of_stage(stage: int) -> ColumnElement[bool]:
    """Of decisions: those on the items of this stage."""
    return exists().where(
        ItemRow.project_id == DecisionRow.project_id, ItemRow.id == DecisionRow.item_id, ItemRow.stage == stage
    )


def decision_of(row: DecisionRow, author: int) -> Decision:
    """A decision as the library has it: it knows authors by their pseudonyms alone."""
    return Decision(
        id=row.id,
        item=row.item_id,
        author=pseudonym(author),
        answer=json.loads(row.answer),
        time=row.time,
        seconds=row.seconds,
        undoes=row.undoes,
        adjudicates=row.adjudicates,
        checks=row.checks,
        guideline=row.guideline,
    )


def pseudonym(number: int) -> str:
    """What others see of a member: A3 joined as the third."""
    return f"A{number}"


def project_from(row: ProjectRow) -> Project:
    return Project(row.id, row.name, row.created, ProjectDesign.model_validate_json(row.design))


def keep_sources(
    session: Session, project_id: str, role: str, name: str, traces: Iterable[Trace], begin: int = 0
) -> int:
    """Keep traces from a number on, in the place of those that were there; returns how many."""
    key = {"project_id": project_id, "role": role, "name": name}
    session.execute(delete(SourceRow).filter_by(**key).where(SourceRow.number >= begin))
    rows = (
        key | {"number": number, "procedure": storable(trace.id), "record": jsonl.dumps(trace).decode()}
        for number, trace in enumerate(traces, start=begin)
    )
    count = 0
    while block := list(islice(rows, BLOCK)):
        session.connection().execute(insert(SourceRow), block)
        count += len(block)
    return count


def dumped(record: Item | ProjectDesign) -> str:
    """JSON without a letter that a database could refuse."""
    return json.dumps(record.model_dump(mode="json", exclude_defaults=True))


def escaped(text: str) -> str:
    return json.dumps(text)


def unescaped(text: str) -> str:
    return str(json.loads(text))
