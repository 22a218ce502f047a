"""--min-salience and --top: gold and predictions lose the same kind of thing, and the score says so."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fluents import jsonl
from fluents.cli import main
from fluents.cli.command import Salient, ScoredSalient
from fluents.errors import InputError
from fluents.evaluation import traces_of
from fluents.records import Procedure, Salience, StateChange, Trace
from fluents.report.terminal import trace_view
from fluents.report.trace_page import to_html

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fluents", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return int(ended.value.code or 0), captured.out, captured.err

    return call


SOUP = Procedure(id="soup", goal="Make leek soup", steps=("Cut the leek.", "Cook the leek."))
TEA = SOUP.replace(id="tea")


def trace(procedure: Procedure, *entities: str, **ratings: float) -> Trace:
    changes = [
        StateChange(step=step, entity=entity, attribute="place", before="out", after="in")
        for step in (1, 2)
        for entity in entities
    ]
    salience = [Salience(entity=name, rater="A1", value=value) for name, value in ratings.items()]
    return Trace(procedure=procedure, changes=tuple(changes), salience=tuple(salience))


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.jsonl"
    jsonl.write([trace(SOUP, "leek", "bank account", leek=5, **{"bank account": 1}), trace(TEA, "leek")], path)
    return path


@pytest.fixture
def pred(tmp_path: Path) -> Path:
    """Of the soup only the leek is predicted; of the tea as the gold has it."""
    path = tmp_path / "pred.jsonl"
    jsonl.write([trace(SOUP, "leek"), trace(TEA, "leek")], path)
    return path


def score(run: Run, *arguments: str | Path) -> Any:
    status, out, err = run("eval", *arguments, "--json")
    assert status == 0, err
    return json.loads(out)


@pytest.mark.parametrize("metric", ["original", "complete"])
def test_what_does_not_matter_is_not_missed(run: Run, gold: Path, pred: Path, metric: str) -> None:
    whole = score(run, metric, "--gold", gold, "--pred", pred, "--mode", "strict")
    kept = score(run, metric, "--gold", gold, "--pred", pred, "--mode", "strict", "--min-salience", "4")
    first = next(iter(kept["scores"]))
    assert kept["scores"][first]["recall"] == 100 > whole["scores"][first]["recall"]


def test_the_signature_and_a_warning_tell_of_it(run: Run, gold: Path, pred: Path) -> None:
    options = ("--top", "1", "--salience-rater", "A1")
    values = score(run, "original", "--gold", gold, "--pred", pred, *options)
    assert "|salience:top1 by A1|version:" in values["signature"]
    assert values["warnings"] == ["1 gold procedure without salience ratings by A1: scored with all entities"]
    assert "salience" not in score(run, "original", "--gold", gold, "--pred", pred)["signature"]


@pytest.mark.usefixtures("mirror")
def test_published_systems_do_not_stand_beside_a_part_of_the_gold(run: Run) -> None:
    arguments = ("complete", "--gold", "openpi2:dev", "--pred", "openpi2-outputs:davinci-sentences")
    assert score(run, *arguments)["published"]
    assert score(run, *arguments, "--min-salience", "4", "--salience-rater", "gpt-4")["published"] == []


def test_a_report_names_what_was_kept(run: Run, gold: Path, pred: Path, tmp_path: Path) -> None:
    status, _, err = run("report", "--gold", gold, "--pred", pred, "-o", tmp_path / "scores", "--min-salience", "4")
    assert status == 0, err
    text = (tmp_path / "scores.md").read_text(encoding="utf-8")
    assert r"gold.jsonl (salience \>=4)" in text.splitlines()[0]
    assert "100.00" in text


def test_what_can_be_asked_wrongly(run: Run, gold: Path, pred: Path) -> None:
    for options, message in (
        (("--min-salience", "9"), "9 is more than 5"),
        (("--top", "0"), "0 is less than 1"),
        (("--salience-rater", "A1"), "--min-salience or --top"),
    ):
        status, _, err = run("eval", "original", "--gold", gold, "--pred", pred, *options)
        assert (status, message in err) == (2, True), err


def test_a_trace_keeps_what_matters() -> None:
    whole = trace(SOUP, "leek", "bank account")
    assert {change.entity for change in Salient(top=1).only(whole).changes} == {"leek"}
    assert Salient().only(whole) is whole


def test_where_nothing_matters_enough_the_reader_is_told(
    run: Run, gold: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else "no change" would be read as a finding, and a full score on nothing as a success."""
    kept = Salient(min_salience=5).only(trace(SOUP, "bank account"), report=True)
    assert kept.changes == ()
    assert "soup: no entity is salient enough; dropped 2 changes" in capsys.readouterr().err
    shown = to_html([kept])
    assert "Filtered by salience (&gt;=5 by offline-1)." in shown
    assert "Nothing changes." not in shown
    Console(width=100).print(trace_view(kept))
    assert "only salient entities are shown (salience >=5 by offline-1)" in capsys.readouterr().out
    pred = tmp_path / "pred.jsonl"
    jsonl.write([trace(SOUP, "bank account"), trace(TEA, "bank account")], pred)
    values = score(run, "original", "--gold", gold, "--pred", pred, "--min-salience", "5")
    assert "2 predicted procedures without a salient entity: scored as empty" in values["warnings"]
    _, _, err = run("report", "--gold", gold, "--pred", pred, "-o", tmp_path / "scores", "--min-salience", "5")
    assert "2 predicted procedures without a salient entity" in err
    assert "without salience ratings" in err


def test_predictions_are_judged_by_their_own_ratings_if_the_rater_gave_some(tmp_path: Path) -> None:
    path = tmp_path / "rated.jsonl"
    jsonl.write([trace(SOUP, "leek", "bank account", leek=1, **{"bank account": 5})], path)
    [by_rater], _ = traces_of(path, ScoredSalient(min_salience=4, salience_rater="A1").keep)
    assert {change.entity for change in by_rater.changes} == {"bank account"}
    [offline], _ = traces_of(path, ScoredSalient(top=1, salience_rater="A2").keep)
    assert {change.entity for change in offline.changes} == {"leek"}


def test_a_rater_without_a_threshold_is_told_of() -> None:
    with pytest.raises(InputError, match="without `min_salience` or `top`"):
        assert ScoredSalient(salience_rater="A1").keep
