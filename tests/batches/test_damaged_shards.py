"""Shard files that are not what a run wrote: told, kept, and made again; those of a killed run are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="needs the extra batch")
pytest.importorskip("pyarrow", reason="needs the extra batch")

from fluents.batches import BatchProgress, batch
from fluents.batches.shard_plan import BatchPlan
from fluents.batches.store import MANIFEST, Manifest, ShardStore
from fluents.batches.workers import LocalProcesses, WorkerError
from kitchen import files, lines, manifest, menu, misbehave, recording

Options = dict[str, Any]


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Tracking by replay, in shards of ten."""
    return {"stages": ["segment", "track"], "shard_size": 10, "replay": recording(tmp_path), "workers": 1}


def contents(out: Path) -> dict[str, bytes]:
    """The manifest, and the shards that it lists."""
    return {name: (out / name).read_bytes() for name in (MANIFEST, *(shard.file for shard in manifest(out).shards))}


def damages(data: bytes, other: bytes) -> dict[str, bytes]:
    """What may become of a file; `other` is that of another shard."""
    return {
        "cut": data[:-30],
        "cut after a line": b"".join(data.splitlines(keepends=True)[:4]),
        "flipped": data[:4] + bytes(byte ^ 0xFF for byte in data[4:400]) + data[400:],  # one bit may be one unread
        "one letter": data.replace(b"stove", b"stone", 1),
        "another shard": other,
        "empty": b"",
    }


@pytest.mark.parametrize(
    ("format", "damage", "is_listed"),
    [
        ("parquet", "cut", True),
        ("parquet", "flipped", True),
        ("parquet", "flipped", False),
        ("parquet", "another shard", True),
        ("parquet", "another shard", False),
        ("parquet", "empty", True),
        ("jsonl", "cut", True),
        ("jsonl", "cut after a line", True),
        ("jsonl", "cut after a line", False),
        ("jsonl", "one letter", True),  # which nobody can know of a file that is not listed
        ("jsonl", "another shard", True),
    ],
)
def test_a_damaged_shard_is_told_kept_and_made_again(
    tmp_path: Path, options: Options, format: str, damage: str, is_listed: bool
) -> None:
    path, out, options = menu(tmp_path, 20), tmp_path / "out", options | {"format": format}
    batch(path, out, **options)
    whole = contents(out)
    other, victim = (out / shard.file for shard in manifest(out).shards)
    victim.write_bytes(damages(victim.read_bytes(), other.read_bytes())[damage])
    if not is_listed:  # as a run leaves it that was killed
        (out / MANIFEST).unlink()
    told: list[str] = []
    report = batch(path, out, on_notice=told.append, **options)
    assert "damaged" in told[0]
    assert victim.name in told[0]
    assert report.skipped == 1
    assert contents(out) == whole
    assert victim.with_name(f"{victim.name}.damaged").exists()


def test_two_tasks_of_an_array_job_may_find_the_same_damage(tmp_path: Path) -> None:
    store = ShardStore(tmp_path)
    store.write("a.parquet", b"damaged")
    assert store.set_aside("a.parquet") == store.set_aside("a.parquet") == "a.parquet.damaged"
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet.damaged"]


@pytest.mark.parametrize("is_mended", [True, False])
def test_a_shard_that_another_task_is_retrying_is_not_thrown_away(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch, is_mended: bool
) -> None:
    """Between the moments when a task reads the manifest and the shard, another one takes the shard out of the manifest
    and does it again: well, or it is damaged as it does."""
    path, out = menu(tmp_path, 20, goals={4: "burn"}), tmp_path / "out"
    with monkeypatch.context() as patch:
        misbehave(tmp_path, patch)
        batch(path, out, **options)
    victim, stale = out / manifest(out).shards[0].file, manifest(out)
    batch(path, out, retry_failed=True, **options)
    mended, names = manifest(out), ShardStore.names
    if not is_mended:
        victim.write_bytes(victim.read_bytes()[:-30])
    ShardStore(out).write_manifest(stale)

    def retried(store: ShardStore) -> set[str]:
        store.write_manifest(Manifest(stale.settings, stale.shards[1:], False))
        return names(store)

    monkeypatch.setattr(ShardStore, "names", retried)
    report = batch(path, out, retry_failed=True, part=(2, 2), **options)
    assert victim.with_name(f"{victim.name}.damaged").exists() is not is_mended
    assert len(report.notices) == (0 if is_mended else 1)
    monkeypatch.undo()
    assert batch(path, out, **options).failures == 0
    assert manifest(out) == mended


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_shard_that_another_task_sets_aside_is_missing(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch, is_listed: bool
) -> None:
    path, out = menu(tmp_path, 20), tmp_path / "out"
    batch(path, out, **options)
    whole, victim, names = contents(out), manifest(out).shards[0].file, ShardStore.names
    if not is_listed:
        (out / MANIFEST).unlink()

    def then_gone(store: ShardStore) -> set[str]:
        found = names(store)
        store.set_aside(victim)
        return found

    monkeypatch.setattr(ShardStore, "names", then_gone)
    report = batch(path, out, **options)
    assert report.notices == (f"{victim} is missing from the output folder, so it is created again",)
    assert contents(out) == whole


