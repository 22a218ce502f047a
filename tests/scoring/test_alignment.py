"""Traces and plain lists as answered steps, and the pairing of gold with predictions."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.errors import InputError, UnknownNameError
from fluents.records import Procedure, Reject, StateChange, Trace
from fluents.scoring import Mode
from fluents.scoring.alignment import NOTHING_SCORED, Alignment, Answers, StepAnswers, steps_of
from fluents.text.template import parse_all

WET = "moisture of towel was dry before and wet afterwards"
HOT = "temperature of pan was cold before and hot afterwards"
GOLD = {"tea||1": [WET], "tea||2": [HOT, WET], "soup||1": []}


def pairs(gold: Answers, pred: Answers, mode: Mode = "strict") -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(g.id, g.sentences, p.sentences) for g, p in Alignment(gold, pred, mode)]


def test_unreadable_answers_of_a_trace_keep_their_place() -> None:
    said = ["no idea", WET, "", HOT, "still no idea"]
    changes, rejects = parse_all(said, 1)
    no_answer = Reject(step=1, text="a line of one sample, without a place", reason="because")
    trace = Trace(
        procedure=Procedure(id="tea", steps=("Boil.", "Pour.")),
        changes=tuple(changes),
        rejects=(no_answer, *reversed(rejects)),
    )
    first, second = steps_of([trace])
    assert first.sentences == tuple(said)
    assert (first.id, second.id, second.sentences) == ("tea||1", "tea||2", ())


def test_only_the_steps_a_trace_answered_count() -> None:
    trace = Trace(procedure=Procedure(id="tea", steps=("Boil.", "Pour.", "Drink.")), covered=(1, 3))
    assert [step.id for step in steps_of([trace])] == ["tea||1", "tea||3"]


def test_sentences_are_read_as_changes_where_they_can_be() -> None:
    step = StepAnswers(
        "tea", 2, (WET, "gibberish", StateChange(step=2, entity="e", attribute="a", before="", after="b"))
    )
    assert [change.entity for change in step.changes] == ["towel", "e"]


@pytest.mark.parametrize(
    "bad", [[("tea", [WET])], [("tea||x", [WET])], [("tea||1", WET)], [("tea||1", [3])], [7], [("tea||1", [], 3)]]
)
def test_other_shapes_are_refused(bad: Any) -> None:
    with pytest.raises(InputError):
        list(steps_of(bad))


def test_order_does_not_matter_to_the_pairs_or_the_hash() -> None:
    pred = {"soup||1": [HOT], "tea||2": [], "tea||1": [WET]}
    one, other = Alignment(GOLD, pred, "strict"), Alignment(dict(reversed(GOLD.items())), pred, "strict")
    by_id = lambda pair: pair[0].id  # noqa: E731
    assert sorted(one, key=by_id) == sorted(other, key=by_id)
    assert one.data_hash == other.data_hash


@given(st.dictionaries(st.integers(1, 30), st.lists(st.text(max_size=3), max_size=3), min_size=1), st.randoms())
def test_any_order_gives_every_pair_once(steps: dict[int, list[str]], random: Random) -> None:
    gold = [(f"p||{step}", sentences) for step, sentences in steps.items()]
    pred = [(step_id, [*sentences, "more"]) for step_id, sentences in gold]
    random.shuffle(pred)
    assert sorted(pairs(iter(gold), iter(pred))) == sorted((i, tuple(s), (*s, "more")) for i, s in gold)


def test_the_hash_changes_with_any_gold_sentence_or_id() -> None:
    def hash_of(gold: dict[str, list[str]]) -> str:
        alignment = Alignment(gold, gold, "strict")
        list(alignment)
        return alignment.data_hash

    variants = [GOLD, GOLD | {"tea||1": [WET + "."]}, GOLD | {"tea||3": []}, GOLD | {"tea||1": [HOT]}]
    assert len({hash_of(gold) for gold in variants}) == len(variants)


def test_strict_names_the_first_three_missing_steps() -> None:
    gold: dict[str, list[str]] = {f"tea||{step}": [] for step in range(1, 7)}
    with pytest.raises(
        InputError, match=r"no prediction for 5 of 6 gold steps: tea\|\|1, tea\|\|2, tea\|\|3 and 2 more"
    ):
        pairs(gold, {"tea||6": []})


def test_strict_refuses_predictions_for_steps_that_are_not_there() -> None:
    with pytest.raises(InputError, match=r"1 prediction without a gold step: tea\|\|9"):
        pairs(GOLD, GOLD | {"tea||9": []})


def test_strict_asks_whether_it_is_another_split() -> None:
    with pytest.raises(InputError, match="are for this dataset and split"):
        pairs(GOLD, {"coffee||1": [WET], "coffee||2": [], "coffee||3": []})


@pytest.mark.parametrize("mode", ["compat", "strict"])
def test_gold_without_a_step_is_an_error(mode: Mode) -> None:
    with pytest.raises(InputError, match="the gold contains no step"):
        pairs({}, {}, mode)


def test_strict_refuses_an_empty_prediction_file() -> None:
    with pytest.raises(InputError, match="there are no predictions"):
        pairs(GOLD, [])


@pytest.mark.parametrize("which", ["gold", "pred"])
def test_strict_refuses_a_step_that_comes_twice(which: str) -> None:
    twice = [*GOLD.items(), ("tea||2", [WET])]
    with pytest.raises(InputError, match=r"these ids occur in several .*s: tea\|\|2"):
        pairs(*((twice, GOLD) if which == "gold" else (GOLD, twice)))


def test_compat_does_as_the_published_evaluator_and_warns() -> None:
    """A missing prediction is empty, a foreign one ignored, the last of two taken."""
    alignment = Alignment(GOLD, [("tea||1", [HOT]), ("tea||1", [WET]), ("soup||1", []), ("x||1", [WET])], "compat")
    assert sorted((g.id, p.sentences) for g, p in alignment) == [("soup||1", ()), ("tea||1", (WET,)), ("tea||2", ())]
    assert [warning.split(":")[0] for warning in alignment.warnings] == [
        "these ids occur in several predictions",
        "no prediction for 1 of 3 gold steps",
        "1 prediction without a gold step",
    ]


@pytest.mark.parametrize("pred", [{"coffee||1": [WET]}, {}])
def test_compat_says_where_a_score_says_nothing(pred: dict[str, list[str]]) -> None:
    alignment = Alignment(GOLD, pred, "compat")
    assert len(list(alignment)) == len(GOLD)
    assert alignment.warnings[-1] == NOTHING_SCORED


def test_a_stream_cannot_take_the_last_of_two() -> None:
    with pytest.raises(InputError, match="several predictions"):
        pairs(GOLD, iter([("tea||1", [HOT]), ("tea||1", [WET])]), "compat")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="compat, strict"):
        Alignment(GOLD, GOLD, cast(Mode, "lenient"))


def test_a_pair_comes_as_soon_as_both_its_halves_are_read() -> None:
    """Memory must not grow with the file: streams in the same order never run ahead of their pairs."""
    read = 0
    ahead = []

    def stream() -> Iterator[tuple[str, list[str]]]:
        nonlocal read
        for number in range(1, 501):
            read += 1
            yield f"p||{number}", [WET]

    for count, _ in enumerate(Alignment(stream(), stream(), "strict"), start=1):
        ahead.append(read - 2 * count)
    assert len(ahead) == 500
    assert max(ahead) == 0
