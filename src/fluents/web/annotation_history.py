"""The history of a project: out of a store, and into another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, cast

from pydantic import TypeAdapter
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from fluents.annotation.design import MAX_JUDGES, Role
from fluents.annotation.forms import check_answer, check_blind_pass
from fluents.annotation.history import (
    EXPORT_AGAIN,
    NOT_A_HISTORY,
    VERSION,
    HistoryBlindPass,
    HistoryDecision,
    HistoryEnd,
    HistoryGuideline,
    HistoryHead,
    HistoryItem,
    HistoryLine,
    HistoryMember,
    HistoryStage,
    HistoryTrace,
    SourceRole,
    history_line,
    history_records,
)
from fluents.annotation.items import Decision, DecisionId, Item, is_decided, latest
from fluents.errors import InputError
from fluents.jsonl import wrong_shape_is_input_error
from fluents.web.annotation_authors import insert_authors, written_before
from fluents.web.annotation_projects import insert_project, name_taken
from fluents.web.annotation_records import (
    Project,
    decisions_of,
    escaped,
    items_of,
    keep_sources,
    pseudonym,
    stage_now,
    traces_of,
    unescaped,
)
from fluents.web.annotation_stages import insert_items
from fluents.web.annotation_tables import (
    BlindPassRow,
    DecisionRow,
    GuidelineRow,
    ItemRow,
    MemberRow,
    PlaceRow,
    SourceRow,
    StageRow,
)
from fluents.web.store import Store, new_id

BLOCK = 500
"""Rows that are written at once."""


def history_lines(store: Store, project: Project, *, pseudonymous: bool = False) -> Iterator[bytes]:
    """The file, line by line, of one moment: what changes meanwhile is not in it."""
    count = 0
    with store.reading() as session:
        for record in _records(session, project, pseudonymous):
            count += 1
            yield history_line(record)
    yield history_line(HistoryEnd(lines=count))


def _records(session: Session, project: Project, pseudonymous: bool) -> Iterator[HistoryLine]:
    yield HistoryHead(version=VERSION, created=project.created, design=project.design)
    of_project = GuidelineRow.project_id == project.id
    for one in session.scalars(select(GuidelineRow).where(of_project).order_by(GuidelineRow.version)):
        yield HistoryGuideline(version=one.version, text=unescaped(one.text), created=one.created)
    of_project = MemberRow.project_id == project.id
    for member in session.scalars(select(MemberRow).where(of_project).order_by(MemberRow.number)):
        yield HistoryMember(
            number=member.number,
            name=pseudonym(member.number) if pseudonymous else member.name,
            role=cast(Role, member.role),
            joined=member.joined,
            consented=member.consented,
        )
    of_project = SourceRow.project_id == project.id
    names = select(SourceRow.role, SourceRow.name).where(of_project).distinct()
    for role, name in session.execute(names.order_by(SourceRow.role, SourceRow.name)).all():
        for trace in traces_of(session, project.id, role, name):
            yield HistoryTrace(role=cast(SourceRole, role), name=name, trace=trace)
    of_project = StageRow.project_id == project.id
    for stage in session.scalars(select(StageRow).where(of_project).order_by(StageRow.number)).all():
        yield HistoryStage(number=stage.number, opened=stage.opened, closed=stage.closed)
        yield from (HistoryItem(item=item) for item in items_of(session, project.id, stage.number))
    blind = select(BlindPassRow, MemberRow.number).join(MemberRow).where(BlindPassRow.project_id == project.id)
    for row, number in session.execute(blind.order_by(BlindPassRow.item_id, MemberRow.number)):
        changes = tuple(json.loads(row.changes))
        yield HistoryBlindPass(item=row.item_id, author=pseudonym(number), changes=changes, time=row.time)
    yield from (HistoryDecision(decision=decision) for decision in decisions_of(session, project.id))


# Reading


def read_history(store: Store, lines: Iterable[tuple[str, bytes]], name: str | None = None) -> Project:
    """Add the project of a history to a store, all or nothing; `lines` are as `jsonl.read_lines` gives them.

    Its members have no tokens any more; an invitation for a member lets them in again.
    """
    records = history_records(lines)
    head = next(records, None)
    if not isinstance(head, HistoryHead):
        raise InputError(NOT_A_HISTORY, fix=EXPORT_AGAIN)
    with wrong_shape_is_input_error("not a valid name of a project", "`name`"):
        design = head.design if name is None else head.design.replace(name=name)
    project = Project(new_id(), design.name, head.created, design)
    try:
        with store.writing() as session:
            insert_project(session, project)
            _Reader(session, project.id).read(records)
            _keep_authors(session, project)
    except IntegrityError as error:
        if "annotation_projects" in str(error.orig):
            raise name_taken(project.name) from None
        raise InputError("this history contains the same line twice", fix=EXPORT_AGAIN) from None
    except (SQLAlchemyError, ArithmeticError, ValueError):  # numbers and texts that no database takes
        raise InputError(NOT_A_HISTORY, fix=EXPORT_AGAIN) from None
    return project


def _keep_authors(session: Session, project: Project) -> None:
    """Of the stage that is open: in the others, nobody judges any more."""
    now = stage_now(session, project.id)
    if now is None:
        return
    with wrong_shape_is_input_error(NOT_A_HISTORY, project.name, EXPORT_AGAIN):  # items may ask anything
        written = written_before(session, project, now.number)
        items = items_of(session, project.id, now.number)
        while written and (block := list(islice(items, BLOCK))):
            insert_authors(session, project.id, block, written)


class _Reader:
    """Puts the lines of a history into the tables of one project."""

    def __init__(self, session: Session, project_id: str) -> None:
        self._session, self._project = session, project_id
        self._members: dict[str, str] = {}
        self._guidelines: set[int] = set()
        self._left: dict[int, int] = {}
        self._stage: HistoryStage | None = None
        self._item = lru_cache(BLOCK)(self._read_item)

    def read(self, records: Iterator[HistoryLine]) -> None:
        """All of them, in order; those of a kind that can be many are written together."""
        for kind, group in groupby(records, key=type):
            if kind is HistoryItem:
                self._items(one for one in group if isinstance(one, HistoryItem))
            elif kind is HistoryDecision:
                self._decisions(one for one in group if isinstance(one, HistoryDecision))
            elif kind is HistoryTrace:
                self._traces(one for one in group if isinstance(one, HistoryTrace))
            else:
                for record in group:
                    self._one(record)
        self._fill_places()

    def _one(self, record: HistoryLine) -> None:
        if isinstance(record, HistoryGuideline):
            self._guidelines.add(record.version)
            row: Any = GuidelineRow(version=record.version, text=escaped(record.text), created=record.created)
        elif isinstance(record, HistoryStage):
            left = None if record.closed is None else self._left.get(record.number)
            row = StageRow(number=record.number, opened=record.opened, closed=record.closed, items=0, left=left)
            self._stage = record
        elif isinstance(record, HistoryMember):
            identity = self._members[pseudonym(record.number)] = new_id()
            row = MemberRow(id=identity, token=None, keys="{}", **record.model_dump(exclude={"kind"}))
        elif isinstance(record, HistoryBlindPass):
            row = self._blind_pass(record)
        else:
            raise InputError(NOT_A_HISTORY, fix=EXPORT_AGAIN)
        row.project_id = self._project
        self._session.add(row)
        self._session.flush()

    def _blind_pass(self, record: HistoryBlindPass) -> BlindPassRow:
        self._check_author(record.author)
        changes = [dict(change) for change in record.changes]
        if check_blind_pass(self._item(record.item), changes) != changes:
            raise InputError(
                f"the changes that the member {record.author} wrote before seeing the draft do not match the "
                f"item {record.item!r:.80}",
                fix=EXPORT_AGAIN,
            )
        author = self._members[record.author]
        return BlindPassRow(item_id=record.item, author_id=author, changes=json.dumps(changes), time=record.time)

    def _traces(self, records: Iterator[HistoryTrace]) -> None:
        for (role, name), group in groupby(records, key=lambda one: (one.role, one.name)):
            count = keep_sources(self._session, self._project, role, name, (one.trace for one in group))
            if role == "stage" and name.isdecimal():
                self._left[int(name) - 1] = count

    def _items(self, records: Iterator[HistoryItem]) -> None:
        if self._stage is None:
            raise InputError(NOT_A_HISTORY, fix=EXPORT_AGAIN)
        stage = self._session.get_one(StageRow, (self._project, self._stage.number))
        items = (self._of_stage(one.item) for one in records)
        while block := list(islice(items, BLOCK)):
            insert_items(self._session, self._project, stage.number, block, stage.items)
            stage.items += len(block)
        self._session.flush()

    def _of_stage(self, item: Item) -> Item:
        if self._stage is None or item.stage != self._stage.number or item.judges > MAX_JUDGES:
            raise InputError(NOT_A_HISTORY, fix=EXPORT_AGAIN)
        return item

    def _decisions(self, records: Iterator[HistoryDecision]) -> None:
        while block := [one.decision for one in islice(records, BLOCK)]:
            for one in block:
                self._check(one)
            rows = [
                {
                    "project_id": self._project,
                    "item_id": one.item,
                    "author_id": self._members[one.author],
                    "answer": json.dumps(one.answer),
                    **one.model_dump(exclude={"item", "author", "answer"}),
                }
                for one in block
            ]
            self._session.execute(insert(DecisionRow), rows)

    def _check(self, decision: Decision) -> None:
        """Somebody may have written the file by hand: a decision must be such as the server takes."""
        self._check_author(decision.author)
        if decision.guideline not in self._guidelines:
            raise InputError(
                f"this history contains an answer given with version {decision.guideline} of the guideline, but "
                "does not contain this version",
                fix=EXPORT_AGAIN,
            )
        if decision.undoes is not None:
            TypeAdapter(DecisionId).validate_python(decision.undoes)
        item = self._item(decision.item)
        if (decision.answer or decision.undoes is None) and check_answer(item, decision.answer) != decision.answer:
            what = f"an answer to the item {decision.item!r:.80} does not match its question"
            raise InputError(what, fix=EXPORT_AGAIN)

    def _check_author(self, author: str) -> None:
        if author not in self._members:
            raise InputError(
                f"this history contains an answer by the member {author!r:.80}, but does not list this member",
                fix=EXPORT_AGAIN,
            )

    def _read_item(self, identity: str) -> Item:
        row = self._session.get(ItemRow, (self._project, identity))
        if row is None:
            raise InputError(
                f"this history contains an answer to the item {identity!r:.80}, but does not contain this item",
                fix=EXPORT_AGAIN,
            )
        self._session.expunge(row)
        return Item.model_validate_json(row.record)

    def _fill_places(self) -> None:
        """Let the decisions that count fill places, and mark the items that are decided."""
        by_item: dict[str, list[Decision]] = {}
        for decision in decisions_of(self._session, self._project):
            by_item.setdefault(decision.item, []).append(decision)
        for identity, decisions in by_item.items():
            row = self._session.get_one(ItemRow, (self._project, identity))
            plain = [one for one in latest(decisions) if not one.adjudicates and not one.checks]
            places = self._session.scalars(
                select(PlaceRow)
                .where(PlaceRow.project_id == self._project, PlaceRow.item_id == identity)
                .order_by(PlaceRow.number)
            ).all()
            if len(plain) > len(places):
                what = f"this history contains more answers to the item {identity!r:.80} than its stage allows"
                raise InputError(what, fix=EXPORT_AGAIN)
            for place, decision in zip(places, reversed(plain), strict=False):
                place.holder, place.decision = self._members[decision.author], decision.id
            row.decided = is_decided(Item.model_validate_json(row.record), decisions)
            if row.decided:  # by a ruling: nobody is asked any more
                for place in places[len(plain) :]:
                    self._session.delete(place)
        self._session.flush()
