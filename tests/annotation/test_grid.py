"""The state grid: states carried on, contradictions, names that may mean the same, what nobody mentioned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from decided import BOILED, MOVED, POURED, SOAKED, TEA, TEA_TRACE, change

import fluents as fl
from fluents.annotation.grid import NameKind, carried_before, contradictions, recall_prompts, same_as
from fluents.records import Trace
from fluents.text.names import bare_name


def test_the_last_state_is_carried_on_over_steps_and_wordings() -> None:
    changes = [BOILED, change(2, "the Water", "temperature", "hot", "warm"), POURED]
    assert carried_before(changes, 4, "waters", "Temperature") == "warm"
    assert carried_before(changes, 2, "water", "temperature") == "hot"
    assert carried_before(changes, 1, "water", "temperature") is None
    assert carried_before(changes, 3, "cup", "temperature") is None


def test_a_change_that_begins_elsewhere_is_a_contradiction() -> None:
    again = change(3, "water", "temperature", "freezing", "hot")
    [found] = contradictions([again, BOILED, MOVED])
    assert (found.step, found.before, found.expected, found.since) == (3, "freezing", "hot", 1)


def test_other_words_for_the_state_and_one_of_several_are_no_contradiction() -> None:
    placed = [change(1, "oil", "location", "in bottle", "in pan"), change(1, "oil", "location", "on shelf", "on stove")]
    assert contradictions([*placed, change(2, "oil", "location", "in the large pan", "on plate")]) == []
    assert contradictions([*placed, change(2, "oil", "location", "on the stove", "on plate")]) == []
    assert len(contradictions([*placed, change(2, "oil", "location", "in fridge", "on plate")])) == 1


@pytest.mark.parametrize(
    ("name", "kind", "best"),
    [
        ("the pans", "entity", "pan"),
        ("frying pan", "entity", "pan"),
        ("coffee machine", "entity", "coffee maker"),
        ("skillet", "entity", "pan"),
        ("wet", "attribute", "wetness"),
    ],
)
def test_a_name_that_may_mean_the_same_is_offered(name: str, kind: NameKind, best: str) -> None:
    known = ["wetness", "weight"] if kind == "attribute" else ["pan", "coffee maker", "window", "water"]
    assert same_as(name, known, kind)[0].name == best


def test_names_that_mean_something_else_are_not_offered() -> None:
    assert same_as("window", ["pan", "water", "window", "", "window"]) == []
    assert same_as(" ", ["pan"]) == []
    assert same_as("pan", []) == []


def test_equal_names_come_first_and_are_sure() -> None:
    found = same_as("the pan", ["frying pan", "pans"])
    assert [one.name for one in found] == ["pans", "frying pan"]
    assert found[0].score == 1


def test_entities_that_nobody_mentioned_are_asked_for_once_each() -> None:
    stove = change(1, "stove", "power", "off", "on")
    draft = Trace(
        procedure=TEA,
        changes=(SOAKED, stove, stove.replace(step=2), BOILED, change(2, "ghost", "mood", "sad", "gay", support=0.2)),
    )
    assert [tuple(one) for one in recall_prompts(draft, [POURED])] == [("stove", "power", 1), ("bag", "wetness", 3)]
    assert recall_prompts(draft, [*TEA_TRACE.changes, change(1, "the stove", "heat", "low", "high")]) == []


@pytest.mark.parametrize(("kind", "right", "found"), [("entity", "0.61", "0.47"), ("attribute", "0.72", "0.27")])
def test_how_often_an_offer_is_right_on_openpi2(mirror: Path, kind: NameKind, right: str, found: str) -> None:  # noqa: ARG001
    """For each name of a procedure (each attribute of an entity), the best offer among the others' names."""
    offers = hits = joined = 0
    for trace in fl.load("openpi2:dev"):
        for names in _names(trace, kind):
            for name, cluster in names.items():
                others = {other: number for other, number in names.items() if other != name}
                joined += cluster in others.values()
                if best := same_as(name, others, kind)[:1]:
                    offers += 1
                    hits += others[best[0].name] == cluster
    assert (f"{hits / offers:.2f}", f"{hits / joined:.2f}") == (right, found)


def _names(trace: Trace, kind: NameKind) -> Iterator[dict[str, int]]:
    """Names of different words, each with the number of its cluster."""
    attributes = [[one.mentions for one in cluster.attributes] for cluster in trace.clusters]
    for mentions in [[one.mentions for one in trace.clusters]] if kind == "entity" else attributes:
        found: dict[str, int] = {}
        for number, names in enumerate(mentions):
            for name in names:
                found.setdefault(bare_name(name), number)
        yield found
