"""Answers: what each form takes, and that nothing else gets through."""

from __future__ import annotations

import json
from typing import Any

import pytest
from decided import BOILED, TEA, TEA_TRACE, shown
from hypothesis import given
from hypothesis import strategies as st

from fluents.annotation import Item, check_answer, design_of, items
from fluents.annotation.design import STAGE_KINDS
from fluents.errors import InputError
from fluents.records import AttributeCluster, EntityCluster, Trace

CLUSTERED = TEA_TRACE.replace(
    clusters=(
        EntityCluster(
            name="water",
            mentions=("water",),
            expansions=("liquid", "tea"),
            attributes=(AttributeCluster(name="location", mentions=("location",), expansions=("place",)),),
        ),
    )
)


def item_of(kind: str, **settings: Any) -> Item:
    """The first item of a stage about the tea."""
    design = design_of("tea", kind)
    stage = design.stages[0].replace(**settings)
    return next(items(design.replace(stages=(stage,)), 1, [CLUSTERED]))


GOOD: dict[str, Any] = {
    "select": {"keep": True},
    "author": {"changes": [shown(BOILED)]},
    "audit": {"missing": [shown(BOILED, type="indirect")]},
    "vet": {"valid": False, "reason": "obscure"},
    "clean-procedures": {"procedure": False},
    "clean-steps": {"valid": [True, True, False, True]},
    "clean-changes": {"verdict": "uncertain"},
    "entities": {"clusters": [["water", "cup"], ["bag"]]},
    "attributes": {"clusters": [["temperature"], ["location"]]},
    "expansions": {"accepted": ["liquid"]},
    "salience": {"scores": {"water": 5, "cup": 0, "bag": 3}},
    "judge": {"verdicts": ["right"], "missing": [{"entity": "kettle", "attribute": "fullness"}]},
    "hallucinations": {"hallucinated": False},
    "correct": {"changes": [{**shown(BOILED), "from": 0}], "blind": None},
}


@pytest.mark.parametrize("kind", STAGE_KINDS)
def test_a_good_answer_is_kept_and_keeping_it_again_changes_nothing(kind: str) -> None:
    item = item_of(kind)
    kept = check_answer(item, GOOD[kind])
    assert kept == GOOD[kind]
    assert check_answer(item, kept) == kept
    assert json.loads(json.dumps(kept)) == kept


BAD: list[tuple[str, Any, str]] = [
    ("vet", [], "not a JSON object"),
    ("vet", {}, "valid"),
    ("vet", {"valid": "yes"}, "valid"),
    ("vet", {"valid": 1}, "valid"),
    ("vet", {"valid": True, "reason": "obscure"}, "must be null"),
    ("vet", {"valid": False, "reason": "<script>"}, "reason"),
    ("vet", {"valid": True, "more": 1}, "more"),
    ("author", {"changes": [shown(BOILED, step=5)]}, "steps 1 to 4"),
    ("author", {"changes": [shown(BOILED, step=0)]}, "step"),
    ("author", {"changes": [shown(BOILED, step=True)]}, "step"),
    ("author", {"changes": [shown(BOILED, step=10**30)]}, "steps 1 to 4"),
    ("author", {"changes": [shown(BOILED, entity=" ")]}, "empty"),
    ("author", {"changes": [shown(BOILED, entity="a\0b")]}, "control characters"),
    ("author", {"changes": [shown(BOILED, entity="a" * 301)]}, "longer than 300"),
    ("author", {"changes": [shown(BOILED, after="hot | warm")]}, "special meaning"),
    ("author", {"changes": [shown(BOILED, entity="a" * 10**6)]}, "entity"),
    ("author", {"changes": [shown(BOILED, entity="\ud800")]}, "entity"),
    ("author", {"changes": [shown(BOILED, after=" Cold ")]}, "does not change"),
    ("author", {"changes": [shown(BOILED, after=f"hot {number}") for number in range(7)]}, "at most 6"),
    ("author", {"changes": "changes"}, "changes"),
    ("audit", {"missing": [shown(BOILED, type="forgotten")]}, "type"),
    ("audit", {"missing": [shown(BOILED, after=f"{n}", type="wrong") for n in range(101)]}, "missing"),
    ("clean-steps", {"valid": [True]}, "4 steps, but the answer has 1"),
    ("clean-changes", {"verdict": "perhaps"}, "verdict"),
    ("entities", {"clusters": [["water", "cup"]]}, "does not contain the name 'bag'"),
    ("entities", {"clusters": [["water", "cup"], ["bag", "water"]]}, "contains the name 'water' twice"),
    ("entities", {"clusters": [["water", "cup", "bag", "sugar"]]}, "'sugar' is not one of"),
    ("entities", {"clusters": [["water", "cup", "bag"], []]}, "clusters"),
    ("expansions", {"accepted": ["sugar"]}, "'sugar' is not one of"),
    ("salience", {"scores": {"water": 6, "cup": 0, "bag": 3}}, "scores"),
    ("salience", {"scores": {"water": 2.5, "cup": 0, "bag": 3}}, "scores"),
    ("salience", {"scores": {"water": 5}}, "does not contain the name"),
    ("judge", {"verdicts": []}, "pairs"),
    ("judge", {"verdicts": ["wrong"]}, "verdicts"),
    ("correct", {"changes": [{**shown(BOILED), "from": 5}]}, "the position of a change"),
    ("correct", {"changes": [{**shown(BOILED), "from": -1}]}, "from"),
    ("correct", {"changes": [], "blind": []}, "blind"),
]


@pytest.mark.parametrize(("kind", "answer", "message"), BAD)
def test_a_bad_answer_is_refused_and_told_why(kind: str, answer: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_answer(item_of(kind), answer)


def test_words_lose_spaces_and_repeated_changes_count_once() -> None:
    twice = [shown(BOILED, entity=" the\n water "), shown(BOILED, entity="The water")]
    kept = check_answer(item_of("author"), {"changes": [shown(BOILED, step=2), *twice]})
    assert [(one["step"], one["entity"]) for one in kept["changes"]] == [(1, "the water"), (2, "water")]


def test_a_blind_pass_is_asked_for_where_the_design_says_so() -> None:
    item = item_of("correct", blind_first=True)
    with pytest.raises(InputError, match="blind"):
        check_answer(item, {"changes": []})
    assert check_answer(item, {"changes": [], "blind": [shown(BOILED)]})["blind"] == [shown(BOILED)]


def test_a_filled_form_may_not_add_more_than_a_hundred_changes_to_a_draft() -> None:
    many = [{**shown(BOILED, after=f"{number}"), "from": None} for number in range(106)]
    assert check_answer(item_of("correct"), {"changes": many[:105]})
    with pytest.raises(InputError, match="at most 100"):
        check_answer(item_of("correct"), {"changes": many})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
named = st.sampled_from(
    ["keep", "changes", "missing", "valid", "procedure", "verdict", "clusters", "accepted", "scores", "verdicts"]
)


@given(st.sampled_from(STAGE_KINDS), st.dictionaries(named | st.text(), json_values, max_size=3))
def test_any_answer_is_kept_or_refused(kind: str, answer: Any) -> None:
    item = item_of(kind)
    try:
        kept = check_answer(item, answer)
    except InputError:
        return
    assert check_answer(item, kept) == kept


def test_a_procedure_without_images_has_none_in_its_payload() -> None:
    bare = Trace(procedure=TEA.replace(images=()))
    item = next(items(design_of("tea", "author"), 1, [bare]))
    assert "images" not in item.payload["procedure"]
