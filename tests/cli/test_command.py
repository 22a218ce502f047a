"""Commands that add to traces: an interrupted run keeps what is done, goes on where it was, and never half-writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.text import Text

from faulty_server import Body, FaultyServer, prompt_of
from fluents import jsonl
from fluents.cli.command import OutputOptions, each_trace
from fluents.errors import InputError
from fluents.records import Procedure, Salience, StateChange, Trace
from part_files import part_traces

HEAT = StateChange(step=1, entity="water", attribute="heat", before="cold", after="hot")
TRACES = [
    Trace(procedure=Procedure(id=name, goal=name, steps=("Boil it.",)), changes=(HEAT,)) for name in ("a", "b", "c")
]


class Rater:
    """Rates everything 4, and is interrupted at one procedure."""

    def __init__(self, stop_at: str = "") -> None:
        self.stop_at = stop_at
        self.seen: list[str] = []

    def __call__(self, trace: Trace) -> Trace:
        self.seen.append(trace.id)
        if trace.id == self.stop_at:
            raise KeyboardInterrupt
        return trace.replace(salience=(Salience(entity="water", rater="parrot", value=4),))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    jsonl.write(TRACES, tmp_path / "in.jsonl")
    return tmp_path / "in.jsonl"


def run(source: Path, rater: Rater, output: Path, *, resume: bool = False) -> None:
    each_trace(
        str(source), rater, lambda trace: Text(trace.id), OutputOptions(str(output), resume), {"rater": "parrot"}
    )


def kept_ids(output: Path) -> list[str]:
    return [trace.id for trace in part_traces(output)]


def ids(path: Path) -> list[str]:
    return [record.id for record in jsonl.read(path)]


def test_an_interrupted_run_goes_on_and_does_nothing_twice(source: Path, tmp_path: Path) -> None:
    out, part = tmp_path / "out.jsonl", tmp_path / "out.jsonl.part"
    out.write_text("what was there")
    with pytest.raises(KeyboardInterrupt):
        run(source, Rater("c"), out)
    assert kept_ids(out) == ["a", "b"]
    assert out.read_text() == "what was there"
    part.write_bytes(part.read_bytes() + b'{"fluents":1,"kind":"tra')  # as if killed in the writing
    again = Rater()
    run(source, again, out, resume=True)
    assert again.seen == ["c"]
    assert ids(out) == ["a", "b", "c"]
    assert all(isinstance(one, Trace) and one.salience for one in jsonl.read(out))
    assert not part.exists()


def test_a_file_may_be_written_over_itself_and_a_run_cut_short_leaves_it_whole(source: Path, tmp_path: Path) -> None:
    before = source.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        run(source, Rater("b"), source)
    assert source.read_bytes() == before
    run(source, Rater(), source, resume=True)
    assert ids(source) == ["a", "b", "c"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_an_interruption_before_anything_is_done_leaves_nothing_behind(source: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(source, Rater("a"), tmp_path / "out.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_a_procedure_that_changed_in_between_is_not_passed_off_as_done(source: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(source, Rater("b"), tmp_path / "out.jsonl")
    jsonl.write([TRACES[0].replace(changes=()), *TRACES[1:]], source)
    with pytest.raises(InputError, match="a has changed since"):
        run(source, Rater(), tmp_path / "out.jsonl", resume=True)


def test_resuming_needs_a_file_and_a_folder_is_none(source: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`resume` needs `output`"):
        OutputOptions(resume=True)
    with pytest.raises(InputError, match="folder"):
        run(source, Rater(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_in_a_real_run_keeps_ratings_even_without_a_cache(source: Path, tmp_path: Path) -> None:
    out, stuck = tmp_path / "out.jsonl", threading.Event()

    def hanging(body: Body) -> str:
        if 'Goal: "b"' in prompt_of(body):
            stuck.set()
            time.sleep(300)
        return "4"

    with FaultyServer(hanging) as server:
        command = ["salience", source, "--method", "prompted", "--model", "parrot", "--base-url", server.base_url]
        arguments = [sys.executable, "-m", "fluents", *map(str, command), "--no-cache", "-o", str(out)]
        process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        assert stuck.wait(60)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert "out.jsonl.part; run the command again with --resume to continue" in told
    [kept] = part_traces(out)
    assert [one.value for one in kept.salience] == [4, 4]
    assert not out.exists()
