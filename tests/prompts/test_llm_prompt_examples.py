"""Examples are of other procedures than the one asked about, however that one is disguised."""

from __future__ import annotations

import pytest

from fluents.errors import InputError
from fluents.prompts.llm import is_same, of_others
from fluents.records import Procedure

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.",))


@pytest.mark.parametrize(
    "other",
    [
        TEA.replace(goal="Brew", steps=("Wait.",)),
        TEA.replace(id="1", steps=("Wait.",), goal="make  TEA"),
        TEA.replace(id="1", goal="Brew", steps=("boil the\nwater.",)),
    ],
)
def test_an_id_a_goal_or_the_steps_give_a_procedure_away(other: Procedure) -> None:
    assert is_same(TEA, other)


def test_two_procedures_without_a_goal_are_two() -> None:
    assert not is_same(TEA.replace(goal=""), Procedure(id="2", steps=("Wait.",)))


def test_the_first_of_others_are_taken_and_too_few_are_told() -> None:
    drawn = [(TEA.replace(id=f"{n}", goal=f"goal {n}", steps=(f"step {n}",)), n) for n in range(3)]
    assert of_others([(TEA, 9), *drawn], TEA, 2, "x.jsonl") == [0, 1]
    with pytest.raises(InputError, match="`shots` is 4, but only 3 procedures in `examples` can be"):
        of_others([(TEA, 9), *drawn], TEA, 4, "x.jsonl")
