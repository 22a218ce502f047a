"""Annotation projects: what they are made of, their guideline, and the opening of one stage after the other."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, exists, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fluents import jsonl
from fluents.annotation import stages
from fluents.annotation.design import MAX_JUDGES, ProjectDesign
from fluents.annotation.items import Decision, Item
from fluents.errors import FluentsError, InputError
from fluents.records import Trace
from fluents.web.annotation_tables import (
    DecisionRow,
    GuidelineRow,
    ItemRow,
    MemberRow,
    PlaceRow,
    ProjectRow,
    SourceRow,
    StageRow,
)
from fluents.web.archive import trace_of
from fluents.web.store import NotFoundError, Store, new_id, storable

BLOCK = 500
"""Rows that are written at once."""
MAX_SYSTEM_NAME = 100


class ConflictError(FluentsError):
    """Something that cannot be done now, or not any more: a stage is closed, a place is taken."""


@dataclass(frozen=True)
class Project:
    """A project as the store has it."""

    id: str
    name: str
    created: float
    design: ProjectDesign


@dataclass(frozen=True)
class StageProgress:
    """How far a stage that was opened has come."""

    number: int
    opened: float
    closed: float | None
    items: int
    decided: int


@dataclass(frozen=True)
class Guideline:
    """A version of a project's guideline."""

    version: int
    text: str
    created: float