def test_a_shard_that_an_older_version_listed_with_too_few_rows_is_made_again(tmp_path: Path, options: Options) -> None:
    """It took the checksum of a damaged file for a new truth."""
    path, out = menu(tmp_path, 20), tmp_path / "out"
    batch(path, out, **options)
    whole, store = files(out), ShardStore(out)
    first, second = manifest(out).shards
    fewer = store.write_shard(second.file, store.read_shard(second.file)[:4])
    store.write_manifest(Manifest(manifest(out).settings, (first, fewer), True))
    assert any("4 procedures instead of 10" in notice for notice in batch(path, out, **options).notices)
    assert files(out) == whole


@pytest.mark.parametrize(
    "records",
    [
        [{"id": 0, "steps": ["Stir."]}, {"id": False, "text": "Stir."}, {"id": 1.5, "steps": ["Stir."]}],
        [{"id": "x", "steps": ["Stir."]}, {"id": "x", "steps": ["Stir."]}, {"id": " x ", "steps": ["Stir."]}],
        [{"fluents": 1, "kind": "procedure", "goal": "Tea", "steps": ["Stir."]}, {"id": " ", "steps": ["Stir."]}],
        [{"steps": ["Stir."]}, {"text": "Stir."}, {"id": "y"}, {"id": ["z"], "steps": ["Stir."] * 3}, "x", 5],
    ],
)
def test_a_shard_without_a_manifest_is_known_whatever_ids_its_procedures_have(
    tmp_path: Path, records: list[Any]
) -> None:
    path, out = lines(tmp_path / "in.jsonl", *records), tmp_path / "out"
    batch(path, out, stages=["segment"], workers=1, max_steps=2)
    (out / MANIFEST).unlink()
    report = batch(path, out, stages=["segment"], workers=1, max_steps=2)
    assert (report.skipped, report.notices) == (1, ())


@pytest.mark.parametrize("part", [None, (1, 1)])
def test_a_retry_that_was_killed_before_its_manifest_loses_nothing(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch, part: tuple[int, int] | None
) -> None:
    """The shard is no longer what the first manifest said, and yet it is not damaged."""
    path, out = menu(tmp_path, 20, goals={4: "burn"}), tmp_path / "out"
    with monkeypatch.context() as patch:
        misbehave(tmp_path, patch)
        batch(path, out, **options)
    with monkeypatch.context() as patch:
        patch.setattr("fluents.batches._Run.finish", lambda *_: None)
        batch(path, out, retry_failed=True, part=part, **options)
    assert not manifest(out).complete
    kept = contents(out)
    report = batch(path, out, **options)
    assert (report.procedures, report.failures, report.skipped, report.notices) == (20, 0, 2, ())
    assert kept.items() - {(MANIFEST, kept[MANIFEST])} <= contents(out).items()


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_a_retry_that_ends_early_leaves_the_results_as_they_were(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch, is_interrupted: bool
) -> None:
    """A run that fails, or is interrupted, hides no shard that it was to retry and did not."""
    path, out = menu(tmp_path, 20, goals={4: "burn", 14: "burn"}), tmp_path / "out"
    with monkeypatch.context() as patch:
        misbehave(tmp_path, patch)
        batch(path, out, **options)
    before, recorded = contents(out), Path(options["replay"])

    def end(_: BatchProgress) -> None:
        if is_interrupted:
            raise KeyboardInterrupt
        recorded.unlink(missing_ok=True)  # before a worker begins

    with pytest.raises(KeyboardInterrupt if is_interrupted else WorkerError):
        batch(path, out, retry_failed=True, on_progress=end, **options)
    assert contents(out) == before
    recording(tmp_path)
    assert batch(path, out, retry_failed=True, **options).failures == 0


def burnt(tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The input and the results of a run with a failure in each of its three shards; a retry would mend them."""
    path, out = menu(tmp_path, 30, goals={4: "burn", 14: "burn", 24: "burn"}), tmp_path / "out"
    with monkeypatch.context() as patch:
        misbehave(tmp_path, patch)
        batch(path, out, **options)
    return path, out


def test_what_a_retry_had_done_when_it_ended_early_is_kept(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One shard is done again and known, one is done again and nobody was told, one is as it was."""
    path, out = burnt(tmp_path, options, monkeypatch)
    before = manifest(out).shards
    good = tmp_path / "good"
    batch(path, good, **options)
    mended = manifest(good).shards

    def stop(now: BatchProgress) -> None:
        if now.failures < 3:
            (out / mended[1].file).write_bytes((good / mended[1].file).read_bytes())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        batch(path, out, retry_failed=True, on_progress=stop, **options)
    assert manifest(out).shards == (mended[0], before[2])
    assert not manifest(out).complete
    report = batch(path, out, retry_failed=True, **options)
    assert (report.failures, report.notices) == (0, ())
    assert files(out) == files(good)


@pytest.mark.parametrize(("engine", "hidden"), [("local", 0), ("ray", 1)])
def test_what_a_worker_elsewhere_may_still_write_is_not_listed(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch, engine: str, hidden: int
) -> None:
    """A worker on another machine is told to end, and nobody knows when it does."""
    path, out = burnt(tmp_path, options, monkeypatch)
    before = manifest(out).shards

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    def workers(_: Any, planned: BatchPlan, *__: Any) -> tuple[LocalProcesses, int]:
        return LocalProcesses(planned.store.folder, planned.settings, 1), 1

    monkeypatch.setattr("fluents.batches.workers.LocalProcess.begin", interrupted)
    monkeypatch.setattr("fluents.batches._workers", workers)
    with pytest.raises(KeyboardInterrupt):
        batch(path, out, retry_failed=True, **options | {"engine": engine})
    assert manifest(out).shards == before[hidden:]
