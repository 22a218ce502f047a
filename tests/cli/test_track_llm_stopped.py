"""`fluents track-llm` stopped in the middle, by a key or by force: nothing is lost, nothing asked twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest

from faulty_server import Body, FaultyServer, prompt_of
from fluents import jsonl
from fluents.records import Procedure, Trace
from part_files import part_traces
from scripted import water_heats

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it over the leaves."))
WORKERS = 4


def command(server: FaultyServer, source: Path, out: Path, *more: str | Path) -> list[str]:
    model = ["--base-url", server.base_url, "--model", "any", "--workers", WORKERS]
    return [sys.executable, "-m", "fluents", "track-llm", *map(str, (source, *model, "-o", out, *more))]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("form", ["complete", "whole"])
def test_ctrl_c_ends_it_at_once_and_keeps_what_is_done(tmp_path: Path, form: str) -> None:
    """Also while requests hang that nobody will answer."""
    jsonl.write([TEA, TEA.replace(id="slow", steps=("Hang for ever.",))], tmp_path / "two.jsonl")
    out, cache, stuck = tmp_path / "out.jsonl", tmp_path / "cache.sqlite", threading.Event()

    def hanging(body: Body) -> str:
        if "Hang for ever." in prompt_of(body):
            stuck.set()
            time.sleep(300)
        return water_heats(prompt_of(body))

    with FaultyServer(hanging) as server:
        started = command(server, tmp_path / "two.jsonl", out, "--cache", cache, "--form", form)
        process = subprocess.Popen(started, stderr=subprocess.PIPE, text=True)
        assert stuck.wait(60)
        while not any(trace.id == "tea" for trace in part_traces(out)):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert [one.id for one in part_traces(out)] == ["tea"]
    with closing(sqlite3.connect(cache)) as kept:
        [answers] = kept.execute("select count(*) from answers").fetchone()
    assert answers == (2 if form == "complete" else 1), "answers may have cost money"


def sometimes_prose(number: int, body: Body) -> str | None:  # noqa: ARG001 - a Fault
    """To the same question always the same, so that two runs can be compared."""
    return "prose" if crc32(prompt_of(body).encode()) % 5 == 0 else None


def test_a_killed_run_resumes_without_asking_again_for_what_it_has(tmp_path: Path) -> None:
    """What it has: the procedures in the output, and of the one it was in, the answers in the cache."""
    many = [TEA.replace(id=f"p{n}", steps=tuple(f"Boil pot {n} {k}." for k in range(6))) for n in range(4)]
    source, out, whole = (tmp_path / name for name in ("many.jsonl", "out.jsonl", "whole.jsonl"))
    jsonl.write(many, source)

    def slowly(body: Body) -> str:
        time.sleep(0.05)
        return water_heats(prompt_of(body))

    with FaultyServer(slowly, sometimes_prose) as server:
        run = command(server, source, out, "--cache", tmp_path / "answers.sqlite")
        with subprocess.Popen(run, stderr=subprocess.DEVNULL) as killed:
            deadline = time.monotonic() + 60
            while len(server.bodies) < 20 and time.monotonic() < deadline:
                time.sleep(0.005)
            killed.kill()
        before = list(server.prompts)
        assert 1 <= len(part_traces(out)) <= 4, "killed in the middle"
        assert not out.exists()
        again = subprocess.run([*run, "--resume"], timeout=60, stderr=subprocess.DEVNULL)
        assert again.returncode == 1, "some steps got no readable answer"
        asked = list(server.prompts)
        assert len(asked) - len(set(asked)) <= WORKERS, "twice only what was on its way, one question a worker"
        assert len(set(before) & set(asked[len(before) :])) <= WORKERS
        undisturbed = command(server, source, whole, "--no-cache")
        subprocess.run(undisturbed, timeout=60, stderr=subprocess.DEVNULL)
        assert set(server.prompts[len(asked) :]) == set(asked)
    assert out.read_bytes() == whole.read_bytes()
    traces = [one for one in jsonl.read(out) if isinstance(one, Trace)]
    assert [trace.id for trace in traces] == [procedure.id for procedure in many]
    assert any(trace.rejects for trace in traces), "faults are part of it"
