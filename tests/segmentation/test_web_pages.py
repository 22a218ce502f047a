"""Web pages: their steps from schema.org data or from their content, never their menus, comments and footers."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluents.data.inputs import procedures
from fluents.errors import InputError
from fluents.segmentation import read_text, segment
from fluents.segmentation.passages import is_page
from fluents.segmentation.web_pages import MAX_ELEMENTS, read_page
from processor_time import assert_not_quadratic

PAGES = Path(__file__).parents[1] / "fixtures" / "pages"

SOUP = [
    "Peel the onion and chop it finely.",
    "Fry the onion in olive oil until it is soft.",
    "Add the lentils & the stock.",
    "Simmer for 20 minutes. Stir in the lemon juice.",
]
BISCUITS = [
    "Heat the oven to 180 °C and line a tray with baking paper.",
    "Beat the butter with the sugar until it is pale, then beat in the egg.",
    "Stir in the oats and the flour.",
    "Set spoonfuls of the dough on the tray, a hand apart, and flatten them.",
    "Bake for 12 minutes, until the edges are brown. Cool on a rack.",
]
TUBE = [
    "Find the hole. Pump up the tube and hold it under water. Mark the spot where bubbles rise.",
    "Roughen the rubber. Dry the tube and rub the area around the hole with sandpaper until it is dull.",
    "Glue the patch. Spread a thin layer of glue and let it dry for five minutes. Press the patch on firmly.",
    "Test the tube. Pump some air into the tube and listen. Put it back into the tyre if it is silent.",
]


@pytest.mark.parametrize(
    ("name", "goal", "steps"),
    [
        ("recipe_with_data.html", "Lentil Soup with Lemon", SOUP),
        ("recipe_without_data.html", "Oat Biscuits", BISCUITS),
        ("how_to.html", "Patch a Bicycle Tube", TUBE),
    ],
)
def test_saved_pages(name: str, goal: str, steps: list[str]) -> None:
    procedure = segment(read_text(PAGES / name))
    assert (procedure.goal, list(procedure.steps)) == (goal, steps)


def test_pages_of_a_folder_count(tmp_path: Path) -> None:
    for suffix in ("html", "HTM"):
        (tmp_path / f"page.{suffix}").write_bytes((PAGES / "how_to.html").read_bytes())
    assert [procedure.id for procedure in procedures([tmp_path])] == ["patch-a-bicycle-tube", "patch-a-bicycle-tube-2"]


@pytest.mark.parametrize("name", ["recipe_without_data.html", "how_to.html"])
def test_a_page_without_telling_names_keeps_its_lists_and_headings(name: str) -> None:
    """Extractors go by ids and classes; where these say nothing, ingredients must still not become steps."""
    page = re.sub(r' (?:id|class)="[^"]*"', ' class="x1y"', read_text(PAGES / name))
    steps = segment(page).steps
    assert list(steps[:4]) == (BISCUITS if "recipe" in name else TUBE)[:4]
    assert not any("Newsletter" in step or "rolled oats" in step or "Random article" in step for step in steps)


def page_with(data: Any, body: str = "<p>Nothing here.</p>") -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"<script type='application/ld+json'>{text}</script>"
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>"


@pytest.mark.parametrize(
    ("instructions", "steps"),
    [
        (["Boil water. Salt it.", "Add pasta."], ["Boil water. Salt it.", "Add pasta."]),
        ("1. Boil water.\n2. Add pasta.", ["Boil water.", "Add pasta."]),
        ("Boil water. Add pasta.", ["Boil water.", "Add pasta."]),
        ("<ol><li>Boil water.</li><li>Add pasta.</li></ol>", ["Boil water.", "Add pasta."]),
        ("&lt;p&gt;Boil water.&lt;/p&gt;&lt;p&gt;Add pasta.&lt;/p&gt;", ["Boil water.", "Add pasta."]),
        (["Boil water. Add pasta."], ["Boil water.", "Add pasta."]),
        ([{"@type": "HowToStep", "text": "1. Boil <i>water</i>."}], ["Boil water."]),
        ([{"@type": "HowToStep", "name": "Boil water."}, "Add pasta."], ["Boil water.", "Add pasta."]),
        ({"@type": "ItemList", "itemListElement": [{"@type": "ListItem", "item": {"text": "Boil."}}]}, ["Boil."]),
        ([[{"@type": "HowToStep", "text": "Boil."}], {"@type": "HowToTip", "text": "Salt it."}], ["Boil."]),
    ],
)
def test_instructions_of_a_recipe(instructions: Any, steps: list[str]) -> None:
    data = {"@context": "https://schema.org", "@type": "Recipe", "name": "Pasta", "recipeInstructions": instructions}
    for written in (data, [data], {"@graph": [{"@type": "WebPage", "mainEntity": data}]}):
        assert (segment(page_with(written)).goal, list(segment(page_with(written)).steps)) == ("Pasta", steps)


def test_a_how_to_with_sections_and_named_steps() -> None:
    data = {
        "@type": "http://schema.org/HowTo",
        "name": "How to Make Tea",
        "supply": [{"@type": "HowToSupply", "name": "Leaves"}],
        "step": {
            "@type": "HowToSection",
            "itemListElement": [
                {"@type": "HowToStep", "name": "Boil water", "text": "Boil water in a kettle."},
                {"@type": "HowToStep", "name": "Pour", "text": "Fill the cup."},
            ],
        },
    }
    procedure = segment(page_with(data))
    assert (procedure.goal, procedure.steps) == ("Make Tea", ("Boil water in a kettle.", "Pour. Fill the cup."))


def test_data_that_is_broken_or_empty_leaves_the_content() -> None:
    body = "<h1>Make tea</h1><ol><li>Boil water.</li><li>Pour it.</li></ol>"
    for data in ("{broken", "[" * 100_000, {"@type": "Recipe", "name": "Tea"}, {"@type": ["Recipe", 3]}, 5, None):
        assert segment(page_with(data, body)).steps == ("Boil water.", "Pour it."), data


def test_data_may_hold_line_breaks_and_scripts_in_capitals() -> None:
    data = '{"@type": "Recipe", "name": "Tea", "recipeInstructions": "Boil\nwater."}'
    assert segment(page_with(data).replace("script", "SCRIPT")).steps == ("Boil water.",)


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ('<meta property="og:title" content="Plum Cake"><title>Site</title>', "Plum Cake"),
        ('<meta content="Plum &amp; Pear Cake" property="og:title">', "Plum & Pear Cake"),
        (
            '<meta property="og:title" content="Plum Cake - Ovens"><meta property="og:site_name" content="Ovens">',
            "Plum Cake",
        ),
        ('<meta property="og:title" content="Bread - Ovens">', "Bread - Ovens"),
        ("<title>Bread | Ovens</title>", "Bread"),
        ("", ""),
    ],
)
def test_the_title_without_the_name_of_the_site(head: str, title: str) -> None:
    assert read_page(f"<html><head>{head}</head><body><p>Bake.</p></body></html>").title == title


def test_a_heading_is_the_title_unless_it_is_the_name_of_the_site() -> None:
    page = (
        "<html><head><title>Plum Cake | Ovens</title></head><body><h1>Ovens</h1><h1>Plum Cake</h1><p>Bake.</p></body>"
    )
    assert read_page(page).title == "Plum Cake"
    assert (
        read_page("<html><title>Shop</title><body><h1>Plum <em>Cake</em></h1><p>Bake.</p></body>").title == "Plum Cake"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n <!DOCTYPE HTML><p>", True),
        ('<?xml version="1.0"?><!-- saved --><html lang="en">', True),
        ("Type <html> into the file.", False),
        ("<p>Boil.</p>", False),
        ("<headline>", False),
    ],
)
def test_a_page_is_told_from_a_text_with_html(text: str, expected: bool) -> None:
    assert is_page(text) is expected


@pytest.mark.parametrize(
    ("encoding", "named"),
    [("cp1252", "ISO-8859-1"), ("shift_jis", "shift_jis"), ("koi8-r", "KOI8-R"), ("utf-16", None)],
)
def test_a_page_in_the_encoding_it_names(tmp_path: Path, encoding: str, named: str | None) -> None:
    words = {"cp1252": "Crème brûlée", "shift_jis": "味噌を溶く", "koi8-r": "Нарезать лук", "utf-16": "Fülle es"}[
        encoding
    ]
    meta = f'<meta charset="{named}">' if named else ""
    path = tmp_path / "page.html"
    path.write_bytes(
        f"<html><head>{meta}</head><body><h1>x</h1><ol><li>{words}</li></ol></body></html>".encode(encoding)
    )
    assert segment(read_text(path)).steps == (words,)


@pytest.mark.parametrize("meta", ["", '<meta charset="rot13">', '<meta charset="idna">', '<meta charset="utf-7">'])
def test_other_encodings_are_an_error(tmp_path: Path, meta: str) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(f"<html><head>{meta}</head><body>".encode() + b"\xff\xe9</body>")
    with pytest.raises(InputError, match="invalid UTF-8"):
        read_text(path)


HOSTILE = {
    "deep divs": ("", "<div>", 90_000, ""),
    "deep lists": ("", "<ul><li>", 40_000, ""),
    "a long list": ("<ol>", "<li>Boil the water for 5 minutes.</li>", 20_000, "</ol>"),
    "unclosed tags": ("", "<", 90_000, ""),
    "long attributes": ("<p ", "a=b ", 500_000, ">Boil.</p>"),
    "open comments": ("", "<!--", 90_000, ""),
    "open headings": ("", "<h1>", 90_000, ""),
    "open data": ("", "<script type='application/ld+json'>", 50_000, ""),
    "a long text": ("<p>", "Boil the water. ", 100_000, ""),
    "entities": ("<p>", "&amp;", 400_000, ""),
    "metas": ("<meta property='", "content=", 300_000, ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_end_soon(name: str) -> None:
    before, part, times, after = HOSTILE[name]

    def work(size: int) -> None:
        with contextlib.suppress(InputError):
            segment(f"<html><body>{before}{part * size}{after}</body></html>")

    assert_not_quadratic(work, times)


def test_a_page_of_too_many_elements_is_an_error() -> None:
    with pytest.raises(InputError, match=f"more than {MAX_ELEMENTS:,} HTML elements"):
        segment("<html><body>" + "<p>x</p>" * (MAX_ELEMENTS + 1), source="page.html")


MARKUP = st.lists(
    st.sampled_from(
        [
            "<div>",
            "</div>",
            "<ol>",
            "<li>",
            "</li>",
            "<h1>",
            "</h1>",
            "<h2>Steps</h2>",
            "Boil.",
            "&amp;",
            "<!--",
            "-->",
            "<nav>",
            "<script>",
            "</script>",
            "<script type=application/ld+json>",
            '{"@type":"Recipe"}',
            "<p class=menu>",
        ]
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(MARKUP)
def test_any_page_gives_steps_or_an_input_error(parts: list[str]) -> None:
    with contextlib.suppress(InputError):
        assert segment("<html>" + "".join(parts)).steps


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["Recipe", "HowTo", "HowToStep"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["@type", "text", "name", "step", "recipeInstructions", "item"]), inner, max_size=4
        )
    ),
)


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_any_data_is_read_or_passed_over(data: Any) -> None:
    assert segment(page_with(data, "<h1>Tea</h1><ol><li>Boil.</li></ol>")).steps
