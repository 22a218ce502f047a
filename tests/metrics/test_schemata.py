"""Schemata: the published and the strict numbers, and what must hold of any prediction."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.data.datasets import load_traces
from fluents.errors import InputError
from fluents.metrics.schemata import schemata
from fluents.records import AttributeCluster, EntityCluster, Procedure, Reject, StateChange, Trace
from fluents.scoring import Mode
from fluents.scoring.bootstrap import intervals

PROCEDURE = Procedure(id="tea", steps=("Boil.", "Pour.", "Drink."))


def pair(step: int, entity: str, attribute: str) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before="", after="")


def trace(*changes: StateChange, clusters: tuple[EntityCluster, ...] = (), rejects: tuple[Reject, ...] = ()) -> Trace:
    return Trace(procedure=PROCEDURE, changes=changes, clusters=clusters, rejects=rejects)


POT = EntityCluster(
    name="pot",
    mentions=("pot", "the kettle"),
    expansions=("boiler",),
    attributes=(
        AttributeCluster(name="heat", mentions=("heat", "temperature")),
        AttributeCluster(name="place", mentions=("place",)),
    ),
)
GOLD = trace(pair(1, "pot", "heat"), pair(2, "pot", "heat"), clusters=(POT,))


@pytest.mark.parametrize(
    ("model", "mode", "expected"),
    [
        ("davinci", "compat", [".362", ".450", ".130", ".155"]),
        ("gpt-3.5", "compat", [".152", ".252", ".046", ".072"]),
        ("davinci", "strict", [".238", ".295", ".198", ".234"]),
        ("gpt-3.5", "strict", [".112", ".177", ".087", ".130"]),
    ],
)
@pytest.mark.usefixtures("mirror")
def test_released_outputs_get_their_known_scores(model: str, mode: Mode, expected: list[str]) -> None:
    score = schemata(load_traces("openpi2:dev"), load_traces(f"openpi2-outputs:{model}-schemata"), mode=mode)
    rows = ["global", "global +exp", "local", "local +exp"]
    assert list(score.rows) == rows
    assert [f"{score[row]['f1'] / 100:.3f}".lstrip("0") for row in rows] == expected
    assert score.n_procedures == 55
    low, high = intervals(score, resamples=100)["local"]["f1"]
    assert low < score["local"]["f1"] < high


@pytest.mark.usefixtures("mirror")
def test_published_gold_is_whole_and_scores_1_against_itself() -> None:
    gold = list(load_traces("openpi2:dev"))
    assert schemata(gold, gold).statistics.sums()["global.gold"] == 1068
    score = schemata(gold, gold, mode="strict")
    assert all(value == 100 for row in score.rows.values() for value in row.values())
    assert score.statistics.sums()["global.gold"] == 890


def test_strict_by_hand() -> None:
    """Two of three predicted pairs are the one gold pair; in step 2 nothing is found, in step 3 nothing is meant."""
    pred = trace(pair(1, "The Pot", "Heat"), pair(1, "kettle", "temperature"), pair(3, "cup", "heat"))
    score = schemata([GOLD], [pred], mode="strict")
    assert score["global"]["precision"] == pytest.approx(100 * 2 / 3)
    assert score["global"]["recall"] == 100
    assert score["local"]["recall"] == 50


def test_compat_by_hand() -> None:
    """Gold is both of the pot's attributes, found with a plain "pot" in two steps; locally one pair for each entity."""
    pred = trace(pair(1, "pot", "heat"), pair(1, "cup", "heat"), pair(2, "pot", "heat"), pair(2, "the pot", "heat"))
    sums = schemata([GOLD], [pred]).statistics.sums()
    counts = {name: float(value) for name, value in sums.items()}
    assert [counts[f"global.{part}"] for part in ("right", "predicted", "found", "gold")] == [1, 2, 2, 2]
    assert [counts[f"local.{part}"] for part in ("right", "predicted", "found", "gold")] == [3, 4, 2, 4]


def test_compat_counts_a_predicted_entity_without_attributes() -> None:
    """It adds to the local gold, once for each gold attribute of its step; other texts that were not read do not."""
    bare = Reject(step=1, text="cup | ", reason="this entity has no attribute")
    noise = Reject(step=1, text="I do not know", reason="no sense")
    counted = schemata([GOLD], [trace(pair(1, "pot", "heat"), rejects=(bare, noise))]).statistics.sums()["local.gold"]
    assert counted == 2


def test_expansions_have_rows_of_their_own_only_where_there_are_any() -> None:
    pred = trace(pair(1, "boiler", "heat"))
    score = schemata([GOLD], [pred], mode="strict")
    assert (score["global"]["recall"], score["global +exp"]["recall"]) == (0, 100)
    plain = trace(*GOLD.changes)
    assert list(schemata([plain], [pred], mode="strict").rows) == ["global", "local"]


def test_strict_refuses_predictions_for_another_procedure() -> None:
    other = Trace(procedure=Procedure(id="soup", steps=PROCEDURE.steps))
    with pytest.raises(InputError, match="this dataset and split"):
        schemata([GOLD], [other], mode="strict")
    assert schemata([GOLD], [other]).warnings


names = st.sampled_from(["pot", "the Pot", "kettle", "boiler", "cup", " pot "])
attributes = st.sampled_from(["heat", "Heat", "temperature", "place", "color"])
pairs = st.builds(pair, st.integers(1, 3), names, attributes)
predictions = st.lists(pairs, max_size=8)


@given(predictions, st.lists(pairs, min_size=1, max_size=8), st.randoms())
def test_strict_is_bounded_and_knows_no_order(
    said: list[StateChange], meant: list[StateChange], random: Random
) -> None:
    gold = trace(*meant, clusters=(POT,))
    score = schemata([gold], [trace(*said)], mode="strict")
    assert all(0 <= value <= 100 for row in score.rows.values() for value in row.values())
    shuffled = trace(*random.sample(said, len(said)))
    assert schemata([gold], [shuffled], mode="strict").rows == score.rows
    assert schemata([gold], [trace(*said, *said)], mode="strict").rows == score.rows


@given(st.lists(pairs, max_size=8))
def test_strict_gold_scores_1_against_itself(meant: list[StateChange]) -> None:
    for gold in (trace(*meant), trace(*meant, clusters=(POT,))):
        score = schemata([gold], [gold], mode="strict")
        assert all(value == 100 for row in score.rows.values() for value in row.values())


@given(predictions, st.lists(pairs, min_size=1, max_size=8))
def test_compat_is_bounded_where_the_script_is(said: list[StateChange], meant: list[StateChange]) -> None:
    """Local precision only: the rest counts some hits more often than what they are divided by."""
    score = schemata([trace(*meant, clusters=(POT,))], [trace(*said)])
    assert all(0 <= score[row]["precision"] <= 100 for row in ("local", "local +exp"))
    assert all(value >= 0 for row in score.rows.values() for value in row.values())


def test_compat_counts_a_repeated_paraphrase_as_right_again() -> None:
    pred = trace(pair(1, "pot", "temperature"), pair(2, "pot", "temperature"))
    assert schemata([GOLD], [pred])["global"]["precision"] == 200
