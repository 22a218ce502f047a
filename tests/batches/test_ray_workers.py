"""Batch runs on a real Ray cluster of two nodes: killed workers, a lost node, hung and bad rows; the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

import ray
from ray.cluster_utils import Cluster

from fluents.batches import BatchProgress, batch
from fluents.batches.workers import WorkerError
from kitchen import each_once, files, menu, misbehave, recording, served

# Ray itself leaves sockets and files to the end of the process, and warns of what its next release will do.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

Options = dict[str, Any]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A head and a node beside it, each with two cores; their workers misbehave where a goal says so."""
    misbehave(tmp_path, monkeypatch)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    here = {"num_cpus": 2, "include_dashboard": False}
    started = Cluster(initialize_head=True, head_node_args=here)
    try:
        started.add_node(**here)
        ray.init(address=started.address, log_to_driver=False, logging_level=50)
        yield started
    finally:
        ray.shutdown()
        started.shutdown()


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return {"stages": ["segment", "track"], "shard_size": 20, "replay": recording(tmp_path), "workers": 4}


def actors() -> list[int]:
    """The processes of workers: Ray names them after their class."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and b"ray::ShardActor" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return sorted(found)


class Killer(threading.Thread):
    """Kills a worker when a fifth of the work is done, and the second node when half of it is."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._cluster, self._node = cluster, cluster.list_all_nodes()[1]
        self.share = 0.0
        self.killed: list[str] = []

    def told(self, progress: BatchProgress) -> None:
        self.share = progress.procedures / progress.total

    def run(self) -> None:
        self._wait(0.2)
        os.kill(actors()[0], signal.SIGKILL)
        self.killed.append("worker")
        self._wait(0.5)
        self._cluster.remove_node(self._node, allow_graceful=False)
        self.killed.append("node")

    def _wait(self, share: float) -> None:
        while self.share < share:
            time.sleep(0.02)


def test_2000_procedures_survive_a_killed_worker_and_a_lost_node_byte_for_byte(
    cluster: Cluster, tmp_path: Path, options: Options
) -> None:
    path = menu(tmp_path, 2000, goals=dict.fromkeys(range(0, 2000, 8), "slow"))
    killer = Killer(cluster)
    killer.start()
    report = batch(path, tmp_path / "ray", engine="ray", on_progress=killer.told, **options)
    assert killer.killed == ["worker", "node"]
    assert len(report.lost) >= 2
    assert report.failures == 0
    assert each_once(tmp_path / "ray", 2000)
    batch(path, tmp_path / "local", **options | {"workers": 2})
    assert files(tmp_path / "ray") == files(tmp_path / "local")


@pytest.mark.usefixtures("cluster")
def test_bad_hung_and_deadly_rows_fail_alone(tmp_path: Path, options: Options) -> None:
    path = menu(tmp_path, 100, goals={5: "burn", 30: "hang", 70: "die"})
    with path.open("ab") as stream:
        stream.write(b"{\n")
    report = batch(path, tmp_path / "out", engine="ray", timeout=3, **options)
    failed = {trace.id: trace.error or "" for trace in served(tmp_path / "out") if trace.error}
    assert failed.keys() == {"dish-5", "dish-30", "dish-70", "menu.jsonl:101"}
    assert "it burnt" in failed["dish-5"]
    assert "no progress" in failed["dish-30"]
    assert "died" in failed["dish-70"]
    assert report.procedures == 101


def test_a_cluster_that_is_not_there_is_told(tmp_path: Path, options: Options) -> None:
    with pytest.raises(WorkerError, match="cannot connect to a Ray cluster"):
        batch(menu(tmp_path, 5), tmp_path / "out", engine="ray", address="127.0.0.1:1", **options)


def test_a_cluster_of_this_run_refuses_whoever_does_not_know_its_token(tmp_path: Path) -> None:
    """Ray listens on all interfaces, and runs any code that a client sends."""
    code = f"""
import os, subprocess, sys
import ray
from fluents.batches.ray_workers import RayActors
from fluents.batches.stages import BatchSettings
source = RayActors({str(tmp_path)!r}, BatchSettings(stages=("segment",)), address=None)
join = [sys.executable, "-c", f"import ray; ray.init(address={{ray.get_runtime_context().gcs_address!r}})"]
for token in ({{}}, {{"RAY_AUTH_TOKEN": "0" * 64}}):
    done = subprocess.run(join, env=os.environ | token, capture_output=True, text=True)
    print(done.returncode, "AuthenticationError" in done.stderr)
source.close()
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["0 False", "1 True"], done.stderr
