"""The one contract of all metrics: what they take, what they refuse; and that no more is imported than needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from fluents import jsonl
from fluents.errors import FluentsError, InputError, UnknownNameError
from fluents.metrics import METRICS, Metric, load, score
from fluents.records import AttributeCluster, EntityCluster, Procedure, Salience, StateChange, Trace
from fluents.task_records import CrepeCase, Likelihood

POT = EntityCluster(name="pot", mentions=("pot",), attributes=(AttributeCluster(name="heat", mentions=("heat",)),))
TEA = Trace(
    procedure=Procedure(id="tea", goal="Make tea", steps=("Boil water.", "Pour it.")),
    changes=(
        StateChange(step=1, entity="pot", attribute="heat", before="cold", after="hot"),
        StateChange(step=2, entity="pot", attribute="heat", before="hot", after="cool"),
    ),
    clusters=(POT,),
    salience=(Salience(entity="pot", rater="A1", value=4), Salience(entity="water", rater="A1", value=2)),
)
CASE = CrepeCase(
    procedure=TEA.procedure, likelihoods=(Likelihood(step=1, event="it boils", change="more likely", predicted=False),)
)


class Encoder:
    """One direction for all words: every text is like every other."""

    name = "same"

    def __call__(self, texts: Any) -> Any:
        import numpy as np

        from fluents.metrics.bertscore import Tokens

        return [Tokens(np.ones((1, 1), dtype=np.float32), np.ones(1, dtype=np.float32)) for _ in texts]


OPTIONS: dict[str, dict[str, Any]] = {"bertscore": {"encoder": Encoder()}, "salience": {"rater": "A1"}}


def test_the_table_and_the_type_name_the_same_metrics() -> None:
    assert set(METRICS) == set(get_args(Metric))


@pytest.mark.parametrize("metric", get_args(Metric))
def test_every_metric_takes_traces_names_and_paths(metric: Metric, tmp_path: Path) -> None:
    """And gives the same score for all of them; one trace is as good as a list with one."""
    gold: Any = CASE if metric == "crepe" else TEA
    pred: Any = gold
    if metric == "agreement":
        pred = TEA.replace(salience=tuple(one.replace(rater="A2") for one in TEA.salience))
    files = tmp_path / "gold.jsonl", tmp_path / "pred.jsonl"
    for record, path in zip((gold, pred), files, strict=True):
        jsonl.write([record], path)
    options = OPTIONS.get(metric, {})
    found = score(metric, gold, pred, **options)
    assert found.rows
    for sides in (([gold], [pred]), (iter([gold]), iter([pred])), files, tuple(map(str, files))):
        again = score(metric, *sides, **options)
        assert str(again) == str(found)
    strict = score(metric, [gold], [pred], mode="strict", **options)
    assert "|mode:strict|" in str(strict.signature)


@pytest.mark.parametrize("metric", get_args(Metric))
def test_what_is_unknown_is_refused_at_once_with_what_there_is(metric: Metric) -> None:
    """Before anything is read: the file does not exist."""
    wrong: Any = "loose"
    with pytest.raises(UnknownNameError, match="compat, strict"):
        score(metric, "nowhere.jsonl", "nowhere.jsonl", mode=wrong)
    with pytest.raises(UnknownNameError, match=f"{metric} has no option `colour`"):
        score(metric, "nowhere.jsonl", "nowhere.jsonl", colour="red")
    with pytest.raises(InputError, match="no such file or dataset"):
        score(metric, "nowhere.jsonl", "nowhere.jsonl", **OPTIONS.get(metric, {}))


def test_an_unknown_metric_and_its_options_are_named() -> None:
    unknown: Any = "perplexity"
    with pytest.raises(UnknownNameError, match="original, cluster"):
        score(unknown, [], [])
    with pytest.raises(UnknownNameError, match="`matchers`, `embedder`, `threshold`"):
        score("cluster", [], [], encoder="x")


def test_only_some_metrics_can_do_without_a_side() -> None:
    for metric in get_args(Metric):
        sides: tuple[Any, Any] = (None, [TEA])
        if metric in ("consistency", "agreement"):
            continue
        with pytest.raises(InputError, match="needs `gold`"):
            score(metric, *sides)
    with pytest.raises(InputError, match="needs `pred`"):
        score("consistency", [TEA], None)
    assert score("consistency", None, TEA)["exact"]["agreement"] == 100
    two = TEA.replace(salience=(*TEA.salience, *(one.replace(rater="A2") for one in TEA.salience)))
    assert score("agreement", two, None)["agreement"]["share"] == score("agreement", None, two)["agreement"]["share"]


@pytest.mark.parametrize("metric", ["schemata", "crepe", "original"])
def test_what_is_not_a_trace_is_told(metric: Metric) -> None:
    with pytest.raises(FluentsError, match=r"dict|CREPE|traces"):
        score(metric, [{}], [{}])


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_of_the_table_can_be_loaded(name: str) -> None:
    assert callable(load(name))


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import fluents.metrics", ("numpy", "scipy", "torch")),
        ("from fluents.metrics import load; load('original')", ("scipy", "torch")),
        ("from fluents.metrics import load; load('cluster')", ("scipy", "torch", "tokenizers", "wordllama")),
    ],
)
def test_heavy_libraries_are_imported_only_when_used(statement: str, absent: tuple[str, ...]) -> None:
    code = f"{statement}\nimport sys\nprint([name for name in {absent!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
