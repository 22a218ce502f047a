"""Labels that look like words are taken for labels only where they count on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.segmentation import segment
from fluents.segmentation.labels import with_usual_labels


@pytest.mark.parametrize(
    "text",
    [
        "a. Boil the water.\nb. Pour it.\nc. Wait.",
        "i. Boil the water.\nii. Pour it.\niii. Wait.",
        "1.1 Boil the water.\n1.2 Pour it.\n2.1 Wait.",
        "1 Boil the water.\n2 Pour it.\n3 Wait.",
        "**Step 1** – Boil the water.\n\n**Step 2** – Pour it.\n\n**Step 3** – Wait.",
    ],
)
def test_labels_are_no_part_of_the_steps(text: str) -> None:
    assert segment(text).steps == ("Boil the water.", "Pour it.", "Wait.")


def test_lettered_items_under_a_numbered_step_belong_to_it() -> None:
    first = "1. Thaw on ice.\n   a. Vortex.\n      i. Gently.\n      ii. Twice.\n   b. Spin down.\n"
    text = f"{first}2. Mix.\n   a. Stir.\n   b. Rest."
    assert segment(text).steps == ("Thaw on ice. Vortex. Gently. Twice. Spin down.", "Mix. Stir. Rest.")


def test_what_stands_in_a_fence_is_left_alone() -> None:
    text = "1. Save this:\n   ```\n   a. one\n   b. two\n   ```\n2. Print it."
    assert segment(text).steps == ("Save this: a. one b. two", "Print it.")


@pytest.mark.parametrize(
    "text",
    [
        "e. coli is grown over night.\nIt is spun down.",
        "a. m. is too early to start.\nc. 1900 they did.",
        "2 eggs are beaten.\n3 tomatoes are chopped.",
        "1 Onion\n2 Carrots\n3 Tomatoes",
        "0.1 M NaCl is added.\n0.2 M Tris is added.",
        "1.5 Liters of water are boiled.\n2.5 Liters are cooled.",
        "a. Boil it.\n   b. Elsewhere.",
    ],
)
def test_words_and_amounts_stay(text: str) -> None:
    assert with_usual_labels(text.split("\n")) == text.split("\n")


@given(st.lists(st.text(alphabet="ab.12 \tBx", max_size=12), max_size=8))
def test_only_the_label_is_ever_rewritten(lines: list[str]) -> None:
    usual = with_usual_labels(lines)
    assert [line.replace(")", ".").replace(".", "").split() for line in usual] == [
        line.replace(".", "").split() for line in lines
    ]
