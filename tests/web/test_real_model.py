"""The web application with a real model, and what it exports as data for a real training."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from served import Client, replaying, served
from soup import TEXT

from fluents.segmentation import segment
from fluents.trackers import track
from fluents.web.application import WebSettings
from fluents.web.tracker_choices import tracker_menu

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("model_cache")
def test_a_cancelled_job_of_the_embedded_model_goes_on_and_says_what_the_command_line_says(tmp_path: Path) -> None:
    settings = WebSettings(menu=tracker_menu("tiny"))
    with served(tmp_path / "web.sqlite", settings) as client:
        job = client.job(client.document(TEXT), min_confidence=0)
        for event in client.events(job):
            if event.kind == "step" and event.data["step"] == 1:
                cancelled = client.call("POST", f"/jobs/{job['id']}/cancel", status=200)
        if cancelled["state"] == "cancelled":  # and not done, on a machine that is faster than its network
            client.call("POST", f"/jobs/{job['id']}/resume", status=202)
        events = list(client.events(job))
        assert [event.data["step"] for event in events if event.kind == "step"] == [1, 2, 3, 4]
        first, done = next(event.data for event in events if event.kind == "step"), events[-1].data
        view = client.call("GET", f"/traces/{done['trace']}")
        assert view["provenance"]["tracker"] == "transcript"
        assert view["has_confidence"]
    alone = track(segment(TEXT), model="tiny", min_confidence=0)
    # Steps after the cancellation may differ in a last bit: the model read the earlier ones as a whole.
    assert [change["entity"] for change in first["changes"]] == [change.entity for change in alone.at(1)]


@pytest.mark.usefixtures("model_cache")
@pytest.mark.filterwarnings("ignore")  # deprecations inside torch and transformers are theirs to mend
def test_exported_corrections_train_an_adapter(tmp_path: Path) -> None:
    if os.environ.get("CI") != "true":
        pytest.importorskip("peft", reason="training: pip install 'fluents[train]'")
    from fluents.training.adapter import train_adapter

    with served(tmp_path / "web.sqlite", replaying(tmp_path)) as client:
        _judge_one(client)
        (tmp_path / "mine.jsonl").write_bytes(client.get("/api/v1/corrections/export").content)
    adapter = train_adapter(data=[tmp_path / "mine.jsonl"], out=tmp_path / "run", epochs=1)
    assert adapter.stat().st_size > 1000


def _judge_one(client: Client) -> None:
    trace = client.tracked(TEXT)["trace"]
    client.call("POST", f"/traces/{trace}/corrections", {"verdict": "wrong", "position": 1})
