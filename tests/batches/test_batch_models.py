"""Batch runs with a language model at an endpoint, and with an embedded model: what the replay tracker cannot show."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="needs the extra batch")
pytest.importorskip("pyarrow", reason="needs the extra batch")

from faulty_server import Body, FaultyServer, prompt_of
from fluents.batches import batch
from fluents.batches.workers import WorkerError
from fluents.records import Procedure
from fluents.trackers import open_tracker
from kitchen import lines, menu, served
from scripted import water_heats

Options = dict[str, Any]
TRACK: Options = {"stages": ["segment", "track"], "workers": 1}


class Kitchen:
    """Answers every prompt, and counts how many it is asked at once.

    The first wait until `wanted` are there: so the count does not depend on how fast anybody is.
    """

    def __init__(self, wanted: int, seconds: float = 10.0) -> None:
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
