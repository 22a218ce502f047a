"""Designs of projects: stages as people type them, with the papers' numbers of judges or their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fluents.annotation import design_of, read_design
from fluents.errors import InputError


def test_stages_have_the_papers_judges_unless_a_number_is_given() -> None:
    design = design_of("soups", "author, vet:5 ,clean-changes")
    assert [(stage.kind, stage.judges) for stage in design.stages] == [("author", 2), ("vet", 5), ("clean-changes", 2)]


@pytest.mark.parametrize(
    "stages", ["", "author,", "writing", "vet:", "vet:0", "vet:-1", "vet:two", "vet:9999", "vet:1:2"]
)
def test_other_words_are_refused_with_a_way_out(stages: str) -> None:
    with pytest.raises(InputError) as refused:
        design_of("soups", stages)
    assert refused.value.fix


def test_no_stage_asks_a_thousand() -> None:
    with pytest.raises(InputError, match="is not a number from 1 to 99"):
        design_of("soups", "vet:999")


def test_a_file_needs_no_name_if_one_is_given(tmp_path: Path) -> None:
    file = tmp_path / "design.json"
    file.write_text(json.dumps({"stages": [{"kind": "vet"}]}))
    assert read_design(file, name="soups").name == "soups"
    with pytest.raises(InputError, match="name"):
        read_design(file)
    file.write_text(json.dumps({"name": "old", "seed": 7, "stages": [{"kind": "vet"}]}))
    assert (read_design(file, name="soups").name, read_design(file, name="soups").seed) == ("soups", 7)
    file.write_text("[]")
    with pytest.raises(InputError, match="dictionary"):
        read_design(file, name="soups")


@pytest.mark.parametrize(("field", "value"), [("name", ""), ("name", "x" * 201), ("consent", " "), ("seed", -1)])
def test_what_is_wrong_with_a_field_is_not_blamed_on_the_stages_or_the_file(
    tmp_path: Path, field: str, value: Any
) -> None:
    (tmp_path / "design.json").write_text(json.dumps({"stages": [{"kind": "vet"}]}))
    given = {"name": "soups", field: value}
    with pytest.raises(InputError) as of_stages:
        design_of(stages="vet", **given)
    with pytest.raises(InputError) as of_file:
        read_design(tmp_path / "design.json", **given)
    assert of_stages.value.where == of_file.value.where == f"`{field}`"


def test_what_is_wrong_in_a_file_is_blamed_on_the_file(tmp_path: Path) -> None:
    file = tmp_path / "design.json"
    file.write_text(json.dumps({"stages": [{"kind": "vet", "judges": -1}]}))
    with pytest.raises(InputError, match="judges") as refused:
        read_design(file, name="soups")
    assert refused.value.where == str(file)
