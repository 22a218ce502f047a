"""The worst and the best steps, with gold and predictions."""

from __future__ import annotations

import pytest

from fluents.errors import InputError
from fluents.metrics.original import original
from fluents.metrics.schemata import schemata
from fluents.records import Procedure, Reject, StateChange, Trace
from fluents.scoring.worst_steps import best_steps, cases, worst_steps


def change(step: int, after: str) -> StateChange:
    return StateChange(step=step, entity="pot", attribute="heat", before="cold", after=after)


PROCEDURE = Procedure(id="p", goal="Cook", steps=("Boil.", "Stir.", "Rest.", "Eat."))
GOLD = [Trace(procedure=PROCEDURE, changes=(change(1, "hot"), change(2, "hot"), change(4, "hot"), change(4, "dry")))]
PRED = [
    Trace(
        procedure=Procedure(id="p", steps=("?",) * 4),
        changes=(change(1, "hot"), change(2, "warm")),
        rejects=(Reject(text="no idea", reason="not in the template", step=2, position=1),),
    )
]


def test_the_worst_come_first_and_the_larger_of_equals() -> None:
    places = worst_steps(original(GOLD, PRED), 2, "exact")
    assert [(place.procedure_id, place.step, place.f1) for place in places] == [("p", 2, 0), ("p", 4, 0)]
    assert worst_steps(original(GOLD, PRED), -1) == []


def test_a_step_without_changes_is_no_good_example() -> None:
    assert [place.step for place in best_steps(original(GOLD, PRED), 2)] == [1, 2]


def test_a_case_has_the_text_of_the_gold_and_the_words_of_both() -> None:
    first, second = cases(best_steps(original(GOLD, PRED), 2), GOLD, PRED)
    assert (first.goal, first.text) == ("Cook", "Boil.")
    assert first.place.f1 == pytest.approx(100)
    assert first.gold == first.predicted == tuple(first.shared)
    assert second.predicted == ("no idea", "heat of pot was cold before and warm afterwards")[::-1]
    assert not second.shared


def test_a_missing_prediction_is_an_empty_side() -> None:
    (case,) = cases(worst_steps(original(GOLD, []), 1), GOLD, [])
    assert (case.place.step, case.predicted, len(case.gold)) == (4, (), 2)


def test_a_metric_without_steps_has_no_worst() -> None:
    with pytest.raises(InputError, match="schemata does not compute rouge F1"):
        worst_steps(schemata(GOLD, PRED), 1)
