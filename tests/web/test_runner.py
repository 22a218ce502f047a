"""The worker process: jobs are cancelled at once, and one that crashes, hangs or grows takes nothing else with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("sqlalchemy", reason="the web application: pip install 'fluents[web]'")

from served import replaying, served
from soup import SOUP, TEXT
from sqlalchemy.exc import OperationalError

from fluents.web import runner
from fluents.web.archive import Archive
from fluents.web.jobs import Jobs, TakenJob
from fluents.web.resources import Job
from fluents.web.runner import Broadcast, JobRunner, WorkerLimits
from fluents.web.store import Store
from fluents.web.tables import JobRow
from fluents.web.worker import TrackerChoice

FOREVER = 3600.0
FOREVER_OFTEN = 10**9


class Bench:
    """A runner on a store of its own, whose tracker takes `pause` seconds for a step."""

    def __init__(self, folder: Path, pause: float = 0.0, limits: WorkerLimits | None = None) -> None:
        self.store = Store(folder / "web.sqlite")
        self.jobs, self.archive = Jobs(self.store), Archive(self.store)
        self.choices = replaying(folder, pause).menu.choices
        self._limits = limits or WorkerLimits()
        self.runner = self.new_runner()

    def new_runner(self) -> JobRunner:
        runner = JobRunner(self.jobs, Broadcast(), self.choices, self._limits)
        runner.start()
        return runner

    def add(self, tracker: str = "replay") -> Job:
        document = self.archive.add(SOUP.procedure, b"", None)
        job = self.jobs.add(document, SOUP.procedure, "ann", tracker, {})
        self.runner.wake()
        return job

    def wait(self, job: Job, until: Callable[[Job], bool]) -> Job:
        """Until a job is as a test wants it; however slow the machine is."""
        for _ in range(6000):
            now = self.jobs.get(job.id)
            if until(now):
                return now
            time.sleep(0.02)
        raise AssertionError(now)

    def ended(self, job: Job) -> Job:
        return self.wait(job, lambda now: now.state in ("done", "cancelled", "failed"))

    def working(self, job: Job) -> int:
        """The worker's process id, when it has begun the job."""
        self.wait(job, lambda now: now.state == "running" and self.runner.worker_pid is not None)
        for _ in range(6000):
            with self.store.reading() as session:
                if session.get_one(JobRow, job.id).provenance is not None:
                    break
            time.sleep(0.02)
        found = self.runner.worker_pid
        assert found is not None
        return found

    def close(self) -> None:
        self.runner.close()
        self.store.close()


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A bench as `with_bench` wants it."""
    made = Bench(tmp_path, **getattr(request, "param", {}))
    yield made
    made.close()


def with_bench(**given: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bench", [given], indirect=True, ids=[""])


def test_jobs_run_one_after_the_other_in_one_process_that_stays(bench: Bench) -> None:
    first, second = bench.add(), bench.add()
    assert bench.ended(first).state == "done"
    pid = bench.runner.worker_pid
    assert bench.ended(second).state == "done"
    assert bench.runner.worker_pid == pid
    trace = bench.archive.trace(bench.jobs.get(second.id).trace or "").trace
    assert trace.changes == SOUP.changes
    assert trace.salience  # rated, so that the page can filter at once
    assert trace.clusters


@with_bench(pause=FOREVER)
def test_a_job_that_would_take_hours_is_cancelled_and_the_worker_keeps_its_model(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "CANCEL_PATIENCE", 60)  # however slow the machine is
    job = bench.add()
    pid = bench.working(job)
    bench.runner.cancel(job.id, patience=60)
    assert bench.jobs.get(job.id).state == "cancelled"
    assert bench.runner.worker_pid == pid


def test_a_worker_has_one_second_to_stop_so_that_two_are_enough() -> None:
    """The next test shows that it is killed then; only the promise itself is a matter of time."""
    assert runner.CANCEL_PATIENCE <= 1


@with_bench(pause=FOREVER)
def test_a_worker_that_does_not_answer_is_killed(bench: Bench) -> None:
    job = bench.add()
    pid = bench.working(job)
    os.kill(pid, signal.SIGSTOP)
    bench.runner.cancel(job.id, patience=60)
    assert bench.jobs.get(job.id).state == "cancelled"
    assert bench.runner.worker_pid != pid


@with_bench(pause=FOREVER)
def test_a_queued_job_is_cancelled_without_disturbing_the_one_that_runs(bench: Bench) -> None:
    running, queued = bench.add(), bench.add()
    bench.working(running)
    bench.runner.cancel(queued.id)
    assert bench.jobs.get(queued.id).state == "cancelled"
    assert bench.jobs.get(running.id).state == "running"


@with_bench(pause=0.3)
def test_a_worker_that_is_killed_costs_no_finished_step(bench: Bench) -> None:
    job = bench.add()
    bench.wait(job, lambda now: now.done >= 1)
    pid = bench.runner.worker_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert bench.ended(job).state == "done"
    steps = [event.data["step"] for event in bench.jobs.events(job.id) if event.kind == "step"]
    assert steps == [1, 2, 3, 4]  # each once
    states = [event.data["state"] for event in bench.jobs.events(job.id) if event.kind == "state"]
    assert states == ["queued", "running", "queued", "running", "done"]


@with_bench(pause=FOREVER)
def test_a_worker_that_is_killed_again_and_again_fails_its_job_and_the_next_one_runs(bench: Bench) -> None:
    job = bench.add()
    pid = bench.working(job)
    os.kill(pid, signal.SIGKILL)
    bench.wait(job, lambda now: now.state == "running" and bench.runner.worker_pid not in (None, pid))
    os.kill(bench.runner.worker_pid or 0, signal.SIGKILL)
    failed = bench.ended(job)
    assert failed.state == "failed"
    assert "SIGKILL" in (failed.error or "")
    assert bench.working(bench.add())


@with_bench(pause=FOREVER, limits=WorkerLimits(seconds=0.5))
def test_a_job_has_a_limit_of_time(bench: Bench) -> None:
    failed = bench.ended(bench.add())
    assert (failed.state, failed.error) == ("failed", "the job took more than 0.5 seconds")


@with_bench(limits=WorkerLimits(memory=64))
def test_a_worker_has_a_limit_of_memory(bench: Bench) -> None:
    assert bench.ended(bench.add()).state == "failed"


@with_bench(limits=WorkerLimits(idle=0.1))
def test_a_worker_with_nothing_to_do_ends_and_another_comes_when_there_is(bench: Bench) -> None:
    first = bench.add()
    bench.ended(first)
    for _ in range(6000):
        if bench.runner.worker_pid is None:
            break
        time.sleep(0.02)
    assert bench.runner.worker_pid is None
    assert bench.ended(bench.add()).state == "done"


def test_a_tracker_that_cannot_be_opened_fails_its_job_with_the_reason(bench: Bench) -> None:
    bench.choices["broken"] = TrackerChoice(kind="embedded", model="nowhere/model.gguf")
    failed = bench.ended(bench.add("broken"))
    assert failed.state == "failed"
    assert "model.gguf" in (failed.error or "")
    unknown = bench.ended(bench.add("gone"))
    assert "no tracker 'gone'" in (unknown.error or "")


@with_bench(pause=0.2)
def test_a_runner_that_is_closed_leaves_a_job_that_goes_on_with_the_next(bench: Bench) -> None:
    job = bench.add()
    bench.wait(job, lambda now: now.done >= 1)
    bench.runner.close()
    assert bench.jobs.get(job.id).state == "running"
    bench.runner = bench.new_runner()
    assert bench.ended(job).state == "done"
    steps = [event.data["step"] for event in bench.jobs.events(job.id) if event.kind == "step"]
    assert steps == [1, 2, 3, 4]


def _failing(times: int, then: Callable[..., Any]) -> Callable[..., Any]:
    """`then`, after so many errors of the database."""
    left = iter(range(times))

    def call(*given: Any) -> Any:
        if next(left, None) is not None:
            raise OperationalError("INSERT", {}, Exception("disk I/O error"))
        return then(*given)

    return call


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(runner, "RETRY", 0.01)
    return monkeypatch


def test_jobs_go_on_after_errors_of_the_database(bench: Bench, impatient: pytest.MonkeyPatch) -> None:
    bench.ended(bench.add())
    impatient.setattr(bench.jobs, "take", _failing(3, bench.jobs.take))
    assert bench.ended(bench.add()).state == "done"
    assert bench.runner.trouble is None


@pytest.mark.parametrize("last_words", [0, 1])
def test_a_job_goes_on_when_the_database_does(bench: Bench, impatient: pytest.MonkeyPatch, last_words: int) -> None:
    """Also when not even the end of the job could be kept."""
    impatient.setattr(bench.jobs, "add_step", _failing(1, bench.jobs.add_step))
    for name in ("end", "worker_ended"):
        impatient.setattr(bench.jobs, name, _failing(last_words, getattr(bench.jobs, name)))
    job = bench.add()
    assert bench.ended(job).state == "done"
    steps = [event.data["step"] for event in bench.jobs.events(job.id) if event.kind == "step"]
    assert steps == [1, 2, 3, 4]  # each once


@pytest.mark.parametrize("last_words", [0, 1, 2])
def test_a_job_that_is_cancelled_during_an_error_of_the_database_stays_cancelled(
    bench: Bench, impatient: pytest.MonkeyPatch, last_words: int
) -> None:
    """Also when that could not be kept at first: the job does not run again."""

    def cancel_and_fail(job_id: str, _: object) -> None:
        bench.runner.cancel(job_id, patience=0)
        raise OperationalError("INSERT", {}, Exception("disk I/O error"))

    impatient.setattr(bench.jobs, "add_step", cancel_and_fail)
    impatient.setattr(bench.jobs, "end", _failing(last_words, bench.jobs.end))
    job = bench.add()
    assert bench.ended(job).state == "cancelled"
    states = [event.data["state"] for event in bench.jobs.events(job.id) if event.kind == "state"]
    assert states.count("running") == 1


def test_a_job_that_the_store_cannot_keep_fails_and_the_next_one_runs(
    bench: Bench, impatient: pytest.MonkeyPatch
) -> None:
    with impatient.context() as patch:
        patch.setattr(bench.jobs, "finish", _failing(FOREVER_OFTEN, bench.jobs.finish))
        failed = bench.ended(bench.add())
    assert (failed.state, failed.error) == ("failed", "the store reported an error (OperationalError)")
    assert bench.ended(bench.add()).state == "done"


def test_the_server_says_that_it_cannot_run_jobs_until_it_can(tmp_path: Path, impatient: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "web.sqlite", replaying(tmp_path)) as client:
        document = client.document(TEXT)
        with impatient.context() as patch:
            patch.setattr(Jobs, "take", _failing(FOREVER_OFTEN, Jobs.take))
            job = client.job(document)
            for _ in range(6000):
                answer = client.get("/api/v1/health")
                if answer.status_code == 503:
                    break
                time.sleep(0.02)
            assert answer.json()["error"] == "the server cannot run jobs: OperationalError"
            assert answer.json()["fix"]
        *_, last = client.events(job)
        assert last.data["state"] == "done"
        assert client.call("GET", "/health")["status"] == "ok"


def test_a_runner_whose_thread_has_ended_says_so(bench: Bench) -> None:
    assert bench.runner.trouble is None
    bench.runner.close()
    assert "has ended" in (bench.runner.trouble or "")


@with_bench(pause=FOREVER)
def test_a_job_is_cancelled_at_the_moment_when_it_is_taken(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.ended(bench.add("gone"))
    take, cancelling = bench.jobs.take, []

    def take_slowly() -> TakenJob | None:
        job = take()
        if job is not None:
            cancelling.append(threading.Thread(target=bench.runner.cancel, args=(job.id, 60.0)))
            cancelling[0].start()
            cancelling[0].join(timeout=0.5)  # in which it would have found nothing to cancel
        return job

    monkeypatch.setattr(bench.jobs, "take", take_slowly)
    job = bench.add()
    assert bench.ended(job).state == "cancelled"
    cancelling[0].join()


def test_a_worker_ends_with_whoever_started_it() -> None:
    worker = "[sys.executable, '-m', 'fluents.web.worker']"
    code = f"import subprocess, sys; print(subprocess.Popen({worker}, stdin=-1, stdout=-1).pid)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    pid = int(done.stdout)
    for _ in range(3000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
            return
        time.sleep(0.02)
    raise AssertionError("the worker is still there")
