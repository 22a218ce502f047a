"""Which lines are steps, where sections and lists do not say so plainly."""

from __future__ import annotations

import pytest

from fluents.segmentation import segment
from fluents.segmentation.layout import read_layout, with_group_titles
from fluents.segmentation.sections import find_steps


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("## Ingredients\n### Dough\n- rye\n## Method\nKnead.", ["Knead."]),
        ("Ingredients\n- rye\n\nGlaze:\n- egg\n\nMethod\nKnead.", ["Knead."]),
        ("Ingredients\n- rye\n\nKneading:\n1. Knead\n\nMethod\nBake.", ["Knead", "Bake."]),
        ("## Ingredients\n- rye\n## Kneading\n- Knead", ["Knead"]),
        ("Ingredients\n1. rye\n2. salt\nMethod\n1. Knead", ["Knead"]),
        ("Ingredients\nrye\nsalt\n\n1. Knead\n2. Bake", ["Knead", "Bake"]),
        ("Part 1\n1. Knead\n\nTips\n1. Use rye\n\nPart 2\n1. Bake", ["Knead", "Bake"]),
        ("## About\nBread is old.\n## Method\nKnead. Bake.\n## Serving\nCut it.", ["Knead.", "Bake.", "Cut it."]),
        ("## Dough\nBread is old.\n## Baking\n1. Bake", ["Bread is old.", "Bake"]),
        ("- rye\n- salt\n\n1. Knead\n2. Bake", ["Knead", "Bake"]),
        ("## 1. Knead\n- by hand\n- or not\n## 2. Bake", ["Knead; by hand; or not", "Bake"]),
        ("  - Knead\n- Bake", ["Knead", "Bake"]),
        ("1. Repeat steps 1 and 2. Then rest.", ["Repeat steps 1 and 2. Then rest."]),
        ("Step 1: Knead. Step 2: Bake.", ["Knead.", "Bake."]),
        ("1) Knead 2) Bake 3) Eat", ["Knead", "Bake", "Eat"]),
        ("- Knead!\n\n...\n\n- 🔥", ["Knead! ...", "🔥"]),
        ("", []),
    ],
)
def test_steps(text: str, steps: list[str]) -> None:
    assert find_steps(with_group_titles(read_layout(text))) == steps


@pytest.mark.parametrize("last", [999, 1003, 12_345])
def test_steps_are_counted_past_999(last: int) -> None:
    numbers = range(max(1, last - 1100), last + 1)
    first = f"Step {numbers[0]}: Press key {numbers[0]}.\n" if numbers[0] > 999 else f"{numbers[0]}. Press key.\n"
    assert len(segment(first + "".join(f"{number}. Press key {number}.\n" for number in numbers[1:])).steps) == len(
        numbers
    )


def test_steps_past_999_in_other_forms() -> None:
    for line in ("{}) Press it.", "({}) Press it.", "Step {}: Press it.", "{} Press it.", "{:>5}. Press it."):
        assert len(segment("\n".join(line.format(number) for number in range(1, 1103))).steps) == 1102, line


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1. Wait until\n1999. It is a year.\n2. Go on.", ["Wait until 1999. It is a year.", "Go on."]),
        ("1. Press.\n\n2024. A good year.\n\n2. Go on.", ["Press. 2024. A good year.", "Go on."]),
    ],
)
def test_a_year_is_no_number_of_a_step(text: str, steps: list[str]) -> None:
    assert list(segment(text).steps) == steps


@pytest.mark.parametrize(
    "note",
    [
        "\n\nNote: store the eluate at 4 °C. It keeps for a week.",
        "\nNote: store the eluate at 4 °C.\nIt keeps for a week.",
        "\n\n**Warning:** the buffer is toxic.",
        " Tip: warm the buffer.",
        "\n   - Caution: wear gloves.",
        "\n\nNotes:\n- Store the eluate at 4 °C.",
        "\n\nHinweis: Kühl lagern.",
        "\n\n注意：冷藏。",
        "\n\n> **Note:** store the eluate at 4 °C.",
    ],
)
def test_a_note_after_a_step_is_told_apart(note: str) -> None:
    """The last step of a protocol is often followed by advice, which changes nothing in the world."""
    text = f"1. Spin the column.{{}}\n2. Elute with 50 µl of buffer.{note}"
    assert segment(text.format("")).steps == ("Spin the column.", "Elute with 50 µl of buffer.")
    assert segment(text.format(note)).steps == ("Spin the column.", "Elute with 50 µl of buffer.")


def test_a_step_after_its_note_goes_on() -> None:
    text = (
        "1. Spin. Note: balance the rotor. Discard the liquid.\n\n   Tip: decant.\n\n   Dry the tube.\n2. Note: rest."
    )
    assert segment(text).steps == ("Spin. Discard the liquid. Dry the tube.", "Note: rest.")
    assert segment("1. Set the dial: note: is a word.").steps == ("Set the dial: note: is a word.",)
