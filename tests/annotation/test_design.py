"""Designs of projects: stages as people type them, with the papers' numbers of judges or their own."""

from __future__ import annotations

import pytest

from fluents.annotation import design_of
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
