"""Who else rated: everyone in the gold and the votes, against the same reference."""

from __future__ import annotations

import pytest

from fluents.data.datasets import load_traces
from fluents.metrics.salience import by_procedure, others, votes
from fluents.records import Procedure, Salience, Trace, TrackedEntity


def rating(rater: str, entity: str, value: float) -> Salience:
    return Salience(entity=entity, rater=rater, value=value)


TEA = Trace(
    procedure=Procedure(id="tea", steps=("Boil.", "Pour.")),
    entities=(
        TrackedEntity(name="water", votes=10, step_votes=(4, 0)),
        TrackedEntity(name="cup", votes=-1, step_votes=(0, 2)),
        TrackedEntity(name="spoon"),
    ),
    salience=(
        rating("A1", "water", 5),
        rating("A1", "cup", 1),
        rating("A2", "water", 4),
        rating("A2", "cup", 2),
        rating("stranger", "moon", 3),
    ),
)


def test_votes_are_ratings_on_the_scale() -> None:
    assert [(one.entity, one.step, one.value) for one in votes(TEA)] == [
        ("water", None, 5),
        ("water", 1, 5),
        ("water", 2, 0),
        ("cup", None, 0),
        ("cup", 1, 0),
        ("cup", 2, 2.5),
    ]
    assert list(votes(Trace(procedure=TEA.procedure))) == []


def test_everyone_who_rated_the_same_things_is_scored() -> None:
    unrated = Trace(procedure=Procedure(id="soup", steps=("Stir.",)), salience=(rating("A2", "pot", 3),))
    scores = others([TEA, unrated])
    assert {name: score["global raw"]["r"] for name, score in scores.items() if name != "stranger"} == pytest.approx(
        {"A2": 1.0, "votes": 1.0}
    )
    assert others([unrated]) == {}


def test_correlations_of_single_procedures() -> None:
    same = tuple(rating(rater, entity, 3) for rater in ("A1", "A2") for entity in ("water", "cup"))
    constant = Trace(procedure=Procedure(id="same", steps=("Boil.",)), salience=same)
    people = TEA.replace(entities=(), salience=TEA.salience[:4])
    assert by_procedure(others([people, constant], mode="strict")["A2"]) == {"tea": pytest.approx(1), "same": None}
    smoothed = others([people])["A2"]
    assert by_procedure(smoothed) == {"tea": pytest.approx(smoothed["global smoothed"]["r"])}


@pytest.mark.usefixtures("mirror")
def test_the_released_raters_and_the_votes() -> None:
    gold = list(load_traces("openpi2:dev"))
    found = {name: f"{score['global raw']['r']:.3f}" for name, score in others(gold).items()}
    assert found == {
        "A2": "0.449",
        "gpt-4": "0.475",
        "gpt-3.5-turbo": "0.540",
        "llama2-13": "0.333",
        "llama2-70": "0.594",
        "votes": "0.365",
    }
