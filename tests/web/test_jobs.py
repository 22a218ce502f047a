"""Jobs in both kinds of store: fair turns, events in order, and nothing lost when something ends."""

from __future__ import annotations

import os
from collections import Counter

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("sqlalchemy", reason="the web application: pip install 'fluents[web]'")

from hypothesis import given
from hypothesis import strategies as st
from soup import SOUP

from fluents.records import Provenance
from fluents.web.archive import Archive
from fluents.web.jobs import Jobs, JobStateError, StepResult, TooManyJobsError, Waiting, turns
from fluents.web.resources import Job
from fluents.web.store import NotFoundError, Store


@pytest.fixture
def jobs(store: Store) -> Jobs:
    return Jobs(store, most=3, most_of_all=5)


@pytest.fixture
def document(store: Store) -> str:
    return Archive(store).add(SOUP.procedure, b"", None)


def _added(jobs: Jobs, document: str, client: str = "ann") -> Job:
    return jobs.add(document, SOUP.procedure, client, "replay", {"seed": 1})


def _step(number: int) -> StepResult:
    changes = SOUP.at(number)
    sure = [place for place, change in enumerate(changes) if (change.confidence or 0) >= 0.5]
    return StepResult(number, changes, sure, (), 1.5)


WAITING = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), max_size=12)


@given(WAITING, st.dictionaries(st.sampled_from("abc"), st.floats(0, 9)))
def test_clients_take_turns(queued: list[tuple[str, int]], last: dict[str, float]) -> None:
    waiting = [Waiting(f"{number}", client, created) for number, (client, created) in enumerate(queued)]
    order = turns(waiting, last)
    assert sorted(order) == sorted(job.id for job in waiting)
    client_of = {job.id: job.client for job in waiting}
    left = Counter(client_of.values())
    run: Counter[str] = Counter()
    for job in order:
        # Nobody who still waits is two turns behind whoever is served.
        assert all(run[client_of[job]] <= run[other] for other in left if left[other])
        run[client_of[job]] += 1
        left[client_of[job]] -= 1
    for client in "abc":
        ages = [job.created for one in order for job in waiting if job.id == one and job.client == client]
        assert ages == sorted(ages)


def test_one_who_asks_for_much_does_not_keep_others_waiting(jobs: Jobs, document: str) -> None:
    many = [_added(jobs, document, "ann") for _ in range(3)]
    one = _added(jobs, document, "bob")
    assert (many[2].ahead, one.ahead) == (2, 1)
    order = []
    while (taken := jobs.take()) is not None:
        order.append(taken.id)
        jobs.end(taken.id, "failed")
    assert order == [many[0].id, one.id, many[1].id, many[2].id]


def test_a_job_from_the_queue_to_its_trace(jobs: Jobs, document: str, store: Store) -> None:
    job = _added(jobs, document)
    taken = jobs.take()
    assert taken is not None
    assert (taken.id, taken.done, taken.procedure) == (job.id, None, SOUP.procedure)
    assert jobs.take() is None
    jobs.begin(job.id, Provenance(tracker="replay"))
    for number in range(1, 5):
        jobs.add_step(job.id, _step(number))
    jobs.warn(job.id, "this is no soup")
    jobs.finish(job.id, SOUP)
    events = jobs.events(job.id)
    assert [event.number for event in events] == list(range(1, 9))
    assert [event.kind for event in events] == ["state", "state", *["step"] * 4, "warning", "state"]
    assert [event.data["state"] for event in events if event.kind == "state"] == ["queued", "running", "done"]
    assert [len(event.data["changes"]) for event in events if event.kind == "step"] == [1, 2, 1, 1]  # the sure ones
    assert events[3].data | {"changes": []} == {
        "step": 2,
        "text": "Fry the leeks in butter.",
        "changes": [],
        "rejects": [],
        "done": 2,
        "steps": 4,
        "seconds_left": 1.5,
    }
    assert jobs.events(job.id, after=7) == events[7:]
    trace = jobs.get(job.id).trace
    assert trace is not None
    assert Archive(store).trace(trace).trace == SOUP


def test_a_job_of_a_server_that_was_killed_goes_on_from_its_next_step(jobs: Jobs, document: str) -> None:
    job = _added(jobs, document)
    jobs.take()
    jobs.begin(job.id, SOUP.provenance)
    jobs.add_step(job.id, _step(1))
    jobs.add_step(job.id, _step(2))
    assert jobs.recover() == 1
    taken = jobs.take()
    assert taken is not None
    assert taken.done is not None
    assert taken.done.covered_steps == (1, 2)
    assert taken.done.changes == SOUP.changes[:4]  # all of them: the next steps build on them
    assert taken.done.provenance == SOUP.provenance
    assert len(jobs.trace(job.id).changes) == 3  # as the trace will hold them


def test_a_worker_that_ends_costs_a_second_try_and_then_the_job(jobs: Jobs, document: str) -> None:
    job = _added(jobs, document)
    jobs.take()
    jobs.worker_ended(job.id, "killed")
    assert jobs.get(job.id).state == "queued"
    jobs.take()
    jobs.add_step(job.id, _step(1))  # which shows that it is worth while
    jobs.worker_ended(job.id, "killed")
    assert jobs.get(job.id).state == "queued"
    jobs.take()
    jobs.worker_ended(job.id, "killed")
    found = jobs.get(job.id)
    assert (found.state, found.error, found.done) == ("failed", "killed", 1)
    assert jobs.resume(job.id).state == "queued"


def test_the_queue_has_an_end(jobs: Jobs, document: str) -> None:
    for client in ("ann", "ann", "ann"):
        _added(jobs, document, client)
    with pytest.raises(TooManyJobsError):
        _added(jobs, document, "ann")
    _added(jobs, document, "bob")
    _added(jobs, document, "bob")
    with pytest.raises(TooManyJobsError):
        _added(jobs, document, "cid")


def test_only_what_was_cancelled_or_failed_is_resumed(jobs: Jobs, document: str) -> None:
    job = _added(jobs, document)
    with pytest.raises(JobStateError):
        jobs.resume(job.id)
    assert jobs.cancel_queued(job.id)
    assert not jobs.cancel_queued(job.id)
    assert jobs.resume(job.id).state == "queued"


def test_a_job_whose_document_is_deleted_ends_without_a_word(jobs: Jobs, document: str, store: Store) -> None:
    job = _added(jobs, document)
    jobs.take()
    Archive(store).delete_document(document)
    jobs.end(job.id, "cancelled")
    jobs.worker_ended(job.id, "killed")
    with pytest.raises(NotFoundError):
        jobs.add_step(job.id, _step(1))
