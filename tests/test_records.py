"""The values: frozen, validated, and words kept as they were written."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from fluents.records import Procedure, StateChange, Trace

PROCEDURE = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it."))
CHANGE = StateChange(step=1, entity="water", attribute="temperature", before="cold", after="boiling")


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        CHANGE.after = "lukewarm"  # type: ignore[misc]


def test_the_free_form_part_of_a_record_cannot_be_changed_either() -> None:
    procedure = Procedure(id="tea", steps=("Boil.",), extra={"page": 3})
    with pytest.raises(TypeError, match="frozen"):
        procedure.extra["page"] = 4
    with pytest.raises(TypeError, match="frozen"):
        procedure.extra.update(page=4)


def test_an_unknown_field_is_an_error_not_a_silent_loss() -> None:
    with pytest.raises(ValidationError):
        Procedure(id="tea", steps=("Boil.",), author="me")  # type: ignore[call-arg]


@pytest.mark.parametrize("steps", [("",), (" \n",), ("Boil.", "")])
def test_a_step_without_text_is_refused(steps: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        Procedure(id="tea", steps=steps)


def test_a_number_that_no_json_can_hold_is_refused() -> None:
    with pytest.raises(ValidationError, match="finite"):
        CHANGE.replace(support=float("inf"))


def test_images_are_one_a_step_or_none() -> None:
    with pytest.raises(ValidationError, match="1 images for 2 steps"):
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


def test_importing_fluents_stays_light() -> None:
    """The promise of the default install: no torch, transformers or scipy behind `import fluents`."""
    code = "import sys, fluents; print(sorted({'torch', 'transformers', 'scipy', 'numpy', 'typer'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
