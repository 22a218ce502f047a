"""Which lines are steps, where sections and lists do not say so plainly."""

from __future__ import annotations

import pytest

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
