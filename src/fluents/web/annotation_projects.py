"""Annotation projects: what they are made of, and the versions of their guidelines."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fluents.annotation.design import ProjectDesign
from fluents.annotation.first_questions import Material, check_questions
from fluents.errors import InputError
from fluents.records import Trace
from fluents.web.annotation_records import (
    Project,
    dumped,
    escaped,
    guideline_version,
    keep_sources,
    lock_project,
    project_from,
    project_of,
    unescaped,
)
from fluents.web.annotation_stages import Progress, ProjectStages
from fluents.web.annotation_tables import GuidelineRow, ProjectRow
from fluents.web.store import NotFoundError, Store, new_id, storable

_NEW = "create one with `fluents annotate new`, or choose another `store`"
MAX_SYSTEM_NAME = 100


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
        progress: Progress = lambda *_: None,
    ) -> Project:
        """A new project, with its first stage open. `progress` is told of procedures whose items are made.

        One that could never ask anything is an error, and is not kept.
        """
        if not traces:
            raise InputError(
                "the sources contain no procedures", fix="name a text, file or dataset with at least one procedure"
            )
        for name in systems or {}:
            if not name.isprintable() or len(name) > MAX_SYSTEM_NAME:
                raise InputError(
                    f"invalid name in `system`: {name!r:.120}",
                    fix=f"choose a name of 1 to {MAX_SYSTEM_NAME} printable characters",
                )
        check_questions(design, Material(traces, drafts, systems or {}))
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
        except IntegrityError:
            raise name_taken(design.name) from None
        try:
            ProjectStages(self._store).open_next(project, progress=progress)
        except BaseException:
            with self._store.writing() as session:
                session.execute(delete(ProjectRow).where(ProjectRow.id == project.id))
            raise
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
        names = ", ".join(one.name for one in found)
        if name is None:
            what = "this store contains several projects" if found else "this store contains no project"
            fix = f"choose from: {names}" if found else _NEW
            raise InputError(what, where=self._store.name, fix=fix)
        for one in found:
            if name in (one.name, one.id):
                return one
        raise NotFoundError(
            f"there is no project {name!r:.100} in this store",
            where=self._store.name,
            fix=f"choose from: {names}" if found else _NEW,
        )

    def all(self) -> list[Project]:
        with self._store.reading() as session:
            return [project_from(row) for row in session.scalars(select(ProjectRow).order_by(ProjectRow.created))]

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


def name_taken(name: str) -> InputError:
    return InputError(f"a project with the name {name!r:.200} exists already", fix="choose another `name`")


def insert_project(session: Session, project: Project) -> None:
    """Add a project; its name must be new in the store."""
    if project.name != storable(project.name) or not project.name.isprintable():
        raise InputError("the name of the project contains control characters", fix="choose another `name`")
    row = ProjectRow(id=project.id, name=project.name, created=project.created, design=dumped(project.design))
    session.add(row)
    session.flush()
