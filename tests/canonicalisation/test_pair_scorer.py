"""Groups out of likelihoods, and the doubtful pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.canonicalisation.name_facts import NameGroup
from fluents.canonicalisation.pair_features import KINDS, Matrix, PairFeatures
from fluents.canonicalisation.pair_scorer import PARAMETERS, PairScorer, corrected, shipped_scorer
from fluents.text.embedders import StaticEmbedder

HALF = PairScorer({}, 0.0, 0.5)


def square(count: int, **pairs: float) -> Matrix:
    """Likelihoods, `a01` being that of the names 0 and 1; all others 0."""
    values = np.eye(count, dtype=np.float32)
    for key, value in pairs.items():
        values[int(key[1]), int(key[2])] = values[int(key[2]), int(key[1])] = value
    return values


def test_linkage_is_by_the_mean_so_one_likely_pair_does_not_pull_in_a_stranger() -> None:
    assert HALF.groups(square(3, a01=0.9, a12=0.9, a02=0.3)) == [[0, 1, 2]]
    assert sorted(map(sorted, HALF.groups(square(3, a01=0.95, a12=0.8, a02=0.1)))) == [[0, 1], [2]]


def test_no_name_and_one_name() -> None:
    assert HALF.groups(square(0)) == []
    assert HALF.groups(square(1)) == [[0]]


def test_the_pairs_nearest_to_the_threshold_are_doubtful() -> None:
    likely = square(3, a01=0.95, a02=0.45, a12=0.6)
    assert HALF.doubtful(likely, 2) == [(0, 2), (1, 2)]
    assert HALF.doubtful(square(1), 5) == []


def test_a_judgement_stands_over_the_evidence() -> None:
    likely = square(3, a01=0.95, a12=0.1)
    assert sorted(HALF.groups(corrected(likely, {(0, 1): False, (1, 2): True}))) == [[0], [1, 2]]
    assert likely[0, 1] == pytest.approx(0.95)


@given(st.integers(2, 6).flatmap(lambda n: st.lists(st.floats(0, 1, width=32), min_size=n * n, max_size=n * n)))
def test_every_name_is_in_exactly_one_group(values: list[float]) -> None:
    count = int(len(values) ** 0.5)
    likely = np.array(values, dtype=np.float32).reshape(count, count)
    assert sorted(place for group in HALF.groups(likely) for place in group) == list(range(count))


def test_the_weights_that_come_along_are_of_evidence_there_is() -> None:
    levels = json.loads(PARAMETERS.read_text())
    assert set(levels) == {"entities", "attributes"}
    for level in ("entities", "attributes"):
        scorer = shipped_scorer(level)
        assert scorer.weights.keys() <= KINDS.keys()
        assert 0 < scorer.threshold < 1


def test_what_speaks_for_a_pair_makes_it_likelier() -> None:
    names = [NameGroup((name,)) for name in ("bicycle", "bike", "flour")]
    likely = shipped_scorer("entities").likely(PairFeatures(names, StaticEmbedder()))
    assert likely[0, 1] > likely[0, 2]
