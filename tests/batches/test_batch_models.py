"""Batch runs with a language model at an endpoint, and with an embedded model: what the replay tracker cannot show."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="needs the extra batch")
pytest.importorskip("pyarrow", reason="needs the extra batch")

from faulty_server import Body, FaultyServer, prompt_of
from fluents.batches import batch, endpoint_tracker
from fluents.batches.endpoint_tracker import EndpointTracker, LimitedAnswerer
from fluents.batches.workers import WorkerError
from fluents.llm import LanguageModel, Question
from fluents.records import Procedure, StateChange, Trace
from fluents.trackers import open_tracker
from fluents.trackers.concurrent import side_by_side
from fluents.trackers.llm.pipeline import Shots
from fluents.trackers.llm.settings import LlmSettings
from fluents.trackers.llm.tracker import GivenPairs, LlmTracker
from kitchen import dish, lines, menu, served
from scripted import Script, water_heats

Options = dict[str, Any]
TRACK: Options = {"stages": ["segment", "track"], "workers": 1}


class Kitchen:
    """Answers every prompt, and counts how many it is asked at once.

    The first wait until `wanted` are there: so the count does not depend on how fast anybody is.
    """

    def __init__(self, wanted: int, seconds: float = 60.0) -> None:
        self._wanted, self._seconds = wanted, seconds
        self._lock, self._are_there = threading.Lock(), threading.Event()
        self._now = self.most = 0

    def __call__(self, body: Body) -> str:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            if self._now >= self._wanted:
                self._are_there.set()
        if not self._are_there.wait(self._seconds):
            self._are_there.set()  # they never come; the others need not wait
        with self._lock:
            self._now -= 1
        return water_heats(prompt_of(body))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "model_cache" not in request.fixturenames:
        monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("count", [1, 12, 20])
def test_a_worker_sends_as_many_requests_at_once_as_it_may_and_no_more(tmp_path: Path, count: int) -> None:
    """A procedure has two steps, and so two requests at a time: more come only from several procedures."""
    most = min(12, 2 * count)
    kitchen = Kitchen(most)
    with FaultyServer(kitchen) as server:
        options = TRACK | {"model": "any", "base_url": server.base_url, "at_once": 12}
        told = {number: f"Make dish {number}" for number in range(count)}
        report = batch(menu(tmp_path, count, goals=told), tmp_path / "out", **options)
    assert (report.procedures, report.failures) == (count, 0)
    assert kitchen.most == most
    rows = served(tmp_path / "out")
    assert [row.id for row in rows] == [f"dish-{number}" for number in range(count)]
    assert all([change.step for change in row.changes] == [1, 2] for row in rows)


class Turns(threading.BoundedSemaphore):
    """A limit that knows how many wait because of it."""

    waiting = 0
    changed = threading.Condition()

    def __enter__(self, blocking: bool = True, timeout: float | None = None) -> bool:
        if not self.acquire(blocking=False):
            with self.changed:
                Turns.waiting += 1
                self.changed.notify_all()
            self.acquire()
        return True


def test_no_more_questions_are_asked_at_once_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gets an answer until each of ten either asks or has to wait: then three ask, however fast they are."""
    monkeypatch.setattr(endpoint_tracker, "BoundedSemaphore", Turns)
    monkeypatch.setattr(Turns, "waiting", 0)
    asking, found = set[str](), set[int]()

    class Slow:
        def ask(self, question: Question, samples: int = 1) -> list[str]:
            with Turns.changed:
                asking.add(question.prompt)
                Turns.changed.notify_all()
                assert Turns.changed.wait_for(lambda: found or len(asking) + Turns.waiting == 10, timeout=60)
                found.add(len(asking))
                asking.remove(question.prompt)
            return [question.prompt] * samples

    limited = LimitedAnswerer(Slow(), 3)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda number: limited.ask(Question(prompt=str(number))), range(10)))
    assert answers == [[str(number)] for number in range(10)]
    assert max(found) == 3


@pytest.mark.parametrize(("at_once", "count", "threads"), [(2, 20, 4), (40, 20, 8), (40, 3, 3), (4, 20, 8)])
def test_however_many_requests_are_allowed_the_threads_are_limited(
    monkeypatch: pytest.MonkeyPatch, at_once: int, count: int, threads: int
) -> None:
    monkeypatch.setattr(endpoint_tracker, "MAX_THREADS", 8)
    begun: list[int] = []

    def beside(track: Any, procedures: list[Procedure], most: int, listener: Any) -> Iterator[Trace]:
        begun.append(most)
        return side_by_side(track, procedures, most, listener)

    monkeypatch.setattr(endpoint_tracker, "side_by_side", beside)
    script = Script(lambda question: water_heats(question.prompt))
    tracker = EndpointTracker(LlmTracker(LanguageModel(script, "any", at_once)))
    traces = list(tracker.track_many([dish(number) for number in range(count)]))
    assert [trace.id for trace in traces] == [f"dish-{number}" for number in range(count)]
    assert all(trace.changes for trace in traces)
    assert begun == [threads]


