"""Whole runs with real workers: every procedure once, whatever dies or is damaged on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="needs the extra batch")
pytest.importorskip("pyarrow", reason="needs the extra batch")

import fluents as fl
from fluents.batches import BatchProgress, batch
from fluents.batches.estimate import estimate
from fluents.batches.stages import BatchSettings
from fluents.batches.store import MANIFEST
from fluents.batches.workers import LocalProcesses, WorkerError
from fluents.errors import FluentsError, InputError
from kitchen import dish, each_once, files, lines, manifest, menu, misbehave, recording, served

Options = dict[str, Any]


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Tracking by replay, in shards of ten."""
    return {"stages": ["segment", "track"], "shard_size": 10, "replay": recording(tmp_path), "workers": 2}


def test_every_procedure_is_done_once_in_order_and_the_second_run_has_nothing_to_do(
    tmp_path: Path, options: Options
) -> None:
    out = tmp_path / "out"
    told: list[BatchProgress] = []
    report = batch(menu(tmp_path, 35), out, on_progress=told.append, **options)
    assert (report.procedures, report.steps, report.changes, report.failures) == (35, 70, 70, 0)
    assert (report.shards, report.skipped) == (4, 0)
    assert [trace.id for trace in served(out)] == [f"dish-{number}" for number in range(35)]
    assert manifest(out).complete
    last = told[-1]
    assert (last.procedures, last.total, last.steps) == (35, 35, 70)
    before = files(out)
    again = batch(menu(tmp_path, 35), out, **options)
    assert (again.shards, again.skipped, again.procedures) == (4, 4, 35)
    assert files(out) == before


def test_one_worker_and_two_make_the_same_bytes(tmp_path: Path, options: Options) -> None:
    path = menu(tmp_path, 35)
    for workers in (1, 2):
        batch(path, tmp_path / str(workers), **options | {"workers": workers})
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_jsonl_shards_are_files_that_every_command_reads(tmp_path: Path, options: Options) -> None:
    batch(menu(tmp_path, 12), tmp_path / "out", format="jsonl", **options)
    found = [trace for shard in manifest(tmp_path / "out").shards for trace in fl.load(tmp_path / "out" / shard.file)]
    assert [trace.id for trace in found] == [f"dish-{number}" for number in range(12)]


def test_all_stages_and_a_later_stage_on_the_results_of_an_earlier_run(tmp_path: Path, options: Options) -> None:
    every = options | {"stages": ["segment", "track", "canonicalise", "salience"]}
    batch(menu(tmp_path, 7), tmp_path / "all", **every)
    batch(menu(tmp_path, 7), tmp_path / "tracked", **options)
    rated: Options = {"stages": ["canonicalise", "salience"], "workers": 1, "shard_size": 10}
    batch(tmp_path / "tracked", tmp_path / "rated", **rated)
    assert [t.salience for t in served(tmp_path / "rated")] == [t.salience for t in served(tmp_path / "all")]
    assert all(trace.clusters and trace.salience for trace in served(tmp_path / "all"))


def test_what_cannot_be_read_is_a_row_with_its_error(tmp_path: Path, options: Options) -> None:
    rows = [{"id": f"dish-{n}", "goal": dish(n).goal, "steps": list(dish(n).steps)} for n in range(12)]
    path = lines(tmp_path / "menu.jsonl", *rows[:6], {"text": 5}, {"id": "x", "steps": "y"}, *rows[6:])
    out = tmp_path / "out"
    assert batch(path, out, **options).failures == 2
    failed = {trace.id: trace.error for trace in served(out) if trace.error}
    assert failed.keys() == {"x", "menu.jsonl:7"}
    assert "steps must be a list" in str(failed["x"])
    kept = files(out)
    for again in (False, True):  # unasked it is not tried again; asked, it fails again
        assert batch(path, out, retry_failed=again, **options).failures == 2
        assert files(out) == kept


def test_a_procedure_with_a_step_that_was_not_recorded_is_a_failure(tmp_path: Path, options: Options) -> None:
    """Nobody knows what changes in it, and "nothing" would be made up."""
    known, out = dish(0), tmp_path / "out"
    path = lines(tmp_path / "in.jsonl", {"id": "new", "steps": [*known.steps, "Sing."]}, {"steps": [*known.steps]})
    assert batch(path, out, **options).failures == 1
    failed, good = served(out)
    assert failed.error == "track: 1 of 3 steps got no answer: the recorded traces do not contain this step"
    assert (len(failed.changes), failed.covered) == (2, (1, 2))
    assert (len(good.changes), good.error) == (2, None)


