"""What is learnt from: whose ratings count, and what an irrelevant entity is."""

from __future__ import annotations

import numpy as np
import pytest

from fluents.records import Procedure, Salience, StateChange, Trace
from fluents.salience.feature_rater import fit, labelled_features, mean_ratings
from fluents.salience.features import TraceMeasurements
from fluents.text.embedders import StaticEmbedder

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it into the cup."))


def change(step: int, entity: str) -> StateChange:
    return StateChange(step=step, entity=entity, attribute="place", before="out", after="in")


def rating(entity: str, value: float | None, step: int | None = None, rater: str = "a") -> Salience:
    return Salience(entity=entity, rater=rater, step=step, value=value)


TRACE = Trace(procedure=TEA, changes=(change(1, "water"), change(2, "cup")))


def test_the_mean_of_the_raters_that_are_asked_for() -> None:
    ratings = (rating("water", 5), rating("water", 2, rater="b"), rating("cup", 1, rater="c"))
    trace = TRACE.replace(salience=ratings)
    assert mean_ratings(trace, ["water", "cup"], "global", ("a", "b")) == pytest.approx([3.5, np.nan], nan_ok=True)


@pytest.mark.parametrize("value", [None, -1, 15])
def test_what_could_not_be_read_or_is_out_of_range_is_not_given(value: float | None) -> None:
    trace = TRACE.replace(salience=(rating("water", value), rating("water", 4, rater="b")))
    assert mean_ratings(trace, ["water"], "global", ("a", "b")).tolist() == [4]


def test_the_lowest_rating_of_what_a_step_neither_names_nor_changes_is_irrelevant() -> None:
    ratings = tuple(rating(entity, 1, step) for entity in ("water", "cup") for step in (1, 2))
    labels = labelled_features(
        TraceMeasurements(TRACE.replace(salience=ratings), StaticEmbedder()), "local", ("a",)
    ).labels
    assert labels.tolist() == [[1, 0], [0, 1]]


def test_weights_follow_the_ratings_they_are_taught() -> None:
    """Taught that only what is named matters, and then the opposite, the same entities change places."""
    trace = TRACE.replace(changes=(*TRACE.changes, change(2, "envy")))
    for high, low in ((5, 1), (1, 5)):
        rated = trace.replace(salience=(rating("water", high), rating("cup", high), rating("envy", low)))
        measured = TraceMeasurements(rated, StaticEmbedder())
        one = labelled_features(measured, "global", ("a",))
        water, _, envy = fit([one], penalty=1)(one.columns)
        assert (water > envy) == (high > low)
