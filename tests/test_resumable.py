"""Outputs that survive interruptions: what is finished is kept, OUTPUT is whole or as before, one process at a time."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fluents import jsonl
from fluents.errors import InputError
from fluents.records import Procedure, StateChange, Trace
from fluents.resumable import ResumableOutput, is_regular, whole_traces
from fluents.task_records import CrepeCase, Likelihood
from part_files import part_traces

HEAT = StateChange(step=1, entity="water", attribute="heat", before="cold", after="hot")
TRACES = [
    Trace(procedure=Procedure(id=name, goal=name, steps=("Boil it.", "Wait.")), changes=(HEAT,))
    for name in ("a", "b", "c")
]
SETTINGS = {"model": "m", "seed": 1}


def interrupted(path: Path, *traces: Trace) -> None:
    """A run that Ctrl-C ends after these traces."""
    with suppress(KeyboardInterrupt), ResumableOutput(path, SETTINGS) as output:
        for trace in traces:
            output.add(trace)
        raise KeyboardInterrupt


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_output_appears_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("what was there")
    with ResumableOutput(out, SETTINGS) as output:
        for trace in TRACES:
            output.add(trace)
            assert part_traces(out)[-1] == trace, "written at once"
            assert out.read_text() == "what was there"
    assert list(jsonl.read(out)) == TRACES
    assert files(tmp_path) == ["out.jsonl"]


def test_an_interruption_keeps_results_and_finished_steps_and_leaves_the_output_alone(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("what was there")
    half = TRACES[1].replace(covered=(1,))
    with suppress(KeyboardInterrupt), ResumableOutput(out, SETTINGS) as output:
        output.add(TRACES[0])
        output.keep_steps(TRACES[1].replace(covered=(), changes=()))
        output.keep_steps(half)
        raise KeyboardInterrupt
    assert out.read_text() == "what was there"
    assert part_traces(out) == [TRACES[0], half]
    with ResumableOutput(out, SETTINGS, resume=True) as output:
        assert output.kept(TRACES[0]) == TRACES[0]
        assert output.kept(TRACES[1].procedure) == half
        assert output.kept(TRACES[2]) is None
        output.add(TRACES[1])
        output.add(TRACES[2])
    assert list(jsonl.read(out)) == TRACES


def test_an_interruption_before_anything_is_done_leaves_nothing_behind(tmp_path: Path) -> None:
    interrupted(tmp_path / "out.jsonl")
    assert files(tmp_path) == []


def test_the_part_of_an_interrupted_run_is_not_overwritten_unasked(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    interrupted(out, TRACES[0])
    with pytest.raises(InputError, match="interrupted run"), ResumableOutput(out, SETTINGS):
        pass
    assert part_traces(out) == TRACES[:1]


@pytest.mark.parametrize("cut", [1, 5, 30, -1])
def test_a_line_cut_off_in_the_writing_is_removed_and_the_rest_kept(tmp_path: Path, cut: int) -> None:
    out, part = tmp_path / "out.jsonl", tmp_path / "out.jsonl.part"
    interrupted(out, TRACES[0])
    part.write_bytes(part.read_bytes() + jsonl.dumps(TRACES[1])[:cut])
    with ResumableOutput(out, SETTINGS, resume=True) as output:
        assert output.kept(TRACES[1]) is None
        output.add(TRACES[2])
    assert list(jsonl.read(out)) == [TRACES[0], TRACES[2]]


def test_a_last_line_that_only_lacks_its_end_is_kept(tmp_path: Path) -> None:
    out, part = tmp_path / "out.jsonl", tmp_path / "out.jsonl.part"
    interrupted(out, *TRACES[:2])
    part.write_bytes(part.read_bytes().rstrip(b"\n"))
    with ResumableOutput(out, SETTINGS, resume=True) as output:
        output.add(TRACES[2])
    assert list(jsonl.read(out)) == TRACES


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    interrupted(out, TRACES[0])
    before = (tmp_path / "out.jsonl.part").read_bytes()
    for other, what in (
        ({"model": "m", "seed": 2}, "seed was 1, but is now 2"),
        ({"seed": 1}, "model was m, but is now no"),
    ):
        with pytest.raises(InputError, match=what), ResumableOutput(out, other, resume=True):
            pass
    assert (tmp_path / "out.jsonl.part").read_bytes() == before


def test_a_text_or_a_trace_that_changed_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    interrupted(out, TRACES[0])
    edited = TRACES[0].procedure.replace(steps=("Fry it.", "Wait."))
    for other in (edited, edited.replace(goal="x"), TRACES[0].replace(changes=())):
        with pytest.raises(InputError, match="a has changed"), ResumableOutput(out, SETTINGS, resume=True) as output:
            output.kept(other)
    assert part_traces(out) == TRACES[:1]


def test_an_output_is_gone_on_from_only_where_its_settings_can_be_told(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    jsonl.write(TRACES[:1], out)
    with ResumableOutput(out, SETTINGS, resume=True, settings_of=lambda _: SETTINGS) as output:
        assert output.kept(TRACES[0]) == TRACES[0]
        output.add(TRACES[1])
    assert list(jsonl.read(out)) == TRACES[:2]
    with (
        pytest.raises(InputError, match="other settings"),
        ResumableOutput(out, SETTINGS, resume=True, settings_of=lambda _: SETTINGS | {"model": "n"}),
    ):
        pass
    with ResumableOutput(out, SETTINGS, resume=True) as output:
        assert output.kept(TRACES[0]) is None
        output.add(TRACES[2])
    assert list(jsonl.read(out)) == TRACES[2:]


def _hold(path: Path, ready: multiprocessing.synchronize.Event, done: multiprocessing.synchronize.Event) -> None:
    with ResumableOutput(path, SETTINGS) as output:
        output.add(TRACES[0])
        ready.set()
        done.wait(60)


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    spawn = multiprocessing.get_context("spawn")
    ready, done = spawn.Event(), spawn.Event()
    holder = spawn.Process(target=_hold, args=(out, ready, done))
    holder.start()
    try:
        assert ready.wait(60)
        for resume in (False, True):
            with (
                pytest.raises(InputError, match="another process is writing"),
                ResumableOutput(out, SETTINGS, resume=resume),
            ):
                pass
    finally:
        done.set()
        holder.join(60)
    assert list(jsonl.read(out)) == TRACES[:1]
    assert files(tmp_path) == ["out.jsonl"]


def test_what_a_killed_process_kept_can_be_resumed(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    code = (
        "import os, sys; sys.path[:0] = sys.argv[2:]\n"
        "from test_resumable import *\n"
        "output = ResumableOutput(sys.argv[1], SETTINGS).__enter__()\n"
        "output.keep_steps(TRACES[0].replace(covered=(), changes=()))\n"
        "output.keep_steps(TRACES[0].replace(covered=(1,)))\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(out), *sys.path], check=False)
    assert not out.exists()
    with ResumableOutput(out, SETTINGS, resume=True) as output:
        assert output.kept(TRACES[0].procedure) == TRACES[0].replace(covered=(1,))
        output.add(TRACES[0])
    assert list(jsonl.read(out)) == TRACES[:1]


@pytest.mark.parametrize(
    "left", [b"", b'{"fluents-', b'{"fluents-run":{"model":"m"', b'{"fluents-run":{"model":"n"}}\n']
)
def test_what_a_process_left_that_was_killed_at_once_is_in_nobodys_way(tmp_path: Path, left: bytes) -> None:
    for resume in (False, True):
        (tmp_path / "out.jsonl.part").write_bytes(left)
        with ResumableOutput(tmp_path / "out.jsonl", SETTINGS, resume=resume) as output:
            output.add(TRACES[0])
        assert list(jsonl.read(tmp_path / "out.jsonl")) == TRACES[:1]


def test_outdated_lines_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluents.resumable.MAX_OUTDATED", 1000)
    out = tmp_path / "out.jsonl"
    steps = tuple(f"Stir {n} times." for n in range(100))
    long = Trace(procedure=Procedure(id="long", steps=steps), covered=())
    with ResumableOutput(out, SETTINGS) as output:
        output.add(TRACES[0])
        for step in range(1, 100):
            output.keep_steps(long.replace(covered=tuple(range(1, step + 1))))
        assert (tmp_path / "out.jsonl.part").stat().st_size < 4 * len(jsonl.dumps(long)) + 2000
        assert output.kept(TRACES[0]) == TRACES[0]
        output.add(long)
    assert list(jsonl.read(out)) == [TRACES[0], long]


def test_results_come_in_the_order_they_are_added_however_often_the_run_was_interrupted(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with suppress(KeyboardInterrupt), ResumableOutput(out, SETTINGS) as output:
        output.keep_steps(TRACES[2].replace(covered=(1,)))
        output.add(TRACES[0])
        raise KeyboardInterrupt
    with ResumableOutput(out, SETTINGS, resume=True) as output:
        for trace in TRACES:
            output.add(trace)
    assert list(jsonl.read(out)) == TRACES


def test_what_is_no_file_or_not_ours_is_refused_and_left_alone(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path, what in (
        (tmp_path, "folder"),
        (loop, "cannot write the file"),
        (tmp_path / "none" / "x", "cannot write"),
    ):
        with pytest.raises(InputError, match=what) as caught, ResumableOutput(path, SETTINGS):
            pass
        assert str(path) in str(caught.value)
    (tmp_path / "notes.part").write_text("shopping list")
    with (
        pytest.raises(InputError, match="does not contain the results of an interrupted run"),
        ResumableOutput(tmp_path / "notes", SETTINGS, resume=True),
    ):
        pass
    assert (tmp_path / "notes.part").read_text() == "shopping list"
    assert not is_regular(None)
    assert not is_regular("-")
    assert not is_regular(os.devnull)
    assert is_regular(tmp_path / "new")


@pytest.mark.parametrize("content", [b"shopping list: eggs", b'{"precious": 1}', b'{"precious": 1}\n', b"eggs\n{"])
def test_an_output_that_is_none_of_ours_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "notes.json"
    file.write_bytes(content)
    with pytest.raises(InputError):
        whole_traces(file)
    assert file.read_bytes() == content


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_a_full_disk_is_named_and_costs_nothing_that_was_kept(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk."""
    out = tmp_path / "out.jsonl"
    out.write_text("what was there")
    code = (
        "import resource, sys; sys.path[:0] = sys.argv[2:]\n"
        "from test_resumable import *\n"
        "from fluents.cli import main\n"
        "def app():\n"
        "    with ResumableOutput(sys.argv[1], SETTINGS) as output:\n"
        "        output.add(TRACES[0])\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "        output.add(TRACES[1])\n"
        "import fluents.cli; fluents.cli.app = app; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(out), *sys.path], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "out.jsonl.part" in done.stderr
    assert out.read_text() == "what was there"
    with ResumableOutput(out, SETTINGS, resume=True) as output:
        assert output.kept(TRACES[0]) == TRACES[0]
        output.add(TRACES[1])
    assert list(jsonl.read(out)) == TRACES[:2]


def test_answers_to_questions_are_kept_by_procedure_and_question(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    procedure = TRACES[0].procedure
    answer = CrepeCase(
        procedure=procedure, likelihoods=(Likelihood(step=1, change="more likely", event="Steam?", predicted=True),)
    )
    with suppress(KeyboardInterrupt), ResumableOutput(out, SETTINGS) as output:
        output.add(answer)
        raise KeyboardInterrupt
    with ResumableOutput(out, SETTINGS, resume=True) as output:
        assert output.kept_answers(procedure, ["Steam?"]) == answer
        assert output.kept_answers(TRACES[1].procedure, ["Steam?"]) is None
        with pytest.raises(InputError, match="changed since the run that you want to resume"):
            output.kept_answers(procedure, ["Rain?"])
        output.add(answer)
    assert list(jsonl.read(out)) == [answer]
