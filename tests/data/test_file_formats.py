"""Shapes: told apart when reading, and nothing lost in silence when writing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given

from fluents import jsonl
from fluents.data import parquet
from fluents.data.file_formats import FORMATS, Format, lost, read, read_traces, save, write
from fluents.errors import InputError, UnknownNameError
from fluents.records import Annotation, Procedure, Salience, StateChange, Trace, TrackedEntity
from fluents.task_records import CrepeCase
from strategies import traces

CHANGES = (
    StateChange(step=1, entity="water", attribute="temperature", before="cold", after="hot", votes=3),
    StateChange(step=2, entity="cup", attribute="fullness", before="empty", after="full", cluster=0),
)
TRACE = Trace(
    procedure=Procedure(id="w/Make-Tea", goal="Make Tea", steps=("Boil water.", "Pour it."), topic="Food"),
    changes=CHANGES,
)


def _read(tmp_path: Path, text: str) -> list[Any]:
    path = tmp_path / "input"
    path.write_text(text)
    return list(read(path))


PROCEDURE = {"id": "7", "goal": "Make tea", "steps": ["Boil water.", "Pour it."]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PROCEDURE),
        json.dumps(PROCEDURE, indent=2),
        json.dumps([PROCEDURE]),
        json.dumps({"input": [PROCEDURE]}, indent=4),
        json.dumps(PROCEDURE) + "\n" + json.dumps(PROCEDURE | {"id": "8"}) + "\n",
    ],
)
def test_the_api_s_shape_in_all_its_forms(tmp_path: Path, text: str) -> None:
    first = _read(tmp_path, text)[0]
    assert (first.id, first.goal, first.steps) == ("7", "Make tea", ("Boil water.", "Pour it."))


def test_crepe_s_shape(tmp_path: Path) -> None:
    case = {"1": {"goal": "Tea", "steps": [[{"step": "Start."}], [{"type": "step", "step": "Boil."}]]}}
    assert isinstance(_read(tmp_path, json.dumps(case))[0], CrepeCase)


@pytest.mark.parametrize("shape", [shape for shape in FORMATS if shape != "openpi-c-clustered"])
def test_what_is_written_in_a_shape_is_told_apart_and_read(tmp_path: Path, shape: Format) -> None:
    write([TRACE], shape, tmp_path / "out")
    (again,) = read_traces(tmp_path / "out")
    assert again.procedure.steps == TRACE.procedure.steps
    assert {c.templated for c in again.changes} == {c.templated for c in TRACE.changes}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "the file is empty"),
        (" \n\n", "the file is empty"),
        ("hello", "unknown file format"),
        ("{}", "unknown format"),
        ('{"a": 1}', "unknown format"),
        ("[1]", "unknown format"),
        ("3", "unknown file format"),
        ('{"id": "x"}', "unknown format"),
        ('{"id": "x||1", "answers": []}\n[]\n', "expected a JSON object"),
        ('{"id": "x||1", "answers": [', "incomplete JSON"),
        ('{"1": {"goal": "x", "steps": [', "incomplete JSON"),
        ('{"id": "7", "goal": "x", "steps": ["  "]}', "has no text"),
    ],
)
def test_what_is_in_no_shape_is_an_input_error(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(InputError) as error:
        _read(tmp_path, text)
    assert what in error.value.what


def test_a_name_that_is_neither_file_nor_dataset() -> None:
    with pytest.raises(InputError, match="no such file or dataset"):
        read("openpy:dev")
    with pytest.raises(UnknownNameError, match="no split 'valid'"):
        read("openpi:valid")


def test_standard_input_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(json.dumps(PROCEDURE).encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    (procedure,) = read("-")
    assert procedure.id == "7"


@given(traces())
def test_parquet_loses_nothing(trace: Trace) -> None:
    buffer = io.BytesIO()
    parquet.write([trace], buffer)
    buffer.seek(0)
    assert list(parquet.read(buffer, "t.parquet")) == [trace]


def test_a_file_in_parquet(tmp_path: Path) -> None:
    rich = TRACE.replace(
        salience=(Salience(entity="water", rater="A1", value=5),),
        annotations=(
            Annotation(step=1, sentence="s", entity="e", attribute="a", before="b", after="c", modality="both"),
        ),
        entities=(TrackedEntity(name="water", wordings=(("water", "tap water"),)),),
        procedure=TRACE.procedure.replace(extra={"page": 3, "tags": ["a"]}),
    )
    write([rich, TRACE], "parquet", tmp_path / "t.parquet")
    assert list(read(tmp_path / "t.parquet")) == [rich, TRACE]


@pytest.mark.parametrize(
    ("shape", "missing"),
    [
        ("fluents", []),
        ("openpi", ["change.votes", "change.cluster"]),
        ("openpi-c", ["procedure.topic", "change.votes", "change.cluster"]),
        ("openpi2", ["change.cluster"]),
        ("csv", ["procedure.topic", "change.votes", "change.cluster"]),
        ("parquet", []),
    ],
)
def test_what_a_shape_cannot_hold_is_named(shape: Format, missing: list[str]) -> None:
    assert lost([TRACE], shape) == missing


def test_only_the_first_rater_fits_into_openpi2() -> None:
    two = tuple(Salience(entity="water", rater=rater, value=1) for rater in ("A1", "A2"))
    assert "salience of all raters but the first" in lost([TRACE.replace(salience=two)], "openpi2")


def test_clusters_survive_their_own_shape(tmp_path: Path) -> None:
    clustered = TRACE.replace(changes=tuple(change.replace(votes=None, cluster=change.step) for change in CHANGES))
    write([clustered], "openpi-c-clustered", tmp_path / "out")
    (again,) = read_traces(tmp_path / "out")
    assert {(c.templated, c.cluster) for c in again.changes} == {(c.templated, c.cluster) for c in clustered.changes}
    assert "changes without a cluster" in lost([TRACE], "openpi-c-clustered")


def test_the_2020_training_format_is_read(tmp_path: Path) -> None:
    line = {"id": "a||1", "question": " Boil. Now, what happens?", "answer": f"{CHANGES[0].templated}, no idea"}
    (trace,) = _read(tmp_path, json.dumps(line) + "\n")
    assert [change.entity for change in trace.changes] == ["water"]


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "1", "goal": "x", "steps": "Boil"}',
        '{"id": "a||1", "answers": "one string"}\n',
        '{"id": ["a", 1], "query": "Boil.", "answers": ["abcd"]}\n',
        '{"id": [["a"], 1], "query": "Boil.", "answers": []}\n',
        '{"id": "a||0000000010000000", "answers": []}\n',
        '{"fluents": 1, "kind": []}\n',
        '{"fluents": true, "kind": "trace"}\n',
        '{"id": "1", "goal": "x", "steps": ["Boil."]}\n{"id": "1", "goal": "x", "steps": ["Boil."]}\n',
        '[{"id": "1", "goal": "x", "steps": ["a"]}, {"id": "1", "goal": "x", "steps": ["a"]}]',
    ],
)
def test_no_string_passes_for_a_list_and_no_number_breaks_the_reader(tmp_path: Path, text: str) -> None:
    path = tmp_path / "input"
    path.write_text(text)
    with pytest.raises(InputError):
        jsonl.write(read(path), tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_what_the_tasks_lose_is_named() -> None:
    case = CrepeCase(procedure=TRACE.procedure)
    assert "crepe.likelihoods" in lost([case], "parquet")
    assert lost([case], "fluents") == []


def test_an_unknown_shape_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown format 'xml'"):
        write([TRACE], cast("Any", "xml"), tmp_path / "x")


def test_save_refuses_a_name_of_another_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`save` writes only JSONL"):
        save([], tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())
