"""The shipped weights are what the benchmark makes of CREPE's development split and our own events."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluents.data.corpus import judged_procedures
from fluents.data.crepe import load
from fluents.questions.feature_judge import shipped_models
from fluents.records import Trace

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "crepe.py"


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    return runpy.run_path(str(BENCHMARK))


@pytest.fixture(scope="module")
def data(study: dict[str, Any], mirror: Path) -> list[Any]:  # noqa: ARG001
    """The development split without states: those of a tracker would take minutes."""
    cases = list(load("dev"))
    return list(study["labelled"](cases, {case.id: Trace(procedure=case.procedure) for case in cases}, "none"))


@pytest.fixture(scope="module")
def ours(study: dict[str, Any]) -> list[Any]:
    """Our own events, without states too."""
    traces = (Trace(procedure=one.trace.procedure) for one in judged_procedures())
    return list(study["own_events"]({trace.id: trace for trace in traces}, "none"))


def test_the_shipped_weights_can_be_made_again(study: dict[str, Any], data: list[Any], ours: list[Any]) -> None:
    made, shipped = study["learnt"](data, ours, 0), shipped_models().without_states
    assert made.features == shipped.features
    assert made.odds == shipped.odds
    assert np.allclose(made.weights, shipped.weights, atol=0.01)


def test_every_procedure_is_judged_once_by_weights_that_have_not_seen_it(
    study: dict[str, Any], data: list[Any]
) -> None:
    judged = []
    for others, fold in study["folds"](data, 7, 0):
        assert not {one.case.id for one in others} & {one.case.id for one in fold}
        judged += [one.case.id for one in fold]
    assert sorted(judged) == sorted(one.case.id for one in data)


def test_the_cross_validated_score_in_the_docs(study: dict[str, Any], data: list[Any], ours: list[Any]) -> None:
    assert study["cross_validated"](data, ours, "none", 0)["macro"]["f1"] == pytest.approx(40.2, abs=0.5)
