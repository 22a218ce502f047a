"""What each line is, where the step finder cannot tell any more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.segmentation import segment
from fluents.segmentation.layout import (
    LayoutLine,
    Role,
    is_part_title,
    is_title,
    read_layout,
    section_role,
    with_group_titles,
    with_usual_labels,
)


def kinds(text: str) -> list[str]:
    return [line.kind for line in read_layout(text)]


@pytest.mark.parametrize(
    ("title", "role"),
    [
        ("Ingredients", "needs"),
        ("INGREDIENTS (serves 4):", "needs"),
        ("Ingredients for the dough", "needs"),
        ("Tools and Materials", "needs"),
        ("Things You’ll Need", "needs"),
        ("Equipment needed", "needs"),
        ("Tips & Warnings", "remarks"),
        ("Method", "steps"),
        ("Instructions:", "steps"),
        ("Ingredients and Method", None),
        ("For the sauce", None),
        ("", None),
    ],
)
def test_section_names(title: str, role: Role | None) -> None:
    assert section_role(title) == role


@pytest.mark.parametrize(
    ("title", "is_part"),
    [
        ("Part 1", True),
        ("Method 2 of 3: Using a kettle", True),
        ("PART TWO - The roof", True),
        ("Part 1 goes on top of part 2", False),
        ("Part 1 of the kit.", False),
        ("Party 1", False),
    ],
)
def test_part_titles(title: str, is_part: bool) -> None:
    assert is_part_title(title) == is_part


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1. Cut", LayoutLine("item", "Cut", number=1, marker="1.")),
        ("  (12) Cut", LayoutLine("item", "Cut", indent=2, number=12, marker="(12)")),
        ("\t- [x] Cut", LayoutLine("item", "Cut", indent=4, marker="-")),
        ("- 1) Cut", LayoutLine("item", "Cut", number=1, marker="1)")),
        ("Step 2: Cut", LayoutLine("item", "Cut", number=2, marker="Step 2:")),
        ("STEP TWO", LayoutLine("item", "", number=2, marker="STEP TWO")),
        ("**1. Cut.** Then fold.", LayoutLine("item", "**Cut.** Then fold.", number=1, marker="1.")),
        ("### 3. Cut ###", LayoutLine("heading", "Cut", number=3, marker="3.", level=3)),
        ("**Cut**:", LayoutLine("heading", "Cut", level=7)),
        ("Ingredients:", LayoutLine("heading", "Ingredients:", level=7)),
        ("1.5 cups of flour", LayoutLine("text", "1.5 cups of flour")),
        ("(1 cup) flour", LayoutLine("text", "(1 cup) flour")),
        ("1999. A good year", LayoutLine("text", "1999. A good year")),
        ("Step 1 is the hardest", LayoutLine("text", "Step 1 is the hardest")),
        ("-5 °C is cold", LayoutLine("text", "-5 °C is cold")),
        ("#5 screws", LayoutLine("text", "#5 screws")),
        ("####### seven", LayoutLine("text", "####### seven")),
        ("**Cut** it **twice**", LayoutLine("text", "**Cut** it **twice**")),
    ],
)
def test_single_lines(line: str, expected: LayoutLine) -> None:
    assert read_layout(line) == [expected]


def test_rules_tables_fences_and_references_are_left_out() -> None:
    text = "Cut\n\n***\n\n| a |\n|---|\n~~~\n# text\n~~~\n[1]: https://example.org\nFold"
    assert [line.text for line in read_layout(text) if line.kind != "blank"] == ["Cut", "# text", "Fold"]


def test_underlined_line_is_a_heading_only_when_it_stands_alone() -> None:
    assert kinds("Knot\n====") == ["heading"]
    assert kinds("Cut it\nand pull\n---") == ["text", "text"]
    assert kinds("Cut it.\n---\nPull.") == ["text", "text"]
    assert kinds("- Cut\n---") == ["item"]


def test_number_opening_a_line_is_an_item_only_where_it_counts() -> None:
    assert kinds("Wait until\n8. Then go") == ["text", "text"]
    assert kinds("Go on with:\n8. Cut\n9. Fold") == ["text", "item", "item"]
    assert kinds("1. Wait for\n30. Then go\n2. Stop") == ["item", "text", "item"]


def test_bold_line_inside_an_item_is_text() -> None:
    assert kinds("1. Cut\n**Mind the blade**\n2. Fold") == ["item", "text", "item"]
    assert kinds("1. Cut\n\n**Folding**\n1. Fold") == ["item", "blank", "heading", "item"]


def test_short_line_above_a_list_is_its_title() -> None:
    lines = with_group_titles(read_layout("- Cut\n\nThe wings:\n- Fold\n\nThis is a sentence.\n- Glue"))
    assert [line.text for line in lines if line.kind == "heading"] == ["The wings"]


@pytest.mark.parametrize(
    ("text", "title"), [("Tea", True), ("", False), ("Tea.", False), ("Tea:", False), ("t" * 81, False)]
)
def test_titles_are_short_and_end_in_a_word(text: str, title: bool) -> None:
    assert is_title(text) == title


# Labels that look like words are taken for labels only where they count on.


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
