"""Few-shot examples of the llm tracker: drawn with the seed, in every form, never from the procedure itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fluents import jsonl
from fluents.errors import InputError
from fluents.llm import LanguageModel
from fluents.records import Procedure, StateChange, Trace
from fluents.trackers.llm.pipeline import Shots
from fluents.trackers.llm.settings import FORMS, Form, LlmSettings
from fluents.trackers.llm.tracker import LlmTracker
from scripted import Script, water_heats

FEW_SHOT = Path(__file__).parents[2] / "examples" / "few_shot.jsonl"
TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it over the leaves.", "Wait."))


def example_trace(number: int, procedure: Procedure | None = None) -> Trace:
    procedure = procedure or Procedure(id=f"e{number}", goal=f"Goal {number}", steps=(f"Fry egg {number}.",))
    change = StateChange(step=1, entity=f"egg {number}", attribute="state", before="raw", after="fried")
    return Trace(procedure=procedure, changes=(change,))


@pytest.mark.parametrize("form", FORMS)
def test_examples_are_shown_in_the_form_that_is_asked_for(form: Form) -> None:
    model = Script(lambda question: water_heats(question.prompt))
    shots = Shots([example_trace(n) for n in range(5)], 2, seed=1)
    trace = LlmTracker(LanguageModel(model, "script"), LlmSettings(form=form, shots=2), shots=shots).track(TEA)
    assert trace.rejects == ()
    for question in model.asked:
        assert len(set(re.findall(r"Fry egg (\d)\.", question.prompt))) == 2
        assert question.prompt.count("\nAnswer:") == 3


def test_the_seed_draws_and_the_procedure_itself_is_never_an_example() -> None:
    """Neither under its own id nor under another, as in datasets made from one another."""
    copies = [
        example_trace(0, TEA),
        example_trace(1, TEA.replace(id="copy", goal="Brew")),
        example_trace(2, TEA.replace(id="other", steps=("Other.",), goal="make  TEA")),
        example_trace(3),
    ]
    for seed in range(6):
        (only,) = Shots(copies, 1, seed).examples(TEA, "schemata-1", past=True)
        assert "egg 3" in only.answer
    with pytest.raises(InputError, match="only 1 procedure in `examples` can be"):
        Shots(copies, 2, 1, "few.jsonl").examples(TEA, "schemata-1", past=True)
    many = [example_trace(n) for n in range(20)]
    drawn = {Shots(many, 1, seed).examples(TEA, "schemata-1", past=True)[0].answer for seed in range(8)}
    assert len(drawn) > 1
    again = [Shots(many, 3, 5).examples(TEA, "complete-1", past=True) for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize("form", ["schemata", "states", "changes-of", "complete", "whole"])
def test_the_examples_that_come_along_serve_every_form(form: Form) -> None:
    shown = Shots((record for record in jsonl.read(FEW_SHOT) if isinstance(record, Trace)), 3, seed=1)
    for example in shown.examples(TEA, f"{form}-1", past=True):
        assert 'Goal: "' in example.scene
        assert len(example.answer) > 20
