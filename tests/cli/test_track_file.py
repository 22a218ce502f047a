"""`fluents track -o FILE`: finished work is never lost, what is there is never damaged, every refusal says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command_run import Done
from faulty_server import Body, FaultyServer, prompt_of
from fluents import jsonl
from fluents.cli import main
from fluents.cli.command import messages
from fluents.records import Procedure, Trace
from fluents.resumable import ResumableOutput
from fluents.trackers import Listener
from fluents.trackers.llm.tracker import LlmTracker
from part_files import part_traces
from scripted import water_heats

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it.", "Wait for it."))


Track = Callable[..., Done]


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(lambda body: water_heats(prompt_of(body))) as running:
        yield running


@pytest.fixture
def track(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path, server: FaultyServer
) -> Track:
    """The program in this process, asking the server about TEA; the output is out.jsonl."""
    jsonl.write([TEA], tmp_path / "tea.jsonl")

    def call(*more: str | Path, model: str = "any", tty: bool = False, output: bool = True) -> Done:
        given = [tmp_path / "tea.jsonl", "--base-url", server.base_url, "--model", model, "--workers", "1"]
        out = ["-o", tmp_path / "out.jsonl"] if output else []
        words = ["fluents", "track-llm", *given, *out, "--no-cache", "--form", "complete", *more]
        monkeypatch.setattr(sys, "argv", list(map(str, words)))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: tty)
        monkeypatch.setattr(messages, "quiet", False)
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsysbinary.readouterr()
        assert b"Traceback" not in captured.err
        return Done(int(ended.value.code or 0), captured.out.decode(), captured.err.decode())

    return call


def read(path: Path) -> list[Trace]:
    return [record for record in jsonl.read(path) if isinstance(record, Trace)]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_inside_a_procedure_keeps_its_finished_steps_and_the_page_shows_them(tmp_path: Path) -> None:
    out, page, stuck = tmp_path / "out.jsonl", tmp_path / "page.html", threading.Event()
    jsonl.write([TEA], tmp_path / "tea.jsonl")
    out.write_text("what was there")

    def hanging(body: Body) -> str:
        if 'number 3: "Wait for it."' in prompt_of(body):
            stuck.set()
            time.sleep(300)
        return water_heats(prompt_of(body))

    def command(server: FaultyServer) -> list[str]:
        given = ["track-llm", tmp_path / "tea.jsonl", "-o", out, "--html", page, "--base-url", server.base_url]
        given += ["--model", "any", "--no-cache", "--form", "complete", "--memory"]
        return [sys.executable, "-m", "fluents", *map(str, given)]

    with FaultyServer(hanging) as server:
        process = subprocess.Popen(command(server), stderr=subprocess.PIPE, text=True)
        assert stuck.wait(60)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert "out.jsonl.part; run the command again with --resume to continue" in told
    assert out.read_text() == "what was there"
    [kept] = part_traces(out)
    assert kept.covered == (1, 2)
    assert "Pour it." in page.read_text()
    with FaultyServer(lambda body: water_heats(prompt_of(body))) as server:
        # Another address is the same model: it may have moved.
        again = subprocess.run([*command(server), "--resume"], timeout=60, capture_output=True, text=True)
        assert again.returncode == 0, again.stderr
        [asked] = server.prompts
    assert 'number 3: "Wait for it."' in asked
    [trace] = read(out)
    assert trace.covered is None
    assert not (tmp_path / "out.jsonl.part").exists()


def test_steps_without_an_answer_end_in_status_1_and_are_asked_again(
    track: Track, server: FaultyServer, tmp_path: Path
) -> None:
    def prose_for_one(number: int, body: Body) -> str | None:  # noqa: ARG001
        return "prose" if 'number 2: "Pour it."' in prompt_of(body) else None

    server.fault = prose_for_one
    done = track()
    assert done.status == 1
    assert "no answer for 1 step; to ask for these steps again, run the command with --resume" in done.err
    assert "no answer for 1 step" in track("--quiet").err, "it is an error"
    assert read(tmp_path / "out.jsonl")[0].covered == (1, 3)
    assert track("--resume").status == 1, "still none"
    server.fault = lambda number, body: None  # noqa: ARG005
    before = len(server.bodies)
    assert track("--resume").status == 0
    assert [('number 2: "Pour it."' in prompt) for prompt in server.prompts[before:]] == [True]
    [trace] = read(tmp_path / "out.jsonl")
    assert trace.covered is None
    assert [change.step for change in trace.changes] == [1, 2, 3]
    before = len(server.bodies)
    assert track("--resume").status == 0
    assert len(server.bodies) == before, "nothing is left to ask"


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (("--seed", "2"), "seed was 1, but is now 2"),
        (("--form", "schemata"), "form was complete, but is now schemata"),
        (("--max-changes", "2"), "max_changes was none, but is now 2"),
        (("--top", "1"), "salience was none, but is now top1"),
    ],
)
def test_resuming_with_other_settings_is_refused(
    track: Track, tmp_path: Path, more: tuple[str, ...], what: str
) -> None:
    assert track().status == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    done = track("--resume", *more)
    assert done.status == 2
    assert what in done.err
    assert "or choose another --output" in done.err
    assert track("--resume", model="other").status == 2
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_a_filtered_output_is_gone_on_from_with_the_same_filter(track: Track, tmp_path: Path) -> None:
    assert track("--top", "1").status == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    assert track("--top", "1", "--resume").status == 0
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert "salience was top1, but is now none" in track("--resume").err


def test_a_text_that_changed_is_refused(track: Track, tmp_path: Path) -> None:
    assert track().status == 0
    jsonl.write([TEA.replace(steps=("Fry an egg.",))], tmp_path / "tea.jsonl")
    before = (tmp_path / "out.jsonl").read_bytes()
    done = track("--resume")
    assert done.status == 2
    assert "the procedure tea has changed since" in done.err
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_two_runs_on_one_output_are_refused(track: Track, tmp_path: Path) -> None:
    with ResumableOutput(tmp_path / "out.jsonl", {}):
        done = track()
    assert done.status == 2
    assert "another process is writing this file" in done.err


def test_an_unanswered_page_and_output_that_cannot_be_written_are_named(track: Track, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for option in ("-o", "--html"):
        done = track(option, loop)
        assert done.status == 2
        assert str(loop) in done.err
    if Path("/dev/full").exists():
        done = track("-o", "/dev/full")
        assert done.status == 2
        assert "/dev/full" in done.err


def test_in_a_terminal_what_was_found_is_shown_beside_the_file_unless_quiet(track: Track, tmp_path: Path) -> None:
    shown = track(tty=True)
    assert "→ hot" in shown.out
    assert "wrote 1 procedure to" in shown.err
    quiet = track("--quiet", tty=True)
    assert (quiet.out, quiet.err) == ("", "")
    assert track().out == "", "in a pipe the file is enough"
    assert jsonl.loads(track("--json").out) == read(tmp_path / "out.jsonl")[0]
    assert "→ hot" in track("--table").out


def test_ctrl_c_in_a_terminal_shows_the_finished_steps_where_no_file_keeps_them(
    track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LlmTracker.track

    class Interrupted(Listener):
        def __init__(self, listener: Listener) -> None:
            self._listener = listener

        def on_step(self, trace: Trace) -> None:
            self._listener.on_step(trace)
            raise KeyboardInterrupt

    def interrupted(self: LlmTracker, procedure: Procedure, listener: Listener, done: Trace | None = None) -> Trace:
        return real(self, procedure, Interrupted(listener), done)

    monkeypatch.setattr(LlmTracker, "track", interrupted)
    done = track(output=False)
    assert (done.status, done.out) == (130, ""), "a pipe gets whole traces only"
    shown = track(output=False, tty=True)
    assert shown.status == 130
    assert "→ hot" in shown.out
    assert "Wait for it." not in shown.out


def test_a_file_that_cannot_be_read_is_skipped_named_and_ends_in_status_1(track: Track, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"Pour the caf\xe9 au lait.")
    done = track(tmp_path / "latin.txt")
    assert done.status == 1
    assert "latin.txt" in done.err
    assert [trace.id for trace in read(tmp_path / "out.jsonl")] == ["tea"]
    strict = track(tmp_path / "latin.txt", "--strict")
    assert strict.status == 2
    assert "latin.txt" in strict.err
