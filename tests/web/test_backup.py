"""A backup holds everything, of either kind of store for either, and one that is not whole changes nothing."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("sqlalchemy", reason="the web application: pip install 'fluents[web]'")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from soup import SOUP, TEXT
from sqlalchemy import delete, update

from fluents.errors import InputError
from fluents.web import backup
from fluents.web.archive import Archive
from fluents.web.jobs import Jobs, StepResult
from fluents.web.resources import Restored
from fluents.web.store import Store
from fluents.web.tables import ChangeRow, CorrectionRow, TraceRow
from fluents.web.trace_resources import CorrectedWords, CorrectionGiven


def _fill(store: Store) -> str:
    """One of everything; returns the id of the trace."""
    archive, jobs = Archive(store), Jobs(store)
    document = archive.add(SOUP.procedure, f"{TEXT}\x00é".encode(), "soup.md", ["odd"])
    archive.correct_steps(document, "Soup", None)
    done, left = (jobs.add(document, SOUP.procedure, "ann", "replay", {"seed": 1}) for _ in range(2))
    jobs.take()
    jobs.add_step(done.id, StepResult(1, SOUP.at(1), [0], (), None))
    jobs.finish(done.id, SOUP)
    trace = jobs.get(done.id).trace
    assert trace is not None
    archive.correct(trace, CorrectionGiven(verdict="wrong", position=0))
    assert jobs.get(left.id).state == "queued"
    return trace


def _rows(store: Store) -> list[Any]:
    """All there is, in an order that does not depend on the database."""
    lines = gzip.decompress(b"".join(backup.written(store))).splitlines()
    return sorted(lines, key=lambda line: json.dumps(json.loads(line), sort_keys=True))


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "other.sqlite") as opened:
        yield opened


def test_a_store_is_restored_without_loss_into_the_other_kind_and_back(store: Store, other: Store) -> None:
    trace = _fill(store)
    Jobs(store).cancel_queued(next(job.id for job in Jobs(store).latest("queued")))
    restored = backup.restore(other, io.BytesIO(b"".join(backup.written(store))))
    assert (restored.documents, restored.jobs, restored.traces, restored.corrections) == (1, 2, 1, 1)
    assert _rows(other) == _rows(store)
    assert Archive(other).trace(trace) == Archive(store).trace(trace)
    Archive(store).delete_document(Archive(store).documents().items[0].id)
    backup.restore(store, io.BytesIO(b"".join(backup.written(other))))
    assert _rows(store) == _rows(other)


def test_what_is_there_already_stays_and_what_was_deleted_comes_back(store: Store) -> None:
    trace = _fill(store)
    saved = b"".join(backup.written(store))
    before = _rows(store)
    again = backup.restore(store, io.BytesIO(saved))
    assert (again.documents, again.jobs, again.traces, again.corrections) == (0, 0, 0, 0)
    assert _rows(store) == before
    Archive(store).delete_trace(trace)
    assert backup.restore(store, io.BytesIO(saved)).traces == 1
    assert len(Archive(store).trace(trace).corrections) == 1
    assert Archive(store).search("soup").total == 1


def _changed(number: int) -> CorrectedWords:
    return CorrectedWords(entity=f"ladle{number}", attribute="place", before="drawer", after="pot")


def _judge(store: Store, trace: str, verdict: str, position: int | None = None, words: int | None = None) -> None:
    step, new = 1 if verdict == "added" else None, None if words is None else _changed(words)
    given = {"verdict": verdict, "position": position, "step": step, "words": new}
    Archive(store).correct(trace, CorrectionGiven.model_validate(given))


def _sent(store: Store, other: Store) -> Restored:
    return backup.restore(other, io.BytesIO(b"".join(backup.written(store))))


def _left(store: Store, trace: str) -> list[str]:
    """The entities of a trace as people left it, after a check that the store knows all of them."""
    kept = Archive(store).trace(trace)
    assert kept.summary.corrections == len(kept.corrections)
    [exported] = Archive(store).corrected_traces()
    assert exported.changes == kept.corrected.changes
    left = [change.entity for change in kept.corrected.changes]
    assert sorted(one.entity for one in Archive(store).search(limit=100).items) == sorted(left)
    return left


def test_a_backup_and_then_a_newer_one_of_the_same_store(store: Store, other: Store) -> None:
    _, [trace] = Archive(store).add_traces([SOUP], "soup.jsonl")
    _sent(store, other)
    _judge(store, trace, "edited", 2, words=1)
    _judge(store, trace, "added", words=2)
    _judge(store, trace, "edited", 6, words=3)
    assert _sent(store, other).corrections == 3
    assert Archive(other).trace(trace) == Archive(store).trace(trace)
    assert _left(other, trace) == _left(store, trace)
    assert Archive(other).search("ladle3").total == 1
    _judge(other, trace, "wrong", 0)
    assert len(Archive(other).trace(trace).corrections) == 4
    again = _sent(store, other)
    assert (again.corrections, _left(other, trace)) == (0, _left(store, trace)[1:])


def test_two_stores_that_judged_the_same_trace_are_put_together(store: Store, other: Store) -> None:
    _, [trace] = Archive(store).add_traces([SOUP], "soup.jsonl")
    _judge(store, trace, "added", words=1)  # which both stores have
    _sent(store, other)
    for one, number in ((store, 2), (other, 4)):
        _judge(one, trace, "wrong", number)
        _judge(one, trace, "added", words=number)
        _judge(one, trace, "added", words=number + 1)
        _judge(one, trace, "edited", 7, words=number + 10)
    assert _sent(store, other).corrections == 4
    assert _left(other, trace) == [
        "leeks",
        "sink",
        "ladle1",
        "ladle14",
        "ladle5",
        "ladle12",
        "ladle3",
        "butter",
        "soup",
    ]
    assert _sent(other, store).corrections == 4  # whose positions are others here
    assert sorted(_left(store, trace)) == sorted(_left(other, trace))
    assert [_sent(store, other).corrections, _sent(other, store).corrections] == [0, 0]


def test_a_store_whose_trace_does_not_count_its_corrections_is_repaired(store: Store, other: Store) -> None:
    """As an earlier version left it, which restored corrections without a look at the trace."""
    _, [trace] = Archive(store).add_traces([SOUP], "soup.jsonl")
    _judge(store, trace, "edited", 2, words=1)
    _sent(store, other)
    with other.writing() as session:
        session.get_one(TraceRow, trace).corrections = 0
        session.execute(delete(ChangeRow))
    _judge(other, trace, "right", 0)
    assert Archive(other).trace(trace).summary.corrections == 2
    _sent(store, other)
    assert "ladle1" in _left(other, trace)


def test_a_backup_that_judges_a_change_that_its_trace_does_not_have_is_refused(store: Store, other: Store) -> None:
    _, [trace] = Archive(store).add_traces([SOUP], "soup.jsonl")
    _sent(store, other)
    _judge(store, trace, "wrong", 0)
    with store.writing() as session:
        session.execute(update(CorrectionRow).values(position=99))
    with pytest.raises(InputError, match="not a complete backup"):
        _sent(store, other)
    assert Archive(other).trace(trace).corrections == []


def test_a_job_that_waited_is_cancelled_and_can_be_resumed(store: Store, other: Store) -> None:
    _fill(store)
    backup.restore(other, io.BytesIO(b"".join(backup.written(store))))
    [left] = Jobs(other).latest("cancelled")
    assert Jobs(other).resume(left.id).state == "queued"


def test_a_backup_that_was_cut_off_changes_nothing(store: Store, other: Store) -> None:
    _fill(store)
    whole = b"".join(backup.written(store))
    lines = gzip.decompress(whole).splitlines(keepends=True)
    cut = [
        whole[:-20],
        whole[: len(whole) // 2],
        gzip.compress(b"".join(lines[:-1])),
        gzip.compress(b"".join(lines)[:-9]),
    ]
    for part in cut:
        with pytest.raises(InputError, match="not a complete backup"):
            backup.restore(other, io.BytesIO(part))
    assert Archive(other).documents().total == 0


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04", gzip.compress(b""), gzip.compress(b"[1]\n"), gzip.compress(b'{"fluents-backup": 2}\n')],
)
def test_what_is_no_backup_is_refused(other: Store, content: bytes) -> None:
    with pytest.raises(InputError):
        backup.restore(other, io.BytesIO(content))


VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.lists(st.integers(), max_size=2),
    st.just({"base64": "!"}),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_a_backup_with_any_value_changed_is_read_or_refused_and_the_store_still_works(
    other: Store, tmp_path: Path, data: st.DataObject
) -> None:
    file = tmp_path / "whole.gz"
    if not file.exists():
        with Store(tmp_path / "filled.sqlite") as filled:
            _fill(filled)
            file.write_bytes(b"".join(backup.written(filled)))
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    row = data.draw(st.sampled_from(lines[1:-1]))["row"]
    row[data.draw(st.sampled_from(sorted(row)))] = data.draw(VALUES)
    changed = gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    archive, jobs = Archive(other), Jobs(other)
    try:
        backup.restore(other, io.BytesIO(changed))
    except InputError:
        return
    archive.search("soup")
    for document in archive.documents().items:
        archive.document(document.id)
        for job in jobs.latest(document_id=document.id):
            jobs.events(job.id)
            jobs.trace(job.id)
        for trace in archive.traces_of(document.id):
            assert archive.trace(trace.id).corrected
        archive.delete_document(document.id)
