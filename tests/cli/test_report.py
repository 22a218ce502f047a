"""fluents report: the files it writes, and what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fluents import jsonl
from fluents.cli import main
from fluents.records import Procedure, StateChange, Trace

CHANGE = StateChange(step=1, entity="pot", attribute="heat", before="cold", after="hot")


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "traces.jsonl"
    jsonl.write((Trace(procedure=Procedure(id=name, steps=("Boil.",)), changes=(CHANGE,)) for name in "abc"), path)
    return path


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["fluents", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_it_writes_a_page_and_markdown(
    monkeypatch: pytest.MonkeyPatch, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "--gold", traces, "--pred", traces, "-o", tmp_path / "scores.html") == 0
    assert "100.00" in (tmp_path / "scores.html").read_text(encoding="utf-8")
    assert (tmp_path / "scores.md").read_text(encoding="utf-8").startswith("# Scores on ")
    assert capsys.readouterr().out == ""


def test_what_it_refuses(
    monkeypatch: pytest.MonkeyPatch, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, message in (
        (("--pred", traces, "--pred", traces), "given twice"),
        (("--pred", traces, "--mode", "loose"), "Invalid value for '--mode'"),
        (("--pred", tmp_path / "none.jsonl"), "no such file or dataset"),
        (("--pred", traces, "-o", tmp_path / "no" / "where"), "cannot write the file"),
    ):
        assert call(monkeypatch, "--gold", traces, *arguments) == 2
        assert message in capsys.readouterr().err


@pytest.mark.usefixtures("mirror")
def test_the_released_predictions_beside_the_published_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arguments = ("--gold", "openpi:test", "--pred", "openpi:gpt2-test", "-o", tmp_path / "scores")
    assert call(monkeypatch, *arguments) == 0
    text = (tmp_path / "scores.md").read_text(encoding="utf-8")
    for number in ("4.24", "16.07", "32.38", "7.38"):
        assert number in text
