"""OpenPI-C: the published files come back to the last byte, clusters included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fluents.data import openpi_c
from fluents.data.datasets import load_traces
from fluents.data.file_formats import write
from fluents.errors import InputError
from fluents.jsonl import read
from fluents.jsonl import write as write_jsonl
from fluents.records import StateChange
from fluents.text.template import parse

DATA = "shirley-wu/openpi-c/data"
STEPS = {"train": 2403, "dev": 219, "test": 345}


@pytest.mark.parametrize("split", STEPS)
def test_it_comes_back_byte_for_byte(mirror: Path, tmp_path: Path, split: str) -> None:
    write_jsonl(load_traces(f"openpi-c:{split}"), tmp_path / "ours.jsonl")
    traces = list(read(tmp_path / "ours.jsonl"))
    write(traces, "openpi-c", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (mirror / DATA / f"{split}.jsonl").read_bytes()
    assert (tmp_path / "again.jsonl").read_bytes().count(b"\n") == STEPS[split]


def test_the_clusters_come_back_byte_for_byte(mirror: Path, tmp_path: Path) -> None:
    write(load_traces("openpi-c:test"), "openpi-c-clustered", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (mirror / DATA / "test.jsonl.clustered").read_bytes()


@pytest.mark.parametrize("split", STEPS)
def test_the_parser_undoes_the_template_on_every_change(mirror: Path, split: str) -> None:  # noqa: ARG001
    for trace in load_traces(f"openpi-c:{split}"):
        for change in trace.changes:
            parsed = parse(change.templated, change.step)
            assert isinstance(parsed, StateChange)
            assert parsed == change.replace(cluster=None)


GOOD = {"id": ["w/Fold-a-Hat", 1], "query": "Fold the paper.", "answers": [["paper", "shape", "flat", "folded"]]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": ["w/Fold-a-Hat"]},
        {"id": 3},
        {"id": ["w/Fold-a-Hat", 2]},
        {"query": " "},
        {"query": None},
        {"answers": [["paper", "shape", "flat"]]},
        {"answers": [["paper", "shape", "flat", 4]]},
        {"answers": [["", "shape", "flat", "folded"]]},
    ],
)
def test_a_broken_line_is_an_input_error(wrong: dict[str, Any]) -> None:
    assert len(list(openpi_c.traces([openpi_c.line("f:1", GOOD)], "test"))) == 1
    with pytest.raises(InputError):
        list(openpi_c.traces([openpi_c.line("f:1", GOOD | wrong)], "test"))
