"""How the offline clusters are learnt, and how well they agree with people.

python benchmarks/clustering.py            # the tables of docs/canonicalise.md, in two minutes
python benchmarks/clustering.py --write    # writes the shipped weights as well
"""

from __future__ import annotations

import json
import sys
from typing import get_args

from fluents.canonicalisation.pair_scorer import PARAMETERS
from fluents.canonicalisation.training import (
    FEATURES,
    PREDICTIONS,
    TrainingData,
    cross_validate,
    load_training_data,
    predict_as,
    score_clusters,
    train,
)
from fluents.errors import DataMissingError
from fluents.scoring import Level
from fluents.scoring.bootstrap import intervals
from fluents.text.embedders import load_embedder


def report(data: TrainingData, level: Level) -> None:
    """The scores with their intervals, and an ablation of each feature."""
    for which in PREDICTIONS:
        score = score_clusters(predict_as(which, data, level), data.by_people, level)
        between = intervals(score)
        figures = (
            f"{row} {score.rows[row]['f1']:.1f} [{between[row]['f1'].low:.1f}, {between[row]['f1'].high:.1f}]"
            for row in ("exact", "b-cubed")
        )
        print(f"{level}, {which}: {', '.join(figures)}")
    for left_out in FEATURES[level]:
        kinds = [kind for kind in FEATURES[level] if kind != left_out]
        score = score_clusters(cross_validate(data, level, kinds), data.by_people, level)
        print(f"  without {left_out}: exact {score.rows['exact']['f1']:.1f}, b-cubed {score.rows['b-cubed']['f1']:.1f}")


def main() -> None:
    embedder = load_embedder()
    parameters: dict[str, dict[str, object]] = {}
    for level in get_args(Level):
        try:
            data = load_training_data(level, embedder)
        except DataMissingError as error:
            sys.exit(f"needs OpenPI2.0 and OpenPI 1.1: {error}")
        report(data, level)
        scorer = train(data, level, FEATURES[level])
        parameters[level] = {"weights": dict(scorer.weights), "bias": scorer.bias, "threshold": scorer.threshold}
    text = json.dumps(parameters, indent=2) + "\n"
    if "--write" in sys.argv:
        PARAMETERS.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
