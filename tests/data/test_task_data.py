"""CREPE and Proc2PDDL: read whole, into their own records."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluents.data import crepe
from fluents.data.datasets import DATASETS, load, load_traces
from fluents.errors import InputError
from fluents.jsonl import dumps, loads
from fluents.task_records import CrepeCase, PddlTask

CASE = {
    "goal": "Make toast",
    "steps": [
        [{"step": "Start"}],
        [
            {"type": "step", "step": "Put bread in the toaster."},
            {"type": "entity", "entity": "bread", "attribute": "hot", "change": "more likely"},
            {"type": "event", "event": "I smell toast.", "change": "more likely"},
            {"type": "predicted_event", "event": "I smell smoke.", "change": "less likely"},
        ],
    ],
}


def test_a_case_is_read() -> None:
    (case,) = crepe.cases({"1": CASE}, "file")
    assert case.procedure.steps == ("Put bread in the toaster.",)
    assert case.events == ("I smell toast.",)
    assert [item.predicted for item in case.likelihoods] == [False, False, True]
    (change,) = crepe.trace_of(case).changes
    assert (change.entity, change.attribute, change.before, change.after) == (
        "bread",
        "hot",
        "less likely",
        "more likely",
    )


def test_a_case_that_does_not_start_is_an_input_error() -> None:
    with pytest.raises(InputError, match="first step of case"):
        list(crepe.cases({"1": {"goal": "x", "steps": [[{"step": "Boil."}]]}}, "file"))
    with pytest.raises(InputError, match="not in the CREPE format"):
        list(crepe.cases({"1": {"goal": "x", "steps": []}}, "file"))


@pytest.mark.parametrize(
    ("split", "cases", "items"), [("dev", 42, 309), ("test", 141, 695), ("codex-entities", 42, 634)]
)
def test_crepe_counts(mirror: Path, split: str, cases: int, items: int) -> None:  # noqa: ARG001
    found = [record for record in load(f"crepe:{split}") if isinstance(record, CrepeCase)]
    assert len(found) == cases
    assert sum(len(case.likelihoods) for case in found) == items
    assert all(loads(dumps(case)) == case for case in found)


def test_proc2pddl_is_read_whole(mirror: Path) -> None:
    tasks = [record for record in load("proc2pddl:all") if isinstance(record, PddlTask)]
    assert len(tasks) == 27
    assert sum(len(task.problems) for task in tasks) == 95
    assert all(loads(dumps(task)) == task for task in tasks)
    first = mirror / "zharry29/proc2pddl/pddl_data" / tasks[0].id
    assert tasks[0].domain == (first / "domain.pddl").read_text()
    assert all(len(task.procedure.steps) >= 5 for task in tasks)


def test_every_split_of_every_dataset_can_be_read(mirror: Path) -> None:  # noqa: ARG001
    """Walks the dict, so a dataset is covered the day it is added."""
    for name, dataset in DATASETS.items():
        for split in dataset.splits:
            if (name, split) != ("openpi-v1.1", "train"):  # held by no mirror
                trace = next(iter(load_traces(f"{name}:{split}")))
                assert trace.procedure.steps, f"{name}:{split}"
