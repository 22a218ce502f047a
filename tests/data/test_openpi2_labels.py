"""The hand-labelled clusters and the model's: their shape, their names, and errors on other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fluents.data import file_catalogue, openpi2_labels
from fluents.errors import InputError, UnknownNameError


@pytest.mark.usefixtures("mirror")
def test_ten_procedures_are_labelled_on_both_levels() -> None:
    entities, attributes = openpi2_labels.entity_labels(), openpi2_labels.attribute_labels()
    assert len(entities) == 10
    assert sum(map(len, entities.values())) == 96
    assert {procedure for procedure, _ in attributes} == {procedure for procedure, _ in entities}
    assert sum(map(len, attributes.values())) == 191


@pytest.mark.usefixtures("mirror")
def test_every_run_speaks_of_the_labelled_names() -> None:
    entities, attributes = openpi2_labels.entity_labels(), openpi2_labels.attribute_labels()
    for run in openpi2_labels.ENTITY_RUNS:
        assert openpi2_labels.entity_run(run).keys() == entities.keys()
    for run in openpi2_labels.ATTRIBUTE_RUNS:
        assert openpi2_labels.attribute_run(run).keys() == attributes.keys()


def test_a_run_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="entity_chat_result_5_run5"):
        openpi2_labels.entity_run(9)


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stands in for the published file of any name."""

    def serve(value: object) -> None:
        monkeypatch.setattr(file_catalogue, "document", lambda *_: (value, str(Path("labels.json"))))

    return serve


def test_shapes_become_one(document: Any) -> None:
    document({"7": {"entities": [["cup", "mug"], ["tea"]]}})
    assert openpi2_labels.entity_labels() == {("7", ""): [["cup", "mug"], ["tea"]]}
    document({"7": {"entity_attr_dict": {"cup | mug": ["heat | warmth", "place"]}}})
    assert openpi2_labels.attribute_labels() == {("7", "cup | mug"): [["heat", "warmth"], ["place"]]}
    document({"7": {"cup": ["cup", "mug"]}})
    assert openpi2_labels.entity_run(1) == {("7", ""): [["cup", "mug"]]}
    document({"7": {"cup": {"heat": ["warmth"], "place": ["place"]}}})
    assert openpi2_labels.attribute_run() == {("7", "cup"): [["heat", "warmth"], ["place", "place"]]}


@pytest.mark.parametrize("value", [[], {"7": {}}, {"7": ["cup"]}, {"7": 3}])
def test_another_shape_is_an_input_error(document: Any, value: object) -> None:
    document(value)
    with pytest.raises(InputError, match="cluster labels"):
        openpi2_labels.entity_labels()
