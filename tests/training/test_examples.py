"""What a model is taught: every annotated step, in the two orders, and the same each time for the same draw."""

from __future__ import annotations

import random

from fluents.prompts.local import read
from fluents.prompts.transcript import END, MAX_STEP_BYTES, Transcript
from fluents.records import Procedure, StateChange, Trace
from fluents.training.examples import StepExample, digest, drawn, examples, style_of, taught_styles

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Wait.", "Pour it."))
CHANGES = (
    StateChange(step=1, entity="water", attribute="temperature", before="cold", after="hot"),
    StateChange(step=1, entity="kettle", attribute="weight", before="light", after="heavy"),
    StateChange(step=1, entity="air", attribute="humidity", before="dry", after="damp"),
    StateChange(step=3, entity="cup", attribute="fullness", before="empty", after="full"),
)


def test_every_step_of_an_annotated_procedure_is_an_example_and_no_other() -> None:
    unannotated = Trace(procedure=TEA.replace(id="x"))
    traces = [Trace(procedure=TEA, changes=CHANGES), unannotated]
    found = [e for e in examples(traces, "steps") if isinstance(e, StepExample)]
    assert [(e.step, len(e.changes)) for e in found] == [(1, 3), (2, 0), (3, 1)]
    assert len(examples(traces, "transcript")) == 1


def test_the_cleaned_data_has_a_style_of_its_own() -> None:
    assert (style_of("openpi"), style_of("openpi-c"), style_of("openpi-c:train")) == ("plain", "clean", "clean")


def test_an_adapter_was_taught_the_styles_of_its_examples_sorted_and_not() -> None:
    both = [
        *examples([Trace(procedure=TEA, changes=CHANGES)], "steps"),
        *examples([Trace(procedure=TEA, changes=CHANGES)], "steps", "clean"),
    ]
    assert taught_styles(both, 0.3) == ("plain", "clean", "sorted", "clean sorted")
    assert (taught_styles(both[:1], 0), taught_styles(both[:1], 1)) == (("plain",), ("sorted",))
    assert taught_styles(examples([Trace(procedure=TEA, changes=CHANGES)], "transcript"), 0.3) == ("plain",)


def _first() -> StepExample:
    found = examples([Trace(procedure=TEA, changes=CHANGES)], "steps", "clean")[0]
    assert isinstance(found, StepExample)
    return found


def _drawn(seed: int, unknown_count: float, one_pass: float) -> tuple[str, str]:
    """(prompt, target)."""
    prompt, target = drawn(_first(), random.Random(seed), unknown_count=unknown_count, one_pass=one_pass)
    assert (prompt.taught, target.taught) == (False, True)
    return prompt.text, target.text


def test_sampling_is_taught_in_any_order_and_the_single_pass_sorted() -> None:
    orders = {_drawn(n, unknown_count=0, one_pass=0)[1] for n in range(50)}
    assert len(orders) == 6, "all orders of three"
    prompt, target = _drawn(1, unknown_count=0, one_pass=1)
    assert prompt.endswith("Clean Sorted Changes (3):\n")
    assert [line.split(" | ")[0] for line in target.splitlines()] == ["air", "kettle", "water"]


def test_the_count_is_given_or_left_to_the_model() -> None:
    assert "Changes (3):" in _drawn(1, unknown_count=0, one_pass=0)[0]
    assert "Changes (?):" in _drawn(1, unknown_count=1, one_pass=0)[0]


def test_what_is_taught_is_what_the_tracker_reads() -> None:
    _, target = _first().pieces()
    found, rejects = read(target.text, step=1)
    assert {c.templated for c in found} == {c.templated for c in CHANGES[:3]}
    assert rejects == []
    assert _first().pieces() == _first().pieces()


def test_a_transcript_teaches_exactly_what_the_tracker_will_read_and_write() -> None:
    """Joined, with the end token after each answer, the pieces are the tracker's own prompt of the last step."""
    (example,) = examples([Trace(procedure=TEA, changes=CHANGES)], "transcript")
    pieces = drawn(example, random.Random(1), unknown_count=1, one_pass=1)
    assert pieces == example.pieces(), "nothing about it is random"
    assert [piece.taught for piece in pieces] == [False, True] * 3
    assert pieces[3].text == "", "nothing changes in the second step"
    growing = Transcript(TEA)
    growing.answer(CHANGES[:3])
    growing.answer(())
    assert "".join(piece.text + END * piece.taught for piece in pieces[:-1]) == growing.prompt
    assert pieces[-1].text == "cup | fullness | empty | full\n"


def test_a_procedure_too_long_for_a_transcript_is_taught_as_far_as_it_goes() -> None:
    steps = tuple(f"{number} {'stir ' * MAX_STEP_BYTES}" for number in range(12))
    change = StateChange(step=1, entity="pot", attribute="fullness", before="empty", after="full")
    (example,) = examples([Trace(procedure=TEA.replace(steps=steps), changes=(change,))], "transcript")
    pieces = example.pieces()
    assert 2 < len(pieces) < 24
    assert all(str(number) in pieces[2 * number].text for number in range(len(pieces) // 2))


def test_examples_are_told_apart_by_all_that_is_taught() -> None:
    whole = examples([Trace(procedure=TEA, changes=CHANGES)], "steps")
    others = [
        whole[:-1],
        whole[::-1],
        examples([Trace(procedure=TEA, changes=CHANGES)], "transcript"),
        examples([Trace(procedure=TEA, changes=CHANGES)], "steps", "clean"),
        examples([Trace(procedure=TEA, changes=CHANGES[1:])], "steps"),
        examples([Trace(procedure=TEA.replace(goal="Make coffee"), changes=CHANGES)], "steps"),
        [],
    ]
    assert digest(whole) == digest(examples([Trace(procedure=TEA, changes=CHANGES)], "steps"))
    assert len({digest(whole), *map(digest, others)}) == len(others) + 1
