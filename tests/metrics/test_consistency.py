"""The consistency score: hand-worked, as properties, and on the published gold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.metrics import score as score_by
from fluents.metrics.consistency import consistency
from fluents.records import Procedure, StateChange, Trace
from strategies import traces

SOUP = Procedure(id="soup", steps=("Fill the bowl.", "Eat.", "Wash up."))


def change(step: int, entity: str, before: str, after: str, attribute: str = "location") -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


def score(*changes: StateChange) -> tuple[float, float, float]:
    rows = consistency([Trace(procedure=SOUP, changes=changes)]).rows
    return rows["exact"]["agreement"], rows["in other words"]["agreement"], rows["carried"]["share"]


def test_three_of_four_changes_are_carried_one_exactly_two_in_other_words() -> None:
    assert score(
        change(1, "soup", "in pot", "in bowl"),
        change(2, "the Soup", "in the bowl", "in mouth"),
        change(3, "soup", "in large mouth", "in stomach"),
        change(3, "soups", "in fridge", "in sink"),
    ) == pytest.approx((100 / 3, 200 / 3, 75))


def test_a_state_is_known_from_the_last_step_that_changed_it_not_from_the_same_step() -> None:
    assert score(change(1, "soup", "in pot", "in bowl"), change(1, "soup", "in bowl", "in mouth"))[2] == 0
    later = (change(1, "soup", "raw", "hot"), change(2, "soup", "hot", "cold"), change(3, "soup", "hot", "mild"))
    assert score(*later)[0] == 50


def test_one_of_several_states_a_step_leaves_is_enough() -> None:
    said = (change(1, "soup", "cold", "warm"), change(1, "soup", "cold", "steaming"), change(2, "soup", "warm", "gone"))
    assert score(*said)[0] == 100


def test_another_attribute_and_another_procedure_are_not_carried() -> None:
    one = Trace(procedure=SOUP, changes=(change(1, "soup", "a", "b"), change(2, "soup", "b", "c", "color")))
    other = Trace(procedure=SOUP.replace(id="other"), changes=(change(1, "soup", "b", "c"),))
    assert consistency([one, other])["carried"]["share"] == 0


def test_changes_without_states_are_not_counted() -> None:
    assert score(change(1, "soup", "", ""), change(2, "soup", "", ""))[2] == 100, "nothing out of nothing"


@given(st.lists(traces(), max_size=3))
def test_exact_agreement_is_agreement_in_other_words(found: list[Trace]) -> None:
    result = consistency(found)
    sums = {name: float(total) for name, total in result.statistics.sums().items()}
    assert 0 <= sums["exact"] <= sums["alike"] <= sums["carried"] <= sums["changes"]
    assert str(result.signature).startswith("metric:consistency|")


def test_the_published_gold_takes_up_a_quarter_of_its_states(mirror: Path) -> None:  # noqa: ARG001 - is read there
    """Golden: annotators of different steps did not see each other's words."""
    found = score_by("consistency", None, "openpi:dev")
    sums = {name: int(total) for name, total in found.statistics.sums().items()}
    assert sums == {"changes": 1744, "carried": 295, "exact": 71, "alike": 81, "units": 274}
