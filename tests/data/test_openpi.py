"""OpenPI: the published files are read whole and written back to the last byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fluents.data import openpi, openpi_write
from fluents.data.datasets import load_traces
from fluents.data.file_formats import lost, write
from fluents.data.file_formats import read as read_any
from fluents.errors import DataMissingError, InputError
from fluents.jsonl import read
from fluents.jsonl import write as write_jsonl
from fluents.records import UNKNOWN_STEP, StateChange
from fluents.text.template import parse

REPO = "allenai/openpi-dataset/data"
COUNTS = {"train": (644, 3216, 23681), "dev": (55, 274, 1744), "test": (111, 560, 4240)}


@pytest.mark.parametrize("split", COUNTS)
def test_version_1_0_comes_back_byte_for_byte(mirror: Path, tmp_path: Path, split: str) -> None:
    """v1.0 → ours → v1.0, through a file of ours, for every line of every file."""
    write_jsonl(load_traces(f"openpi:{split}"), tmp_path / "ours.jsonl")
    traces = list(read(tmp_path / "ours.jsonl"))
    write(traces, "openpi", tmp_path / "again")
    published = sorted((mirror / REPO / "gold" / split).iterdir())
    assert len(published) == (3 if split == "train" else 4)
    for file in published:
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("split", COUNTS)
def test_counts_and_rejects(mirror: Path, split: str) -> None:  # noqa: ARG001
    traces = list(load_traces(f"openpi:{split}"))
    answers = sum(len(trace.changes) + len(trace.rejects) for trace in traces)
    assert (len(traces), sum(len(trace.procedure.steps) for trace in traces), answers) == COUNTS[split]
    rejects = [reject for trace in traces for reject in trace.rejects]
    assert len(rejects) == {"train": 8, "dev": 0, "test": 2}[split]
    assert all("no verb" in reject.reason for reject in rejects)
    assert lost(traces, "openpi") == []


@pytest.mark.parametrize(("split", "odd"), [("dev", 5), ("test", 0)])
def test_version_1_1_comes_back_whole(mirror: Path, tmp_path: Path, split: str, odd: int) -> None:
    """The content of every line (the order of keys varies in the files), but for one procedure of dev, whose
    metadata does not follow from its steps."""
    write(load_traces(f"openpi-v1.1:{split}"), "openpi-v1.1", tmp_path / "again.jsonl")
    again = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()]
    published = [json.loads(line) for line in (mirror / REPO / f"gold-v1.1/{split}.jsonl").read_text().splitlines()]
    differing = [(one, other) for one, other in zip(again, published, strict=True) if one != other]
    assert len(differing) == odd
    assert all(one | {"question_metadata": ...} == other | {"question_metadata": ...} for one, other in differing)


def test_the_training_format_is_read_whole_were_included(mirror: Path) -> None:  # noqa: ARG001
    traces = [trace for split in COUNTS for trace in load_traces(f"openpi:formatted-{split}")]
    assert sum(len(trace.rejects) for trace in traces) == 0
    sentences = [change.sentence for trace in traces for change in trace.changes]
    assert len(sentences) == 29928, "the paper's own count"
    assert sum(sentence.count(" were ") for sentence in sentences) == 6648


def test_parsed_fields_are_the_annotators(mirror: Path) -> None:  # noqa: ARG001
    """The metadata of dev gives entity and attribute apart: the parser finds them again."""
    notes = [note for trace in load_traces("openpi:dev") for note in trace.annotations]
    parsed = [(parse(note.sentence, note.step), note) for note in notes]
    right = sum(isinstance(p, StateChange) and (p.entity, p.attribute) == (n.entity, n.attribute) for p, n in parsed)
    assert right / len(notes) > 0.995


def test_every_dev_change_knows_its_modality_but_a_few(mirror: Path) -> None:  # noqa: ARG001
    changes = [change for trace in load_traces("openpi:dev") for change in trace.changes]
    assert sum(change.modality is None for change in changes) < 0.01 * len(changes)


def test_released_predictions_are_read_without_their_texts(mirror: Path) -> None:  # noqa: ARG001
    traces = list(load_traces("openpi:gpt2-test"))
    assert sum(len(trace.covered_steps) for trace in traces) == 560
    assert traces[0].procedure.steps[0] == UNKNOWN_STEP


def test_a_file_no_mirror_holds_is_named(mirror: Path) -> None:  # noqa: ARG001
    with pytest.raises(DataMissingError, match=r"data/gold-v1\.1/train\.jsonl"):
        list(load_traces("openpi-v1.1:train"))


def _line(step_id: str, **more: Any) -> dict[str, Any]:
    return {"id": step_id, **more}


def test_a_step_is_what_its_question_adds() -> None:
    rows = [
        openpi.row("f:1", _line("w/Fold-a-Hat||1", question=" Take Tom&#x27;s paper. Now, what happens?")),
        openpi.row("f:2", _line("w/Fold-a-Hat||2", question="Take Tom&#x27;s paper. Fold it. Now, what happens?")),
    ]
    (trace,) = openpi.traces(rows, "test")
    assert trace.procedure.steps == ("Take Tom's paper.", "Fold it.")
    assert trace.procedure.goal == "Fold a Hat"


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([_line("a||1", answers=[]), _line("a||1", answers=[])], "the id a||1 occurs twice"),
        ([_line("a||2", answers=[]), _line("a||1", answers=[])], "the id a||1 comes after a||2"),
        (
            [_line("a||1", answers=[]), _line("b||1", answers=[]), _line("a||2", answers=[])],
            "steps of 'a' are not on consecutive lines",
        ),
        ([_line("a||2", question="Boil. Now, what happens?")], "step 1 is missing"),
        ([_line("a", answers=[])], "not of the form"),
        ([_line("a||0", answers=[])], "not of the form"),
        ([_line("a||99999999999", answers=[])], "not of the form"),
        ([_line("a||1", question=" Now, what happens?", answers=[])], "has no text"),
        ([_line("a||1", answers=7)], "not in the OpenPI format"),
        ([_line("a||1", answers=[], answers_metadata=[{}])], "not in the OpenPI format"),
    ],
)
def test_a_broken_file_is_an_input_error(tmp_path: Path, lines: list[dict[str, Any]], what: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError) as error:
        list(read_any(path))
    assert what in error.value.what
    assert str(path) in (error.value.where or "")


def test_a_step_missing_from_answers_alone_is_not_covered() -> None:
    rows = [openpi.row("f:1", _line("a||1", answers=[])), openpi.row("f:2", _line("a||3", answers=["x"]))]
    (trace,) = openpi.traces(rows, "test")
    assert trace.covered == (1, 3)
    assert openpi_write.answers_of(trace, 3) == ["x"]
