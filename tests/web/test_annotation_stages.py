"""Opening stages: what goes on, what an interruption leaves, and that others can write meanwhile."""

from __future__ import annotations

import os
from itertools import islice
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("sqlalchemy", reason="the web application: pip install 'fluents[web]'")

from sqlalchemy import func, select

from annotated import new_decision
from fluents.annotation.design import ProjectDesign, StageDesign
from fluents.annotation.export import written
from fluents.records import Procedure, StateChange, Trace
from fluents.web import annotation_stages
from fluents.web.annotation_decisions import Decisions, Judgement
from fluents.web.annotation_export import results
from fluents.web.annotation_members import Members
from fluents.web.annotation_places import Places
from fluents.web.annotation_projects import Projects
from fluents.web.annotation_records import ConflictError, Project
from fluents.web.annotation_stages import ProjectStages, left_traces, stage_outcome
from fluents.web.annotation_tables import ItemRow, SourceRow
from fluents.web.store import Store

STEPS = ("Fill the pot.", "Heat the pot.", "Empty the pot.")


def traces(count: int) -> list[Trace]:
    """Procedures with two changes each; every fifth has none."""
    return [
        Trace(
            procedure=Procedure(id=f"pot-{number}", goal=f"Pot {number}", steps=STEPS),
            changes=()
            if number % 5 == 4
            else (
                StateChange(step=1, entity="pot", attribute="fullness", before="empty", after="full"),
                StateChange(step=2, entity="pot", attribute="temperature", before="cold", after="hot"),
            ),
        )
        for number in range(count)
    ]


def project(store: Store, count: int = 50) -> Project:
    stages = (StageDesign(kind="vet", judges=1), StageDesign(kind="clean-changes", judges=1))
    return Projects(store).create(ProjectDesign(name="Pots", stages=stages), traces(count))


def decide(store: Store, made: Project, most: int | None = None) -> None:
    """Somebody finds every change of a temperature wrong."""
    members, places = Members(store), Places(store)
    member, _ = members.join(members.invite(made.id), "Ada")
    decisions = Decisions(store, places)
    for lease in islice(iter(lambda: places.next(member), None), most):
        valid = lease.item.payload["change"]["attribute"] != "temperature"
        decisions.give(member, Judgement(new_decision(), lease.item.id, {"valid": valid}))


def count(store: Store, row: Any, **where: Any) -> int:
    with store.reading() as session:
        return session.scalar(select(func.count()).select_from(row).filter_by(**where)) or 0


def test_traces_that_are_worked_on_some_at_a_time_are_those_of_the_whole_stage(store: Store) -> None:
    made = project(store)
    decide(store, made, 33)
    with store.reading() as session:
        whole = stage_outcome(session, made, 1).traces
        assert list(left_traces(session, made, 1)) == list(whole)
    assert len(whole) == 50
    assert sum(len(trace.changes) for trace in whole) < 80


def test_an_interrupted_opening_is_done_again_and_nothing_is_there_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, stages = project(store), ProjectStages(store)
    decide(store, made)
    insert, calls = annotation_stages.insert_items, []

    def fail(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        insert(*given)

    monkeypatch.setattr(annotation_stages, "BLOCK", 10)
    monkeypatch.setattr(annotation_stages, "insert_items", fail)
    with pytest.raises(KeyboardInterrupt):
        stages.open_next(made)
    assert count(store, ItemRow, project_id=made.id, stage=2) == 10  # there, but nobody sees them
    assert [one.closed is None for one in stages.progress(made.id)] == [False]
    members = Members(store)
    member, _ = members.join(members.invite(made.id), "Ben")
    assert Places(store).next(member) is None
    assert len(list(results(store, made))) == 50

    again = ProjectStages(store)  # as after a restart
    assert again.open_next(made) == 2
    assert count(store, ItemRow, project_id=made.id, stage=2) == 40
    assert count(store, SourceRow, project_id=made.id, role="stage", name="2") == 50
    assert Places(store).next(member) is not None


def test_a_project_whose_first_stage_fails_is_not_there(store: Store) -> None:
    from fluents.errors import InputError

    twice = [*traces(2), *traces(1)]
    with pytest.raises(InputError, match="same id"):
        Projects(store).create(ProjectDesign(name="Pots", stages=(StageDesign(kind="vet"),)), twice)
    assert Projects(store).all() == []


def test_after_the_last_stage_there_is_none(store: Store) -> None:
    made, stages = project(store, 4), ProjectStages(store)
    assert stages.open_next(made, force=True) == 2
    assert stages.open_next(made, force=True) is None
    with pytest.raises(ConflictError, match="done"):
        stages.open_next(made)


def test_exports_begin_before_everything_is_read(store: Store) -> None:
    made = project(store, 200)
    taken = 0

    def counted() -> Any:
        nonlocal taken
        for trace in results(store, made):
            taken += 1
            yield trace

    first = next(iter(written(counted, "fluents")))
    assert first.startswith(b'{"fluents":1')
    assert taken == 1
    for format in ("openpi-c", "openpi2"):
        taken = 0
        parts = written(counted, "openpi-c" if format == "openpi-c" else "openpi2")
        next(parts)
        assert taken <= 2