def test_a_retry_redoes_only_what_failed(tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = menu(tmp_path, 20, goals={4: "burn"}), tmp_path / "out"
    with monkeypatch.context() as patch:
        misbehave(tmp_path, patch)
        assert batch(path, out, **options).failures == 1
    assert next(trace.error for trace in served(out) if trace.error) == "track: ValueError: it burnt"
    good = manifest(out).shards[1]
    report = batch(path, out, retry_failed=True, **options)
    assert (report.failures, report.skipped) == (0, 1)
    assert each_once(out, 20)
    assert manifest(out).shards[1] == good


@pytest.mark.parametrize(
    ("goal", "limits", "said"),
    [("die", {}, "was killed"), ("hang", {"timeout": 1.5}, "hung"), ("eat", {"memory": 400}, "memory")],
)
def test_a_row_over_which_workers_die_hang_or_eat_fails_alone(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch, goal: str, limits: Options, said: str
) -> None:
    misbehave(tmp_path, monkeypatch)
    path, out = menu(tmp_path, 20, goals={4: goal}), tmp_path / "out"
    report = batch(path, out, **options | limits)
    assert report.failures == 1
    assert each_once(out, 20)
    [failed] = [trace for trace in served(out) if trace.error]
    assert said in str(failed.error)
    assert 2 <= len(report.lost) <= 3


def test_a_worker_that_is_killed_once_costs_nothing(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = menu(tmp_path, 40, goals={13: "die once"})
    batch(path, tmp_path / "calm", **options)
    misbehave(tmp_path, monkeypatch)
    report = batch(path, tmp_path / "out", **options)
    assert len(report.lost) == 1
    assert report.failures == 0
    assert files(tmp_path / "out") == files(tmp_path / "calm")


def test_workers_that_cannot_begin_end_the_run_with_the_reason(tmp_path: Path, options: Options) -> None:
    path = menu(tmp_path, 5)
    with pytest.raises(FluentsError, match="no such"):
        batch(path, tmp_path / "out", **options | {"replay": tmp_path / "gone.jsonl"})
    broken = options | {"replay": tmp_path / "recorded.jsonl"}

    class Removing:
        def __call__(self, _: BatchProgress) -> None:
            (tmp_path / "recorded.jsonl").unlink(missing_ok=True)

    with pytest.raises(WorkerError, match="no such"):
        batch(path, tmp_path / "out", on_progress=Removing(), **broken)


def test_results_inside_the_input_folder_are_not_read_as_input(tmp_path: Path, options: Options) -> None:
    (tmp_path / "menus").mkdir()
    menu(tmp_path / "menus", 5)
    for _ in range(2):
        report = batch(tmp_path / "menus", tmp_path / "menus" / "out", **options)
        assert (report.procedures, report.notices) == (5, ())


# Disks and folders


def test_a_full_disk_ends_the_run_with_its_name_and_the_rest_is_done_later(tmp_path: Path, options: Options) -> None:
    """A limit on the size of files is what a test can have of a full disk."""
    path, out = menu(tmp_path, 40), tmp_path / "out"
    batch(path, out, **options)
    largest = max(len(data) for name, data in files(out).items() if name.endswith(".parquet"))
    whole = files(out)
    for file in out.iterdir():
        file.unlink()
    code = (
        "import resource, signal, sys; from fluents.batches import batch\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({largest - 1}, {largest - 1}))\n"
        f"batch({str(path)!r}, {str(out)!r}, stages=['segment', 'track'], shard_size=10, workers=2,"
        f" replay={str(options['replay'])!r})"
    )
    assert largest > 2000, "the manifest must fit"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert str(out) in done.stderr.splitlines()[-1] + done.stderr.splitlines()[-2]
    assert not list(out.glob(".*.tmp"))
    batch(path, out, **options)
    assert files(out) == whole


def test_what_a_worker_was_writing_when_it_was_ended_is_removed(tmp_path: Path) -> None:
    """A worker that is ended because another one failed leaves no temporary file; those of other runs stay."""
    source = LocalProcesses(str(tmp_path), BatchSettings(stages=("segment",)), workers=1)
    worker = source.start(0)
    mine, other = (tmp_path / f".one.parquet.{pid}.0a1b2c3d.tmp" for pid in (worker.pid, worker.pid + 1))
    mine.touch()
    other.touch()
    worker.end()
    assert list(tmp_path.iterdir()) == [other]


def test_a_folder_that_cannot_be_written_to_is_told_before_the_work(tmp_path: Path, options: Options) -> None:
    path = menu(tmp_path, 5)
    (tmp_path / "file").write_text("")
    for out, what in (
        (tmp_path / "file", "is a file"),
        ("/sys/fluents", "cannot write"),
        ("nosuch://x", "path or URL"),
    ):
        with pytest.raises(InputError, match=what):
            batch(path, out, **options)
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    if os.geteuid() != 0:  # who may do anything is not kept out
        with pytest.raises(InputError, match="cannot write"):
            batch(path, locked, **options)


def test_a_shard_that_is_gone_is_made_again(tmp_path: Path, options: Options) -> None:
    path, out = menu(tmp_path, 20), tmp_path / "out"
    batch(path, out, **options)
    whole = files(out)
    (out / manifest(out).shards[0].file).unlink()
    assert any("created again" in notice for notice in batch(path, out, **options).notices)
    assert files(out) == whole


def test_a_manifest_that_is_none_is_not_written_over(tmp_path: Path, options: Options) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text("{}")
    with pytest.raises(InputError, match="not the manifest"):
        batch(menu(tmp_path, 5), tmp_path / "out", **options)
    assert (tmp_path / "out" / MANIFEST).read_text() == "{}"


# The input


def test_an_input_that_changed_is_told_and_loses_nothing(tmp_path: Path, options: Options) -> None:
    path, out = menu(tmp_path, 30), tmp_path / "out"
    batch(path, out, **options)
    before = set(out.iterdir())
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join(text[:15] + text[16:]))
    report = batch(path, out, **options)
    assert any("2 of the 3 shards" in notice for notice in report.notices)
    assert report.skipped == 1
    assert len(served(out)) == 29
    assert before <= set(out.iterdir()), "what was there stays"


def test_an_input_that_changes_during_the_run_is_told(tmp_path: Path, options: Options) -> None:
    path = menu(tmp_path, 30)

    def change(_: BatchProgress) -> None:
        menu(tmp_path, 31, goals={2: "Something else"})

    with pytest.raises(InputError, match="changed during"):
        batch(path, tmp_path / "out", on_progress=change, **options)


def test_other_settings_on_the_same_folder_are_refused(tmp_path: Path, options: Options) -> None:
    path, out = menu(tmp_path, 5), tmp_path / "out"
    batch(path, out, **options)
    with pytest.raises(InputError, match="max_steps was 1000, but is now 7"):
        batch(path, out, max_steps=7, **options)


def test_a_procedure_of_100_000_steps_fails_alone_or_is_done_if_it_may(tmp_path: Path) -> None:
    steps = [f"Stir {number} times." for number in range(100_000)]
    path = lines(tmp_path / "long.jsonl", {"id": "long", "steps": steps}, {"id": "short", "steps": ["Stir."]})
    report = batch(path, tmp_path / "out", stages=["segment"], workers=1)
    assert report.failures == 1
    assert "100,000 steps, but `max_steps` is 1,000" in str(served(tmp_path / "out")[0].error)
    report = batch(path, tmp_path / "all", stages=["segment"], workers=1, max_steps=100_000)
    assert (report.failures, report.steps) == (0, 100_001)


@pytest.mark.parametrize(
    ("chosen", "what"),
    [
        ({"stages": ["track", "segment"]}, "in this order"),
        ({"stages": ["cook"]}, "unknown stage"),
        ({"stages": ["segment"]}, "has no effect"),
        ({"part": (3, 2)}, "`part`"),
        ({"workers": 0}, "`workers`"),
        ({"address": "auto"}, "works only with `engine` ray"),
        ({"engine": "spark"}, "unknown `engine`"),
        ({"shard_size": 0}, "`shard_size`"),
        ({"gpu_workers": 3}, "`gpu_workers`"),
        ({"model": "tiny"}, "has no effect with `replay`"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, options: Options, chosen: Options, what: str) -> None:
    with pytest.raises(FluentsError, match=what):
        batch(menu(tmp_path, 5), tmp_path / "out", **options | chosen)


# Several runs


def test_the_parts_of_an_array_job_share_a_folder_and_a_last_run_writes_the_manifest(
    tmp_path: Path, options: Options
) -> None:
    path = menu(tmp_path, 50)
    for number in (1, 2, 3):
        batch(path, tmp_path / "parts", part=(number, 3), **options)
    assert batch(path, tmp_path / "parts", **options).skipped == 5
    batch(path, tmp_path / "whole", **options)
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_that_is_killed_is_resumed_and_each_procedure_is_done_once() -> None:
    """The short form of `make soak`."""
    script = Path(__file__).parents[2] / "benchmarks" / "soak_batch.py"
    done = subprocess.run([sys.executable, script, "--kills", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills" in done.stdout


def test_the_dry_run_tells_shards_and_steps_and_writes_nothing(tmp_path: Path, options: Options) -> None:
    path = menu(tmp_path, 35)
    found = estimate(
        path, tmp_path / "out", stages=["segment", "track"], shard_size=10, tracker={"replay": options["replay"]}
    )
    assert (found.shards, found.done, found.procedures, found.steps) == (4, 0, 35, 70)
    assert found.seconds is not None
    assert not (tmp_path / "out").exists()
    asked = estimate(
        path,
        tmp_path / "out",
        stages=["segment", "track"],
        tracker={"model": "NAME", "base_url": "http://127.0.0.1:9/v1"},
        prices=(1.0, 2.0),
    )
    assert asked.seconds is None
    assert asked.questions is not None
    assert asked.questions >= 35 * 2
    assert asked.cost is not None
    assert asked.tokens_in is not None
    assert asked.tokens_out is not None
    assert asked.cost == pytest.approx((asked.tokens_in + 2 * asked.tokens_out) / 1e6)
    assert "no request was sent" in "\n".join(asked.lines())


def test_every_run_leaves_a_line(tmp_path: Path, options: Options) -> None:
    batch(menu(tmp_path, 5), tmp_path / "out", **options)
    batch(menu(tmp_path, 5), tmp_path / "out", **options)
    first, second = (json.loads(line) for line in (tmp_path / "out" / "runs.jsonl").read_text().splitlines())
    assert (first["procedures"], second["procedures"]) == (5, 0)