def test_procedures_side_by_side_are_asked_about_with_the_examples_and_pairs_of_their_tracker() -> None:
    change = StateChange(step=2, entity="lid", attribute="place", before="off", after="on")
    shown = Trace(procedure=Procedure(id="tea", goal="Tea", steps=("Boil.", "Cover the pot.")), changes=(change,))
    given = Trace(procedure=dish(0), changes=(change,), covered=(2,))
    script = Script(lambda question: water_heats(question.prompt))
    alone = LlmTracker(
        LanguageModel(script, "any"),
        LlmSettings(shots=1),
        shots=Shots([shown], 1, 1, "examples.jsonl"),
        pairs=GivenPairs([given], "pairs.jsonl"),
    )
    beside = EndpointTracker(alone)
    [trace] = beside.track_many([dish(0)])
    assert trace == beside.track(dish(0)) == alone.track(dish(0))
    assert [(found.step, found.entity) for found in trace.changes] == [(2, "lid")]
    assert beside.steps_of(dish(0)) == (2,)
    assert all("Cover the pot." in question.prompt for question in script.asked)


def test_equal_procedures_are_asked_about_once(tmp_path: Path) -> None:
    with FaultyServer(lambda body: water_heats(prompt_of(body))) as server:
        batch(menu(tmp_path, 21), tmp_path / "out", model="any", base_url=server.base_url, **TRACK)
    assert len(server.prompts) == len(set(server.prompts)) == 7 * 4


def test_what_an_endpoint_does_not_answer_is_a_failure_that_a_retry_mends(tmp_path: Path) -> None:
    path, out = menu(tmp_path, 14), tmp_path / "out"
    with FaultyServer(lambda body: water_heats(prompt_of(body))) as server:
        options = TRACK | {"model": "any", "base_url": server.base_url}
        too_long = 413, {"error": {"message": "the prompt is too long"}}
        server.refuse = lambda body: too_long if "omelette" in prompt_of(body) else None
        assert batch(path, out, **options).failures == 2
        failed = {row.id: row.error for row in served(out) if row.error}
        assert failed.keys() == {"dish-2", "dish-9"}
        why = r"track: 2 of 2 steps got no answer: .*the prompt is too long"
        assert all(re.match(why, str(error)) for error in failed.values())
        good = [row for row in served(out) if not row.error]
        asked = len(server.bodies)
        server.refuse = lambda body: None  # noqa: ARG005
        assert batch(path, out, retry_failed=True, **options).failures == 0
        assert all("omelette" in prompt for prompt in server.prompts[asked:])
    rows = served(out)
    assert [row.id for row in rows] == [f"dish-{number}" for number in range(14)]
    assert [row for row in rows if row.id not in failed] == good


def test_an_endpoint_that_is_gone_ends_the_run_and_the_next_one_goes_on(tmp_path: Path) -> None:
    path, out = menu(tmp_path, 10), tmp_path / "out"
    with FaultyServer(lambda body: water_heats(prompt_of(body))) as server:
        options = TRACK | {"model": "any", "base_url": server.base_url, "shard_size": 5}
        server.refuse = lambda body: (401, {"error": {"message": "no"}}) if "jam" in prompt_of(body) else None
        with pytest.raises(WorkerError, match="status 401"):
            batch(path, out, **options)
        assert len(served(out)) == 5
        server.refuse = lambda body: None  # noqa: ARG005
        report = batch(path, out, **options)
    assert (report.procedures, report.failures, report.skipped) == (10, 0, 1)


@pytest.mark.slow
def test_an_embedded_model_tracks_procedures_side_by_side(model_cache: Path, tmp_path: Path) -> None:
    assert model_cache
    procedures = [
        Procedure(id="egg", goal="Boil an egg", steps=("Boil the water.", "Put the egg into the water.")),
        Procedure(id="bread", goal="Toast bread", steps=("Put the bread into the toaster.",)),
    ]
    path = lines(tmp_path / "in.jsonl", *({"id": p.id, "goal": p.goal, "steps": list(p.steps)} for p in procedures))
    report = batch(path, tmp_path / "out", model="tiny", at_once=1, **TRACK)
    assert (report.procedures, report.steps, report.failures) == (2, 3, 0)
    with open_tracker(model="tiny") as tracker:
        alone = [trace.changes for trace in tracker.track_many(procedures)]
    assert [row.changes for row in served(tmp_path / "out")] == alone
    assert all(alone)
    report = batch(path, tmp_path / "beside", model="tiny", **TRACK)
    assert (report.procedures, report.steps, report.failures) == (2, 3, 0)
    assert all(row.changes for row in served(tmp_path / "beside"))
