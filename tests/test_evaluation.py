"""An evaluation: every input file is opened once, whatever is asked for; options that do not fit are refused."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from fluents.cli import main
from fluents.data.file_formats import Format, write
from fluents.errors import FluentsError
from fluents.evaluation import PARTS, Evaluation, evaluate
from fluents.metrics import METRICS, Metric
from fluents.records import AttributeCluster, EntityCluster, Procedure, Salience, StateChange, Trace
from fluents.salience.filter import Keep
from fluents.task_records import CrepeCase, Likelihood

Opens = Callable[..., Counter[str]]
_opened: Counter[str] = Counter()


def _count(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        _opened[str(arguments[0])] += 1


def _watch() -> None:
    sys.addaudithook(_count)  # it sees every open, by whatever function


def _opens(work: Callable[..., object], *arguments: object) -> Counter[str]:
    _opened.clear()
    work(*arguments)
    return _opened


@pytest.fixture(scope="module")
def opens() -> Iterator[Opens]:
    """How often a call opens each file. It runs in another process: a hook cannot be taken away again, and while it
    stands, threads that start at the same moment can fail to install the trace function of coverage."""
    with ProcessPoolExecutor(1, get_context("spawn"), _watch) as watched:
        yield lambda work, *arguments: watched.submit(_opens, work, *arguments).result()


def trace(name: str, after: str) -> Trace:
    change = StateChange(step=1, entity="pot", attribute="heat", before="cold", after=after, modality="both")
    pot = EntityCluster(name="pot", mentions=("pot",), attributes=(AttributeCluster(name="heat", mentions=("heat",)),))
    return Trace(
        procedure=Procedure(id=name, goal=name, steps=("Boil the pot.",), topic="Food"),
        changes=(change,),
        clusters=(pot,),
        salience=(
            Salience(entity="pot", rater="A1", value=len(name)),
            Salience(entity="pot", rater="A1", step=1, value=3),
        ),
    )


GOLD = [trace(name, "hot") for name in ("a", "bb", "ccc")]
PRED = [trace(name, "warm") for name in ("a", "bb", "ccc")]
SHAPES = ("fluents", "openpi-v1.1", "parquet")


def written(folder: Path, shape: Format) -> tuple[str, str]:
    paths = folder / "gold.file", folder / "pred.file"
    for path, traces in zip(paths, (GOLD, PRED), strict=True):
        write(traces, shape, path)
    return str(paths[0]), str(paths[1])


ASKED: list[tuple[Metric, dict[str, Any]]] = [
    ("original", {}),
    ("original", {"by": "mentioned", "errors": True, "worst": 2}),
    ("original", {"by": "topic", "mode": "strict"}),
    ("original", {"keep": Keep(min_salience=2)}),
    ("cluster", {"by": "seen", "worst": 1}),
    ("error-types", {}),
    ("schemata", {"by": "topic"}),
    ("states", {"by": "position"}),
    ("complete", {}),
    ("consistency", {}),
]


def _evaluate(metric: Metric, gold: str, pred: str, asked: dict[str, Any]) -> None:
    evaluate(metric, gold, pred, **asked)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("metric", "asked"), ASKED)
def test_every_file_is_opened_once(
    tmp_path: Path, opens: Opens, shape: Format, metric: Metric, asked: dict[str, Any]
) -> None:
    gold, pred = written(tmp_path, shape)
    opened = opens(_evaluate, metric, gold, pred, asked)
    expected = [pred] if metric == "consistency" else [gold, pred]
    assert {path: opened[path] for path in (gold, pred) if opened[path]} == dict.fromkeys(expected, 1)


def test_the_same_file_on_both_sides_is_opened_once(tmp_path: Path, opens: Opens) -> None:
    gold, _ = written(tmp_path, "fluents")
    assert evaluate("salience", gold, gold, rater="A1").score["local smoothed"]["r"] == 1
    assert evaluate("clustering", gold, gold).score["exact"]["f1"] == 100
    assert opens(_evaluate, "salience", gold, gold, {"rater": "A1"})[gold] == 1
    assert opens(_evaluate, "clustering", gold, gold, {})[gold] == 1


def test_a_crepe_file_is_opened_once(tmp_path: Path, opens: Opens) -> None:
    path = tmp_path / "crepe.jsonl"
    likely = Likelihood(step=1, event="it boils", change="more likely")
    write([CrepeCase(procedure=GOLD[0].procedure, likelihoods=(likely,))], "fluents", path)
    assert evaluate("crepe", path, path).score["more likely"]["f1"] == 100
    assert opens(_evaluate, "crepe", str(path), str(path), {})[str(path)] == 1


def command(*arguments: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fluents", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code


def test_compare_and_report_open_every_file_once(tmp_path: Path, opens: Opens) -> None:
    gold, pred = written(tmp_path, "openpi-v1.1")
    other = str(tmp_path / "other.jsonl")
    write(GOLD, "fluents", other)
    for arguments in (
        ("eval", "compare", pred, other, "--gold", gold),
        ("report", "--gold", gold, "--pred", pred, "--pred", other, "-o", str(tmp_path / "scores")),
    ):
        opened = opens(command, *arguments)
        assert [opened[path] for path in (gold, pred, other)] == [1, 1, 1], arguments


@pytest.mark.parametrize("shape", SHAPES)
def test_standard_input_is_as_good_as_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shape: Format
) -> None:
    """Also where something looks twice, and where it is both sides."""
    gold, pred = written(tmp_path, shape)
    options = ("--by", "mentioned", "--worst", "1", "--errors", "--json")
    command("eval", "original", "--gold", gold, "--pred", pred, *options)
    from_file = capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(pred).read_bytes())))
    command("eval", "original", "--gold", gold, "--pred", "-", *options)
    assert capsys.readouterr().out == from_file
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(pred).read_bytes())))
    command("eval", "original", "--gold", "-", "--pred", "-", "--by", "topic")
    assert "100.00" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: evaluate("schemata", GOLD, PRED, by="mentioned"), "topic, seen"),
        (lambda: evaluate("crepe", GOLD, PRED, by="topic"), "does not support `by` 'topic'"),
        (lambda: evaluate("schemata", GOLD, PRED, worst=1), "score each step"),
        (lambda: evaluate("clustering", GOLD, "offline"), "only against openpi2:labels"),
        (lambda: evaluate("original", GOLD * 2, PRED, keep=Keep(top=1)), "two traces have the same id, 'a'"),
    ],
)
def test_what_does_not_fit_is_refused(asked: Callable[[], Evaluation], message: str) -> None:
    with pytest.raises(FluentsError, match=message):
        asked()


def test_parts_are_those_of_known_metrics() -> None:
    assert PARTS.keys() <= METRICS.keys()