class Projects:
    """The projects of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Project] = {}

    def create(
        self,
        design: ProjectDesign,
        traces: Sequence[Trace],
        *,
        drafts: Sequence[Trace] = (),
        systems: Mapping[str, Sequence[Trace]] | None = None,
    ) -> Project:
        """A new project, with its first stage open."""
        if not traces:
            raise InputError("a project needs at least one procedure", fix="name a file with procedures")
        for name in systems or {}:
            if not name.isprintable() or len(name) > MAX_SYSTEM_NAME:
                raise InputError(f"a `system` cannot have the name {name!r:.120}", fix="choose a short, plain name")
        project = Project(new_id(), design.name, time.time(), design)
        try:
            with self._store.writing() as session:
                insert_project(session, project)
                keep_sources(session, project.id, "stage", "1", traces)
                keep_sources(session, project.id, "draft", "", drafts)
                for name, predicted in (systems or {}).items():
                    keep_sources(session, project.id, "system", name, predicted)
                session.add(
                    GuidelineRow(project_id=project.id, version=1, text=escaped(design.guideline), created=time.time())
                )
                open_stage(session, project, 1, traces)
        except IntegrityError:
            raise name_taken(design.name) from None
        return project

    def get(self, project_id: str) -> Project:
        """A project; it never changes, so it is read once."""
        if project_id not in self._known:
            with self._store.reading() as session:
                self._known[project_id] = project_of(session, project_id)
        return self._known[project_id]

    def named(self, name: str | None) -> Project:
        """The project of this name; the only one where none is given."""
        found = self.all()
        if name is None and len(found) == 1:
            return found[0]
        names = ", ".join(one.name for one in found) or "none"
        if name is None:
            what = "there are several projects in this store" if found else "there is no project in this store"
            fix = f"name one of them: {names}" if found else "create one with `fluents annotate new`"
            raise InputError(what, where=self._store.name, fix=fix)
        for one in found:
            if name in (one.name, one.id):
                return one
        raise NotFoundError(f"there is no project {name!r:.100} in this store", where=self._store.name, fix=names)

    def all(self) -> list[Project]:
        with self._store.reading() as session:
            return [_project(row) for row in session.scalars(select(ProjectRow).order_by(ProjectRow.created))]

    # Guidelines

    def guideline(self, project_id: str) -> Guideline:
        """The newest version."""
        return self.guidelines(project_id)[-1]

    def guidelines(self, project_id: str) -> list[Guideline]:
        """All versions, oldest first."""
        chosen = select(GuidelineRow).where(GuidelineRow.project_id == project_id).order_by(GuidelineRow.version)
        with self._store.reading() as session:
            return [Guideline(row.version, unescaped(row.text), row.created) for row in session.scalars(chosen)]

    def write_guideline(self, project_id: str, text: str) -> Guideline:
        """A new version. Decisions say which version was there when they were made."""
        with self._store.writing() as session:
            lock_project(session, project_id)
            newest = guideline_version(session, project_id)
            row = GuidelineRow(project_id=project_id, version=newest + 1, text=escaped(text), created=time.time())
            session.add(row)
            return Guideline(row.version, text, row.created)

    # Stages

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

    def open_next(self, project_id: str, *, force: bool = False) -> int | None:
        """Close the open stage and open the next one; None after the last.

        Everything is in one transaction, so a decision is either in time for the outcome or refused.
        """
        with self._store.writing() as session:
            lock_project(session, project_id)
            project = project_of(session, project_id)
            stage = stage_now(session, project_id)
            if stage is None:
                raise ConflictError("all stages of this project are done", fix="export the results")
            left = session.scalar(
                select(func.count()).where(
                    ItemRow.project_id == project_id, ItemRow.stage == stage.number, ~ItemRow.decided
                )
            )
            if left and not force:
                raise ConflictError(
                    f"stage {stage.number} is not finished: {left} of {stage.items} items are undecided",
                    fix="wait for the annotators, or close the stage as it is with `force`",
                )
            outcome = stages.outcome(
                project.design,
                stage.number,
                list(traces_of(session, project_id, "stage", str(stage.number))),
                list(items_of(session, project_id, stage.number)),
                list(decisions_of(session, project_id, of_stage(stage.number))),
            )
            stage.closed = time.time()
            following = stage.number + 1
            keep_sources(session, project_id, "stage", str(following), outcome.traces)
            if following > len(project.design.stages):
                return None
            open_stage(session, project, following, outcome.traces)
            return following


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


# What other parts of the store need inside their own transactions


def name_taken(name: str) -> InputError:
    return InputError(f"there is a project with the name {name!r:.200} already", fix="choose another `name`")


def insert_project(session: Session, project: Project) -> None:
    """Add a project; its name must be new in the store."""
    if project.name != storable(project.name) or not project.name.isprintable():
        raise InputError("the name of the project contains characters that cannot be shown", fix="change the `name`")
    row = ProjectRow(id=project.id, name=project.name, created=project.created, design=dumped(project.design))
    session.add(row)
    session.flush()


def open_stage(session: Session, project: Project, number: int, traces: Sequence[Trace]) -> None:
    """Make the items of a stage, and their places."""
    made = stages.items(
        project.design,
        number,
        traces,
        drafts=traces_of(session, project.id, "draft", ""),
        systems=systems_of(session, project.id),
    )
    count = insert_items(session, project.id, number, made)
    session.add(
        StageRow(project_id=project.id, number=number, opened=time.time(), closed=None, items=count),
    )
    session.flush()


def insert_items(session: Session, project_id: str, stage: int, items: Iterable[Item]) -> int:
    """Add items with free places; returns how many."""
    count = 0
    numbered = enumerate(items)
    while block := list(islice(numbered, BLOCK)):
        rows = [
            {"project_id": project_id, "stage": stage, "id": item.id, "number": number, "record": dumped(item)}
            for number, item in block
        ]
        session.connection().execute(insert(ItemRow), [row | {"decided": False} for row in rows])
        session.connection().execute(
            insert(PlaceRow),
            [
                new_place(project_id, stage, item, number, place)
                for number, item in block
                for place in range(item.judges)
            ],
        )
        count += len(block)
    return count


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


def lock_project(session: Session, project_id: str, *, shared: bool = False) -> None:
    """Keep a stage from being opened or closed meanwhile. SQLite lets one write at a time anyway."""
    chosen = select(ProjectRow.id).where(ProjectRow.id == project_id)
    if session.scalar(chosen.with_for_update(read=shared)) is None:
        raise NotFoundError("there is no such project")


def project_of(session: Session, project_id: str) -> Project:
    row = session.get(ProjectRow, project_id)
    if row is None:
        raise NotFoundError("there is no such project")
    return _project(row)


def stage_now(session: Session, project_id: str) -> StageRow | None:
    """The open stage."""
    return session.scalar(select(StageRow).where(StageRow.project_id == project_id, StageRow.closed.is_(None)))


def guideline_version(session: Session, project_id: str) -> int:
    """The number of the newest version."""
    return session.scalar(select(func.max(GuidelineRow.version)).where(GuidelineRow.project_id == project_id)) or 0


def traces_of(session: Session, project_id: str, role: str, name: str) -> Iterator[Trace]:
    """What enters a stage, the drafts, or what a system predicted."""
    chosen = (
        select(SourceRow.record)
        .where(SourceRow.project_id == project_id, SourceRow.role == role, SourceRow.name == name)
        .order_by(SourceRow.number)
    )
    for record in session.scalars(chosen, execution_options={"yield_per": BLOCK}):
        yield trace_of(record)


def systems_of(session: Session, project_id: str) -> dict[str, list[Trace]]:
    """What each system predicted, by its name."""
    chosen = select(SourceRow.name).where(SourceRow.project_id == project_id, SourceRow.role == "system").distinct()
    names = session.scalars(chosen.order_by(SourceRow.name)).all()
    return {name: list(traces_of(session, project_id, "system", name)) for name in names}


def items_of(session: Session, project_id: str, stage: int) -> Iterator[Item]:
    """The items of a stage, in order."""
    chosen = (
        select(ItemRow.record).where(ItemRow.project_id == project_id, ItemRow.stage == stage).order_by(ItemRow.number)
    )
    for record in session.scalars(chosen, execution_options={"yield_per": BLOCK}):
        yield Item.model_validate_json(record)


def decisions_of(session: Session, project_id: str, *where: ColumnElement[bool]) -> Iterator[Decision]:
    """The decisions of a project, or some of them, in the order in which they came."""
    chosen = select(DecisionRow, MemberRow.number).join(MemberRow).where(DecisionRow.project_id == project_id, *where)
    rows = session.execute(chosen.order_by(DecisionRow.number), execution_options={"yield_per": BLOCK})
    for row, number in rows:
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


def _project(row: ProjectRow) -> Project:
    return Project(row.id, row.name, row.created, ProjectDesign.model_validate_json(row.design))


def keep_sources(session: Session, project_id: str, role: str, name: str, traces: Iterable[Trace]) -> None:
    rows = (
        {"project_id": project_id, "role": role, "name": name, "number": number, "record": jsonl.dumps(trace).decode()}
        for number, trace in enumerate(traces)
    )
    while block := list(islice(rows, BLOCK)):
        session.execute(insert(SourceRow), block)


def dumped(record: Item | ProjectDesign) -> str:
    """JSON without a letter that a database could refuse."""
    return json.dumps(record.model_dump(mode="json", exclude_defaults=True))


def escaped(text: str) -> str:
    return json.dumps(text)


def unescaped(text: str) -> str:
    return str(json.loads(text))
