"""Features: what each measures, on a procedure small enough to see."""

from __future__ import annotations

import numpy as np
import pytest

from fluents.records import EntityCluster, Procedure, StateChange, Trace, TrackedEntity
from fluents.salience.entities import canonical_names, rated_entities
from fluents.salience.features import KINDS, TraceMeasurements, features
from fluents.text.embedders import StaticEmbedder


def change(step: int, entity: str, before: str = "out", after: str = "in") -> StateChange:
    return StateChange(step=step, entity=entity, attribute="state", before=before, after=after)


TRACE = Trace(
    procedure=Procedure(id="tea", goal="Make mint tea", steps=("Boil the water.", "Cut mint.", "Pour water on mint.")),
    changes=(change(1, "water", "cold", "hot"), change(3, "water", "hot", "green"), change(2, "hand", "", "")),
)


def global_features(trace: Trace = TRACE) -> dict[str, list[float]]:
    return {
        name: column.tolist() for name, column in features(TraceMeasurements(trace, StaticEmbedder()), "global").items()
    }


def test_changes_and_mentions_are_counted_over_the_steps() -> None:
    found = global_features()
    assert found["changes: share of the steps"] == pytest.approx([2 / 3, 1 / 3])
    assert found["changes: share of the most"] == [1, 0.5]
    assert found["changes: first step"] == pytest.approx([1 / 3, 2 / 3])
    assert found["changes: last step"] == pytest.approx([1, 2 / 3])
    assert found["text: share of the steps"] == pytest.approx([2 / 3, 0])
    assert found["text: in the goal"] == [0, 0]


def test_a_state_that_something_later_starts_from_is_needed_but_none_that_is_not_said() -> None:
    assert global_features()["changes: needed later"] == pytest.approx([1 / 3, 0])


def test_all_wordings_of_an_entity_are_looked_for() -> None:
    joined = TRACE.replace(clusters=(EntityCluster(name="hand", mentions=("hand", "mint")),))
    found = global_features(joined)
    assert found["text: in the goal"] == [0, 1]
    assert found["text: share of the steps"] == pytest.approx([2 / 3, 2 / 3])


def test_kinds_of_things_are_told_apart() -> None:
    found = global_features()
    water, hand = (dict(zip(KINDS, (found[f"kind: {kind}"][row] for kind in KINDS), strict=True)) for row in (0, 1))
    assert max(hand, key=hand.__getitem__) == "body"
    assert max(water, key=water.__getitem__) == "matter"


def test_a_step_knows_what_was_before_and_comes_after() -> None:
    found = features(TraceMeasurements(TRACE, StaticEmbedder()), "local")
    assert found["changes here: any"].tolist() == [[1, 0, 1], [0, 1, 0]]
    assert found["changes here: earlier"].tolist() == [[0, 1, 1], [0, 0, 1]]
    assert found["changes here: later"].tolist() == [[1, 1, 0], [1, 0, 0]]
    assert found["text here: named in the step before"].tolist() == [[0, 1, 0], [0, 0, 0]]
    assert all(column.shape == (2, 3) and np.isfinite(column).all() for column in found.values())


def test_mentions_stand_for_their_cluster_but_a_rated_entity_for_itself() -> None:
    clusters = (EntityCluster(name="drink", mentions=("water", "tea")), EntityCluster(name="brew", mentions=("tea",)))
    assert canonical_names(TRACE.replace(clusters=clusters)) == {"water": "drink", "tea": "drink"}
    assert canonical_names(TRACE.replace(clusters=clusters, entities=(TrackedEntity(name="water"),))) == {
        "tea": "drink"
    }
    [drink, hand] = rated_entities(TRACE.replace(clusters=clusters))
    assert (drink.name, drink.wordings) == ("drink", ("drink", "water", "tea"))
    assert len(drink.changes) == 2
    assert hand.wordings == ("hand",)
