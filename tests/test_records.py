"""The values: frozen, validated, and words kept as they were written."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fluents import jsonl
from fluents.records import Procedure, StateChange, Trace
from strategies import words

PROCEDURE = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it."))
CHANGE = StateChange(step=1, entity="water", attribute="temperature", before="cold", after="boiling")


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        setattr(CHANGE, "after", "lukewarm")  # noqa: B010 - a plain assignment is refused by mypy already


def test_the_free_form_part_of_a_record_cannot_be_changed_either() -> None:
    procedure = Procedure(id="tea", steps=("Boil.",), extra={"page": 3})
    with pytest.raises(TypeError, match="frozen"):
        procedure.extra["page"] = 4
    with pytest.raises(TypeError, match="frozen"):
        procedure.extra.update(page=4)


def test_nor_can_what_is_inside_of_it() -> None:
    procedure = Procedure(id="tea", steps=("Boil.",), extra={"pages": [3, {"lines": [1]}]})
    pages: Any = procedure.extra["pages"]
    attempts: list[Callable[[], object]] = [
        lambda: pages.append(4),
        lambda: pages.__setitem__(0, 4),
        lambda: pages.sort(),
        lambda: pages.__iadd__([4]),
        lambda: pages[1].update(lines=[]),
        lambda: pages[1]["lines"].clear(),
    ]
    for attempt in attempts:
        with pytest.raises(TypeError, match="frozen"):
            attempt()
    assert procedure.extra == {"pages": [3, {"lines": [1]}]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(words, JSON, max_size=3))
def test_any_free_form_part_is_kept_copied_and_written_as_it_came(extra: dict[str, Any]) -> None:
    given_text = json.dumps(extra)
    procedure = Procedure(id="tea", steps=("Boil.",), extra=extra)
    assert json.dumps(procedure.extra) == given_text
    for same in (copy.deepcopy(procedure), procedure.replace(id="tea"), jsonl.loads(jsonl.dumps(procedure))):
        assert same == procedure
        assert jsonl.dumps(same) == jsonl.dumps(procedure)


def test_an_unknown_field_is_an_error_not_a_silent_loss() -> None:
    with pytest.raises(ValidationError):
        Procedure.model_validate({"id": "tea", "steps": ("Boil.",), "author": "me"})


@pytest.mark.parametrize("steps", [("",), (" \n",), ("Boil.", "")])
def test_a_step_without_text_is_refused(steps: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        Procedure(id="tea", steps=steps)


def test_a_number_that_no_json_can_hold_is_refused() -> None:
    with pytest.raises(ValidationError, match="finite"):
        CHANGE.replace(support=float("inf"))


def test_images_are_one_a_step_or_none() -> None:
    with pytest.raises(ValidationError, match="number of images"):
        PROCEDURE.replace(images=("a.jpg",))


@pytest.mark.parametrize("step", [0, 3, -1])
def test_a_change_belongs_to_a_step_of_the_procedure(step: int) -> None:
    with pytest.raises(ValidationError, match="the procedure has steps 1 to 2"):
        Trace(procedure=PROCEDURE, changes=(CHANGE.replace(step=step),))
    with pytest.raises(ValidationError, match="covered"):
        Trace(procedure=PROCEDURE, covered=(step,))


def test_replace_validates_and_keeps_the_rest() -> None:
    warmer = CHANGE.replace(after="hot")
    assert (warmer.after, warmer.before, CHANGE.after) == ("hot", "cold", "boiling")
    with pytest.raises(ValidationError):
        CHANGE.replace(entity="")


def test_a_printed_record_shows_what_it_holds_and_not_what_it_does_not() -> None:
    change = StateChange(step=1, entity="pot", attribute="heat", before="cold", after="hot", support=0.5)
    assert repr(change) == (
        "StateChange(step=1, entity='pot', attribute='heat', before='cold', after='hot', support=0.5)"
    )


def test_the_sentence_is_the_raw_one_where_there_is_one() -> None:
    assert CHANGE.sentence == "temperature of water was cold before and boiling afterwards"
    assert CHANGE.replace(raw="The water boils.").sentence == "The water boils."


def test_a_step_left_out_is_not_a_step_without_changes() -> None:
    trace = Trace(procedure=PROCEDURE, changes=(CHANGE,))
    assert [(step, len(changes)) for step, _, changes in trace.by_step()] == [(1, 1), (2, 0)]
    partial = trace.replace(covered=(1,))
    assert [step for step, _, _ in partial.by_step()] == [1]


def test_changes_can_be_put_in_a_set() -> None:
    assert len({CHANGE, CHANGE.replace(after="boiling"), CHANGE.replace(after="hot")}) == 2


def test_so_can_whole_traces_whatever_they_carry() -> None:
    extra = {"a": [1, {"b": None}], "c": "d"}
    procedures = [Procedure(id="tea", steps=("Boil.",), extra=dict(extra)) for _ in range(2)]
    assert len({Trace(procedure=one) for one in procedures}) == 1
    assert len({*procedures, procedures[0].replace(extra=extra | {"a": []})}) == 2


def test_importing_fluents_stays_light() -> None:
    """The promise of the default install: no torch, transformers or scipy behind `import fluents`."""
    code = "import sys, fluents; print(sorted({'torch', 'transformers', 'scipy', 'numpy', 'typer'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_procedure_is_made_from_a_plain_list_of_steps_and_gets_an_id() -> None:
    assert Procedure(goal="Fry eggs", steps=["Heat oil.", "Add eggs."]).id == "fry-eggs"
    assert Procedure(steps=["Heat oil."]).id == "heat-oil"
    assert Procedure(steps=["加热。"]).id == "procedure"
    given = Procedure(id="p1", goal="Fry eggs", steps=["Heat oil."])
    assert given.replace(goal="Boil eggs").id == "p1"


def test_rows_are_plain_dicts_one_a_change() -> None:
    trace = Trace(
        procedure=Procedure(steps=["Heat oil.", "Add eggs."]),
        changes=(StateChange(step=2, entity="eggs", attribute="location", before="in shell", after="in pan"),),
    )
    [row] = trace.rows()
    assert row["step"] == 2
    assert row["text"] == "Add eggs."
    assert (row["entity"], row["attribute"], row["before"], row["after"]) == ("eggs", "location", "in shell", "in pan")


def test_a_notebook_shows_a_trace_and_markup_in_it_as_text() -> None:
    change = StateChange(step=1, entity="<script>x</script>", attribute="a&b", before="<b>", after="hot")
    shown = Trace(procedure=Procedure(goal="<i>", steps=["<img src=x>"]), changes=(change,))._repr_html_()
    assert "<td>&lt;script&gt;" in shown
    assert "<script" not in shown
    assert "<img" not in shown
