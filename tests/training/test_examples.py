"""What a model is taught: every annotated step, in the two orders, and the same each time for the same draw."""

from __future__ import annotations

import random

from fluents.prompts.local import read
from fluents.records import Procedure, StateChange, Trace
from fluents.training.examples import TrainingExample, digest, examples, render, render_fixed, style_of, taught_styles

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Wait.", "Pour it."))
CHANGES = (
    StateChange(step=1, entity="water", attribute="temperature", before="cold", after="hot"),
    StateChange(step=1, entity="kettle", attribute="weight", before="light", after="heavy"),
    StateChange(step=1, entity="air", attribute="humidity", before="dry", after="damp"),
    StateChange(step=3, entity="cup", attribute="fullness", before="empty", after="full"),
)


def test_every_step_of_an_annotated_procedure_is_an_example_and_no_other() -> None:
    unannotated = Trace(procedure=TEA.replace(id="x"))
    found = examples([Trace(procedure=TEA, changes=CHANGES), unannotated])
    assert [(e.step, len(e.changes)) for e in found] == [(1, 3), (2, 0), (3, 1)]


def test_the_cleaned_data_has_a_style_of_its_own() -> None:
    assert (style_of("openpi"), style_of("openpi-c"), style_of("openpi-c:train")) == ("plain", "clean", "clean")


def test_an_adapter_was_taught_the_styles_of_its_examples_sorted_and_not() -> None:
    both = [
        *examples([Trace(procedure=TEA, changes=CHANGES)]),
        *examples([Trace(procedure=TEA, changes=CHANGES)], "clean"),
    ]
    assert taught_styles(both, 0.3) == ("plain", "clean", "sorted", "clean sorted")
    assert (taught_styles(both[:1], 0), taught_styles(both[:1], 1)) == (("plain",), ("sorted",))


def _first() -> TrainingExample:
    return examples([Trace(procedure=TEA, changes=CHANGES)], "clean")[0]


def test_sampling_is_taught_in_any_order_and_the_single_pass_sorted() -> None:
    orders = {render(_first(), random.Random(n), unknown_count=0, one_pass=0)[1] for n in range(50)}
    assert len(orders) == 6, "all orders of three"
    prompt, target = render(_first(), random.Random(1), unknown_count=0, one_pass=1)
    assert prompt.endswith("Clean Sorted Changes (3):\n")
    assert [line.split(" | ")[0] for line in target.splitlines()] == ["air", "kettle", "water"]


def test_the_count_is_given_or_left_to_the_model() -> None:
    assert "Changes (3):" in render(_first(), random.Random(1), unknown_count=0, one_pass=0)[0]
    assert "Changes (?):" in render(_first(), random.Random(1), unknown_count=1, one_pass=0)[0]


def test_what_is_taught_is_what_the_tracker_reads() -> None:
    _, target = render_fixed(_first())
    found, rejects = read(target, step=1)
    assert {c.templated for c in found} == {c.templated for c in CHANGES[:3]}
    assert rejects == []
    assert render_fixed(_first()) == render_fixed(_first())


def test_examples_are_told_apart_by_all_that_is_taught() -> None:
    whole = examples([Trace(procedure=TEA, changes=CHANGES)])
    others = [
        whole[:-1],
        whole[::-1],
        examples([Trace(procedure=TEA, changes=CHANGES)], "clean"),
        examples([Trace(procedure=TEA, changes=CHANGES[1:])]),
        examples([Trace(procedure=TEA.replace(goal="Make coffee"), changes=CHANGES)]),
        [],
    ]
    assert digest(whole) == digest(examples([Trace(procedure=TEA, changes=CHANGES)]))
    assert len({digest(whole), *map(digest, others)}) == len(others) + 1
