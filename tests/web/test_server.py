"""The program `fluents web`: what it prints and refuses, and that a server that is killed loses nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from served import Client
from soup import SOUP, TEXT

from command_run import Run
from fluents import jsonl


@contextmanager
def started(folder: Path, store: str, pause: float, *options: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """The program as a person starts it, and a client of it."""
    jsonl.write([SOUP], folder / "soup.jsonl")
    arguments = ["--port", "0", "--no-open", "--json", "--store", store, "--replay", str(folder / "soup.jsonl")]
    command = [sys.executable, "-m", "fluents", "web", *arguments, "--pause", str(pause), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        printed = ""
        while "}" not in printed:
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            printed += line
        with Client(base_url=json.loads(printed)["address"], timeout=60) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def test_a_server_that_is_killed_has_all_finished_steps_and_its_job_goes_on(tmp_path: Path, store_address: str) -> None:
    with started(tmp_path, store_address, 0.5) as (process, client):
        job = client.job(client.document(TEXT))
        for event in client.events(job):
            if event.kind == "step":
                break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with started(tmp_path, store_address, 0.0) as (_, client):
        steps = [event.data["step"] for event in client.events(job) if event.kind == "step"]
        assert steps == [1, 2, 3, 4]  # the first of them once only
        done = client.call("GET", f"/jobs/{job['id']}")
        assert done["state"] == "done"
        assert len(client.call("GET", f"/traces/{done['trace']}")["shown"]) == len(SOUP.changes)


def test_the_worker_ends_when_the_server_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, str(tmp_path / "web.sqlite"), 3600.0) as (process, client):
        job = client.job(client.document(TEXT))
        next(event for event in client.events(job) if event.kind == "state" and event.data["state"] == "running")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
        workers = [int(pid) for file in (children, *tasks) for pid in file.read_text().split()]
        assert workers
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        for pid in workers:
            for _ in range(3000):
                try:
                    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                except FileNotFoundError:
                    break
                if state == "Z":
                    break
                time.sleep(0.02)
            else:
                raise AssertionError("the worker is still there")


def test_ctrl_c_ends_the_server_and_its_streams(tmp_path: Path) -> None:
    with started(tmp_path, str(tmp_path / "web.sqlite"), 3600.0) as (process, client):
        job = client.job(client.document(TEXT))
        events = client.events(job)
        next(events)
        process.send_signal(signal.SIGINT)
        list(events)  # the stream ends
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read().strip() == "stopped"


def test_a_port_that_is_taken_is_told(run: Run, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run("web", "--port", str(port), "--store", tmp_path / "web.sqlite")
    assert done.status == 2
    assert f"cannot listen on port {port}" in done.err
    assert "--port" in done.err


def test_a_wider_bind_without_tokens_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("web", "--host", "0.0.0.0", "--store", tmp_path / "web.sqlite")
    assert done.status == 2
    assert "--token-file" in done.err


def test_without_the_extra_the_program_says_how_to_install_it() -> None:
    code = (
        "import sys; sys.modules['fastapi'] = None; sys.argv = ['fluents', 'web']; from fluents.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install" in done.stderr
    assert "[web]" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_store_in_use_is_told(run: Run, tmp_path: Path) -> None:
    from fluents.web.store import Store

    with Store(tmp_path / "web.sqlite"):
        done = run("web", "--port", "0", "--store", tmp_path / "web.sqlite")
    assert done.status == 2
    assert "another server is using this store" in done.err


def test_a_key_goes_nowhere_but_to_the_endpoint(tmp_path: Path) -> None:
    """Neither into the store, nor to a client, nor into what is printed."""
    key = "sk-very-secret-indeed"
    (tmp_path / "key").write_text(key)
    jsonl.write([SOUP], tmp_path / "soup.jsonl")
    options = ["--model", "NAME", "--base-url", "http://127.0.0.1:1/v1", "--key-file", str(tmp_path / "key")]
    arguments = ["--port", "0", "--no-open", "--json", "--store", str(tmp_path / "web.sqlite"), *options]
    environment = os.environ | {"FLUENTS_CACHE": str(tmp_path / "cache")}
    process = subprocess.Popen(
        [sys.executable, "-m", "fluents", "web", *arguments, "--time-limit", "5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        printed = ""
        while "}" not in printed:
            printed += process.stdout.readline()
        with Client(base_url=json.loads(printed)["address"], timeout=60) as client:
            info = client.call("GET", "/server")
            assert (info["default_tracker"], info["trackers"][-1]["kind"]) == ("NAME", "endpoint")
            job = client.job(client.document(TEXT))
            *_, last = client.events(job)
            assert last.data["state"] == "failed"  # nobody answers at that address
            told = json.dumps([info, last.data, client.call("GET", "/openapi.json")])
            saved = client.get("/api/v1/backup").content
    finally:
        process.kill()
        out, err = process.communicate()
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("web.sqlite*"))
    for text in (told, out, err, printed):
        assert key not in text
    assert key.encode() not in stored + saved
