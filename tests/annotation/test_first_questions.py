"""Projects that have nothing to ask: an error if no stage ever has a question, or else a warning that says why."""

from __future__ import annotations

import pytest

from fluents.annotation import design_of
from fluents.annotation.first_questions import Material, check_questions, first_asking_stage
from fluents.errors import FluentsWarning, InputError
from fluents.records import Procedure, StateChange, Trace

HOT = StateChange(step=1, entity="water", attribute="temperature", before="cold", after="hot")
WET = StateChange(step=2, entity="leaves", attribute="wetness", before="dry", after="wet")
TEXT = Trace(procedure=Procedure(id="tea", goal="Make tea", steps=("Boil water.", "Add leaves.", "Wait.")))
GOLD = TEXT.replace(changes=(HOT,))
OTHER = GOLD.replace(procedure=TEXT.procedure.replace(id="soup"))


@pytest.mark.parametrize(
    ("stages", "material", "reason", "fix"),
    [
        ("vet", Material([TEXT]), "the procedures contain no changes", "stage author"),
        ("salience,clean-changes", Material([TEXT]), "the procedures contain no changes", "fluents track"),
        ("judge", Material([TEXT]), "no predictions to judge", "`system`"),
        (
            "hallucinations",
            Material([TEXT], systems={"s": [OTHER]}),
            "has the id of a procedure",
            "same texts",
        ),
        ("judge", Material([TEXT], systems={"s": [TEXT]}), "the predictions contain no changes", "`system`"),
        ("select", Material([TEXT, OTHER]), r"every procedure \(2 with fewer than 4 steps\)", "`min_steps`"),
        ("select,author", Material([TEXT]), "the filter of the stage select", "choose other procedures"),
        ("entities", Material([GOLD]), "no procedure has changes of more than one entity", "leave out the stage"),
        ("attributes", Material([GOLD]), "no entity has more than one attribute", "leave out the stage"),
        ("expansions", Material([GOLD]), "no other names are known", "stages entities and attributes"),
    ],
)
def test_a_project_that_can_never_ask_anything_is_an_error(
    stages: str, material: Material, reason: str, fix: str
) -> None:
    with pytest.raises(InputError, match=reason) as refused:
        check_questions(design_of("test", stages), material)
    assert "no stage of this project has questions" in refused.value.what
    assert fix in str(refused.value.fix)


@pytest.mark.parametrize(
    ("stages", "material", "said"),
    [
        ("vet,audit", Material([TEXT]), r"contain no changes. The first stage with questions is stage 2 \(audit\)"),
        ("entities,salience", Material([GOLD]), r"more than one entity.* stage 2 \(salience\)"),
        ("correct", Material([TEXT, GOLD]), "an empty list for 1 of 2 procedures, because there is no draft with"),
        ("clean-steps,correct", Material([TEXT], [OTHER]), "no draft has the id of a procedure of the project"),
    ],
)
def test_a_project_that_does_not_ask_as_expected_gives_a_warning(stages: str, material: Material, said: str) -> None:
    with pytest.warns(FluentsWarning, match=said):
        check_questions(design_of("test", stages), material)


@pytest.mark.parametrize(
    ("stages", "material"),
    [
        ("author,vet", Material([TEXT])),
        ("author,correct", Material([TEXT])),
        ("correct", Material([TEXT], [GOLD])),
        ("correct", Material([GOLD])),
        ("judge", Material([TEXT], systems={"s": [OTHER, GOLD]})),
        ("vet,entities", Material([GOLD])),
        ("entities", Material([TEXT.replace(changes=(HOT, WET))])),
    ],
)
def test_a_project_that_asks_at_once_is_fine(stages: str, material: Material) -> None:
    """Warnings are errors in tests."""
    check_questions(design_of("test", stages), material)
    assert first_asking_stage(design_of("test", stages), material) == 1
