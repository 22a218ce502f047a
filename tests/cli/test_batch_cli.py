"""fluents batch and fluents query, as a person runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="needs the extra batch")

from command_run import Run
from fluents.batches.store import Manifest, ShardStore
from kitchen import lines, manifest, menu, recording


@pytest.fixture
def common(tmp_path: Path) -> list[str | Path]:
    return ["--out", tmp_path / "out", "--stages", "segment,track", "--replay", recording(tmp_path), "--workers", "1"]


def test_a_run_its_failures_and_questions_about_it(run: Run, tmp_path: Path, common: list[str | Path]) -> None:
    path = menu(tmp_path, 3)
    with path.open("ab") as stream:
        stream.write(b"{\n")
    done = run("batch", path, *common)
    assert done.status == 1
    assert "4 procedures with 6 changes (1 shard)" in done.err
    assert "1 procedure failed" in done.err
    assert "menu.jsonl:4" in run("query", tmp_path / "out", "failures").out
    assert run("query", tmp_path / "out", "entities", "--json").json[0]["changes"] == 2
    assert "the first 1 rows" in run("query", tmp_path / "out", "changes", "-n", "1").err
    done = run("query", tmp_path / "out", "entities", "--plot", tmp_path / "e.svg", "-o", tmp_path / "e.csv")
    assert done.status == 0
    assert (tmp_path / "e.svg").exists()
    assert (tmp_path / "e.csv").exists()


def test_the_report_as_json_and_the_dry_run(run: Run, tmp_path: Path, common: list[str | Path]) -> None:
    path = menu(tmp_path, 3)
    dry = run("batch", path, *common, "--dry-run")
    assert "3 procedures to do, about 6 steps" in dry.out
    assert not (tmp_path / "out").exists()
    assert run("batch", path, *common, "--json").json["changes"] == 6
    assert run("batch", path, *common, "--dry-run", "--json").json["done"] == 1
    assert "(1 shard, all from an earlier run)" in run("batch", path, *common).err


def test_results_that_are_not_complete_are_told(run: Run, tmp_path: Path, common: list[str | Path]) -> None:
    out = tmp_path / "out"
    rate = ["batch", out, "--out", tmp_path / "rated", "--stages", "canonicalise", "--workers", "1"]
    run("batch", menu(tmp_path, 3), *common)
    assert "not complete" not in run("query", out, "entities").err + run(*rate).err
    store, whole = ShardStore(out), manifest(out)
    store.write_manifest(Manifest(whole.settings, whole.shards, complete=False))
    for command in (["query", out, "entities"], rate, [*rate, "--dry-run"]):
        done = run(*command)
        assert done.status == 0
        said = " ".join((done.err + done.out).split())
        assert f"{out} is not complete: the folder contains only 3 procedures so far" in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--part", "x"], "--part must be K/N, not 'x'"),
        (["--stages", "track,segment"], "--stages is in the wrong order: track,segment"),
        (["--price-in", "3"], "without --dry-run"),
        (["--max-steps", "9", "--model", "tiny"], "--model has no effect with --replay"),
    ],
)
def test_mistakes_are_told_in_flags(
    run: Run, tmp_path: Path, common: list[str | Path], more: list[str], said: str
) -> None:
    done = run("batch", lines(tmp_path / "x.jsonl", {"text": "Stir."}), *common, *more)
    assert done.status == 2
    assert said in done.err
    assert "finished shards" not in done.err, "nothing was done"
