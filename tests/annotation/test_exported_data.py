"""A whole project, and its result in the formats of the datasets: it loads again and scores 1 against itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from decided import BARE, BOILED, FILLED, MOVED, POURED, SOAKED, TEA, change, run, shown
from hypothesis import given
from hypothesis import strategies as st

import fluents as fl
from fluents.annotation import Item, check_answer, design_of, items
from fluents.annotation.design import ProjectDesign
from fluents.data.file_formats import Format, write
from fluents.errors import InputError
from fluents.metrics import Metric, score
from fluents.records import Trace

STAGES = "author,vet,clean-procedures,clean-steps,clean-changes,entities,attributes,salience"
HEATED = change(1, "the kettle water", "heat", "cool", "boiling")
WRITTEN = {
    "A": [BOILED, POURED, SOAKED],
    "B": [BOILED, FILLED, MOVED],
    "C": [HEATED, POURED],
    "D": [SOAKED, change(4, "idea", "color", "red", "blue")],
}
"""A and B see images."""


def answer(item: Item, author: str) -> dict[str, Any]:
    """What everybody says: the idea is wrong, water has two names, temperature too."""
    payload = item.payload
    if item.kind == "author":
        return {"changes": [shown(one) for one in WRITTEN[author]]}
    if item.kind == "vet":
        return {"valid": payload["change"]["entity"] != "idea", "reason": None}
    if item.kind == "entities":
        return {"clusters": [["water", "the kettle water"], ["cup"], ["bag"]]}
    if item.kind == "attributes":
        names = [entry["name"] for entry in payload["names"]]
        heat = [name for name in names if name in ("temperature", "heat")]
        return {"clusters": [group for group in (heat, *([name] for name in names if name not in heat)) if group]}
    by_kind: dict[str, dict[str, Any]] = {
        "clean-procedures": {"procedure": True},
        "clean-steps": {"valid": [True] * 4},
        "clean-changes": {"verdict": "certain"},
    }
    if item.kind == "salience":
        return {"scores": dict.fromkeys(payload["entities"], 3 + (author == "B"))}
    return by_kind[item.kind]


def project() -> ProjectDesign:
    design = design_of("tea", STAGES)
    author = design.stages[0].replace(modalities=("with_image", "without_image"))
    return design.replace(stages=(author, *design.stages[1:]))


@pytest.fixture(scope="module")
def result() -> Trace:
    traces: tuple[Trace, ...] = (BARE,)
    design = project()
    for number in range(1, len(design.stages) + 1):
        traces = run(design, traces, answer, stage=number).traces
    [trace] = traces
    return trace


def test_the_whole_project_leaves_what_its_people_said(result: Trace) -> None:
    assert [(one.entity, one.after, one.votes, one.modality) for one in result.changes] == [
        ("water", "hot", 2, "with_image"),
        ("the kettle water", "boiling", 1, "without_image"),
        ("water", "in the cup", 2, "both"),
        ("cup", "full", 1, "with_image"),
        ("bag", "wet", 2, "both"),
        ("bag", "on the saucer", 1, "with_image"),
    ]
    assert [one.mentions for one in result.clusters] == [("water", "the kettle water"), ("cup",), ("bag",)]
    assert result.clusters[0].attributes[0].mentions == ("temperature", "heat")
    assert {one.rater for one in result.salience} == {"A", "B"}
    assert len(result.annotations) == 10


@pytest.mark.parametrize("format", ["fluents", "openpi", "openpi-v1.1", "openpi-c", "openpi2"])
def test_the_result_loads_again_and_scores_1_against_itself(result: Trace, format: Format, tmp_path: Path) -> None:
    path = tmp_path / "result"
    write([result], format, path)
    [again] = fl.load(path)
    metrics: list[Metric] = ["original", "cluster"] if format != "openpi2" else ["original", "schemata", "states"]
    for metric in metrics:
        found = score(metric, path, path)
        assert all(row.get("f1", row.get("accuracy", 1)) == pytest.approx(found.scale) for row in found.rows.values())
    assert [one.step for one in again.changes] == sorted(one.step for one in result.changes)
    write([again], format, tmp_path / "again")
    assert fl.load(tmp_path / "again")[0].changes == again.changes


def test_openpi_keeps_everybodys_own_words_and_modalities(result: Trace, tmp_path: Path) -> None:
    write([result], "openpi", tmp_path / "openpi")
    [again] = fl.load(tmp_path / "openpi")
    assert again.changes == tuple(one.replace(votes=None) for one in result.changes)
    assert sorted(again.annotations, key=repr) == sorted(result.annotations, key=repr)


def test_openpi2_has_canonical_names_their_wordings_votes_and_salience(result: Trace, tmp_path: Path) -> None:
    write([result], "openpi2", tmp_path / "openpi2.json")
    [again] = fl.load(tmp_path / "openpi2.json")
    assert again.clusters == result.clusters
    assert {one.entity for one in again.changes} == {"water", "cup", "bag"}
    water = again.entities[0]
    assert (water.name, water.wordings, water.votes) == ("water", (("water",), ("the kettle water",)), 5)
    heated = next(one for one in again.changes if one.after == "boiling")
    assert (heated.attribute, heated.alternatives.attribute, heated.votes) == ("temperature", ("heat",), 1)
    assert {(one.entity, one.step): one.value for one in again.salience} == {
        (name, step): 3 for name in ("water", "cup", "bag") for step in (None, 1, 2, 3, 4)
    }


hostile = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(st.lists(st.tuples(st.integers(1, 4), hostile, hostile, hostile, hostile), max_size=5))
def test_whatever_a_form_takes_comes_back_from_our_format(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[int, str, str, str, str]]
) -> None:
    design = design_of("tea", "author:1")
    [item] = items(design, 1, [Trace(procedure=TEA)])
    try:
        kept = check_answer(item, {"changes": [shown(change(*one)) for one in written if one[1].strip()]})
    except (InputError, ValueError):
        return
    found = run(design, [Trace(procedure=TEA)], lambda *_: kept)
    path = tmp_path_factory.mktemp("trace") / "result.jsonl"
    write(found.traces, "fluents", path)
    assert fl.load(path) == list(found.traces)
