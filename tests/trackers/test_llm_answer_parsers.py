"""What language models' answers are taken to say: tolerant of form, silent about nothing, whatever comes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.llm.answers import UnreadableAnswer
from fluents.prompts import llm as prompts
from fluents.records import Procedure, StateChange
from fluents.trackers.llm import answer_parsers
from fluents.trackers.llm.answer_parsers import MAX_FIELD, MAX_ITEMS, WholeReader
from strategies import changes

ITEM = {"entity": "pot", "attribute": "heat", "before": "cold", "after": "hot"}


@pytest.mark.parametrize(
    "text",
    [
        '{"entities": [{"entity": "pot", "attributes": ["heat", "place"]}]}',
        '{"pot": ["heat", "place"]}',
        '[{"entity": "pot", "attributes": ["heat", "place"]}]',
        '{"entities": {"pot": ["heat", "place"]}}',
        'Sure! Here it is:\n```json\n{"entities": [{"entity": "pot", "attributes": ["heat", "place", "Heat"]}]}\n```',
        '<think>{"lid": ["x"]}</think>{"pot": ["heat", "place"]}',
    ],
)
def test_pairs_in_every_form_models_give_them(text: str) -> None:
    assert answer_parsers.read_pairs(text).said == (("pot", "heat"), ("pot", "place"))


def test_an_empty_list_of_pairs_is_an_answer_and_prose_is_none() -> None:
    assert answer_parsers.read_pairs('{"entities": []}').said == ()
    for text in (
        "",
        "Nothing changes here.",
        '"entities"',
        '{"entity": "pot", "attributes": ["heat"]}',
        '{"entities": [3, null]}',
        '{"entities": "pot"}',
    ):
        with pytest.raises(UnreadableAnswer):
            answer_parsers.read_pairs(text)


def test_a_bad_item_among_good_ones_is_a_reject() -> None:
    found = answer_parsers.read_pairs(
        '{"entities": [{"entity": "pot", "attributes": ["heat"]}, {"entity": ""}, "lid"]}'
    )
    assert found.said == (("pot", "heat"),)
    assert [reject.text for reject in found.rejects] == ["{'entity': ''}", "lid"]


def test_an_entity_without_attributes_is_a_reject_the_published_metric_counts() -> None:
    found = answer_parsers.read_pairs('{"pot": []}')
    assert found.said == ()
    assert [reject.text for reject in found.rejects] == ["pot | "]


def test_more_pairs_than_anybody_wants_are_cut_and_said_so() -> None:
    found = answer_parsers.read_pairs(json.dumps({"pot": [f"a{n}" for n in range(1000)]}))
    assert len(found.said) == MAX_ITEMS
    assert "too many items" in found.rejects[-1].reason


def test_states() -> None:
    assert answer_parsers.read_states('{"before": "cold", "after": 200}') == ("cold", "200")
    assert answer_parsers.read_states('The answer: [{"before": "a\\nb", "after": "c"}].') == ("a b", "c")
    bad = ("{}", '{"before": "cold"}', '{"before": "", "after": "hot"}', '{"before": null, "after": "x"}', "cold, hot")
    for text in (*bad, json.dumps({"before": "x" * (MAX_FIELD + 1), "after": "y"})):
        with pytest.raises(UnreadableAnswer):
            answer_parsers.read_states(text)


def test_changes_of_an_entity() -> None:
    item = {"attribute": "heat", "before": "cold", "after": "hot"}
    found = answer_parsers.read_changes_of(json.dumps({"changes": [item, {"attribute": "x"}]}))
    assert found.said == (("heat", "cold", "hot"),)
    assert [reject.reason for reject in found.rejects] == ["'before' is missing or has no text"]
    assert answer_parsers.read_changes_of(json.dumps([item])).said == (("heat", "cold", "hot"),)
    assert answer_parsers.read_changes_of('{"changes": []}').said == ()
    for text in ('{"changes": [{"attribute": "x"}]}', '{"change": []}', "none"):
        with pytest.raises(UnreadableAnswer):
            answer_parsers.read_changes_of(text)


def test_verdicts() -> None:
    assert answer_parsers.read_verdict('{"changes": true}') is True
    assert answer_parsers.read_verdict('I think {"changes": false}') is False
    assert answer_parsers.read_verdict("Yes.") is True
    for text in ('{"changes": "maybe"}', '{"changes": 1}', "It depends.", ""):
        with pytest.raises(UnreadableAnswer):
            answer_parsers.read_verdict(text)


def test_sentences_keep_what_cannot_be_read_in_its_place() -> None:
    first, last = "heat of pot was cold before and hot afterwards", "place of lid was on before and off after"
    found = answer_parsers.read_sentences(f"{first}\nI think so.\n- lid: open\n{last}")
    assert [(c.entity, c.after) for c in found.said] == [("pot", "hot"), ("lid", "off")]
    assert [(r.text, r.position) for r in found.rejects] == [("I think so.", 1), ("- lid: open", 2)]
    assert answer_parsers.read_sentences("There will be no change.").said == ()
    for prose in ("", "I am sorry, I cannot help.", "x" * 10_000):
        with pytest.raises(UnreadableAnswer):
            answer_parsers.read_sentences(prose)


def whole(*steps: tuple[object, object]) -> str:
    return json.dumps({"steps": [{"step": number, "changes": said} for number, said in steps]})


def test_a_whole_answer_is_read_by_step_number_in_any_order() -> None:
    found = WholeReader(2).all_steps(whole((2, []), (1, [ITEM])))
    assert (found[1].said[0].step, found[2].said) == (1, ())
    assert WholeReader(2).all_steps(whole(("1", [ITEM]), (2, [])))[1].said == found[1].said
    assert WholeReader(2).all_steps(json.dumps({"1": [ITEM], "2": []})) == found


def test_extra_and_repeated_steps_shift_no_others() -> None:
    found = WholeReader(2).all_steps(whole((0, [ITEM]), (1, []), (1, [ITEM]), (2, [ITEM]), (3, [ITEM]), (True, [])))
    assert found[1].said == ()
    assert [change.step for change in found[2].said] == [2]
    assert len(found[0].rejects) == 4
    assert found.keys() == {0, 1, 2}


def test_a_missing_step_makes_the_answer_unreadable_but_the_rest_can_be_had() -> None:
    text = whole((1, [ITEM]), (3, []))
    with pytest.raises(UnreadableAnswer, match="step 2 is missing"):
        WholeReader(3).all_steps(text)
    assert WholeReader(3).those_there(text).keys() == {1, 3}
    for nothing in (whole(), whole((7, [])), "prose", '{"steps": 3}', whole((1, "x"))):
        with pytest.raises(UnreadableAnswer):
            WholeReader(3).those_there(nothing)


def test_of_an_answer_that_breaks_off_the_steps_before_the_last_can_be_had() -> None:
    """Of the last nobody knows whether more was to come."""
    text = json.dumps({"1": [ITEM], "2": [], "3": [ITEM, ITEM]})
    for cut in (text[:-3], text[:-60], text[: text.index('"3"') + 6]):
        with pytest.raises(UnreadableAnswer):
            WholeReader(3).all_steps(cut)
        assert WholeReader(3).those_there(f"Here it is [1]: {cut}").keys() == {1, 2}
    with pytest.raises(UnreadableAnswer):
        WholeReader(3).those_there(text[:20])


@pytest.mark.parametrize(("before", "after"), [("", ""), ('{"steps": ', "}")])
def test_so_can_those_of_a_list_of_steps(before: str, after: str) -> None:
    text = before + json.dumps([{"step": n, "changes": [ITEM]} for n in (1, 2, 3)]) + after
    for cut in (text[: text.rindex("before")], text[: text.index('"step": 3') + 3]):
        assert WholeReader(3).those_there(f"Here it is: {cut}").keys() == {1, 2}
    with pytest.raises(UnreadableAnswer):
        WholeReader(3).those_there(text[: text.index(', {"step": 2')])


def test_infinity_is_no_state_of_an_answer_that_breaks_off() -> None:
    text = json.dumps({"1": [ITEM], "2": [ITEM]}).replace('"hot"', "1e400")
    with pytest.raises(UnreadableAnswer, match="malformed JSON"):
        WholeReader(3).those_there(text[:-3])


def test_a_change_to_the_same_state_is_none_and_a_bad_one_is_a_reject() -> None:
    same, bad = ITEM | {"after": "Cold"}, {"entity": "pot"}
    found = WholeReader(1).all_steps(whole((1, [same, bad, ITEM, ITEM])))[1]
    assert len(found.said) == 1
    assert [(reject.step, reject.reason) for reject in found.rejects] == [(1, "'attribute' is missing or has no text")]


@given(st.lists(changes(3), max_size=5))
def test_what_an_example_shows_is_read_back(shown: list[StateChange]) -> None:
    """The answers shown to a model are answers that the readers understand."""
    procedure = Procedure(id="p", steps=("a", "b", "c"))
    found = WholeReader(3).all_steps(prompts.whole_answer(procedure, shown))
    said = {(c.step, c.entity) for c in shown if c.before.strip() and c.after.strip()}
    assert {(c.step, c.entity) for step in (1, 2, 3) for c in found[step].said} <= {
        (step, " ".join(entity.split())) for step, entity in said
    }
    named = {(" ".join(c.entity.split()), " ".join(c.attribute.split())) for c in shown}
    assert set(answer_parsers.read_pairs(prompts.schemata_answer(shown)).said) <= named


READERS: list[Callable[[str], object]] = [
    answer_parsers.read_pairs,
    answer_parsers.read_states,
    answer_parsers.read_changes_of,
    answer_parsers.read_verdict,
    answer_parsers.read_sentences,
    WholeReader(2).all_steps,
    WholeReader(2).those_there,
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(ITEM),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["entities", "entity", "attributes", "steps", "step", "changes", "before", "after", "1"]),
            inner,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("read", READERS)
@given(text=st.text(st.characters()) | json_values.map(json.dumps))
def test_no_answer_whatever_breaks_a_reader(read: Callable[[str], object], text: str) -> None:
    with suppress(UnreadableAnswer):
        read(text)
