"""The weights and the numbers of the docs come out of the published files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fluents.canonicalisation.name_facts import NameGroup
from fluents.canonicalisation.pair_features import PairFeatures
from fluents.canonicalisation.pair_scorer import PARAMETERS
from fluents.canonicalisation.training import USED, LabelledNames, cross_validated, fitted, learned, lessons, scored
from fluents.scoring import Level
from fluents.text.embedders import StaticEmbedder

EMBEDDER = StaticEmbedder()


def test_weights_follow_what_is_taught() -> None:
    """Where names that hold each other are one, and others not, that evidence alone gets weight."""
    names = [NameGroup((name,)) for name in ("towel", "kitchen towel", "box", "glove box", "hammer", "nail")]
    lesson = LabelledNames(
        "1",
        "",
        PairFeatures(names, EMBEDDER),
        [("towel", "kitchen towel"), ("box", "glove box"), ("hammer",), ("nail",)],
    )
    scorer = fitted([lesson] * 5, ["inside", "steps"])
    assert scorer.weights["inside"] > 1
    assert scorer.weights["steps"] == 0
    likely = scorer.likely(lesson.evidence)
    assert likely[0, 1] > 0.5 > likely[0, 4]


@pytest.mark.slow
@pytest.mark.parametrize(("level", "exact", "b_cubed"), [("entities", 74.4, 90.4), ("attributes", 93.7, 97.7)])
def test_what_comes_along_is_what_the_data_teach(mirror: Path, level: Level, exact: float, b_cubed: float) -> None:  # noqa: ARG001
    made, meant = lessons(level, EMBEDDER)
    assert not {lesson.procedure for lesson in made} & {lesson.procedure for lesson in meant}
    score = scored(cross_validated(made, meant, level, USED[level]), meant, level)
    assert score.rows["exact"]["f1"] == pytest.approx(exact, abs=0.05)
    assert score.rows["b-cubed"]["f1"] == pytest.approx(b_cubed, abs=0.05)
    scorer, shipped = learned(made, meant, level, USED[level]), json.loads(PARAMETERS.read_text())[level]
    assert np.allclose(
        [scorer.weights[kind] for kind in shipped["weights"]], list(shipped["weights"].values()), atol=0.02
    )
    assert scorer.threshold == shipped["threshold"]
