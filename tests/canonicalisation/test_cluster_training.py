"""The weights and the numbers of the docs come out of the published files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fluents.canonicalisation.name_facts import NameGroup
from fluents.canonicalisation.pair_features import PairFeatures
from fluents.canonicalisation.pair_scorer import PARAMETERS
from fluents.canonicalisation.training import (
    FEATURES,
    LabelledNames,
    cross_validate,
    fit,
    load_training_data,
    score_clusters,
    train,
)
from fluents.scoring import Level
from fluents.text.embedders import StaticEmbedder

EMBEDDER = StaticEmbedder()


def test_weights_follow_the_labels() -> None:
    """Where names that hold each other are one, and others not, that evidence alone gets weight."""
    names = [NameGroup((name,)) for name in ("towel", "kitchen towel", "box", "glove box", "hammer", "nail")]
    labelled = LabelledNames(
        "1",
        "",
        PairFeatures(names, EMBEDDER),
        [("towel", "kitchen towel"), ("box", "glove box"), ("hammer",), ("nail",)],
    )
    scorer = fit([labelled] * 5, ["inside", "steps"])
    assert scorer.weights["inside"] > 1
    assert scorer.weights["steps"] == 0
    likely = scorer.likely(labelled.evidence)
    assert likely[0, 1] > 0.5 > likely[0, 4]


@pytest.mark.slow
@pytest.mark.parametrize(("level", "exact", "b_cubed"), [("entities", 74.4, 90.4), ("attributes", 93.7, 97.7)])
def test_what_comes_along_is_what_the_data_teach(mirror: Path, level: Level, exact: float, b_cubed: float) -> None:  # noqa: ARG001
    data = load_training_data(level, EMBEDDER)
    assert not {one.procedure for one in data.by_model} & {one.procedure for one in data.by_people}
    score = score_clusters(cross_validate(data, level, FEATURES[level]), data.by_people, level)
    assert score.rows["exact"]["f1"] == pytest.approx(exact, abs=0.05)
    assert score.rows["b-cubed"]["f1"] == pytest.approx(b_cubed, abs=0.05)
    scorer, shipped = train(data, level, FEATURES[level]), json.loads(PARAMETERS.read_text())[level]
    assert np.allclose(
        [scorer.weights[kind] for kind in shipped["weights"]], list(shipped["weights"].values()), atol=0.02
    )
    assert scorer.threshold == shipped["threshold"]
