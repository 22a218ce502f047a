"""Each kind of evidence says what it is said to, and never more than 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluents.canonicalisation.name_facts import Fact, NameGroup
from fluents.canonicalisation.pair_features import KINDS, PairFeatures
from fluents.text.embedders import StaticEmbedder

EMBEDDER = StaticEmbedder()


def between(kind: str, one: str, other: str, *facts: frozenset[Fact]) -> float:
    first, second = facts or (frozenset(), frozenset())
    return float(PairFeatures([NameGroup((one,), first), NameGroup((other,), second)], EMBEDDER).of(kind)[0, 1])


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("inside", "kitchen towel", "towel"),
        ("part", "towel rail", "towel"),
        ("part", "tip of the pipe", "pipe"),
        ("head", "left foot", "right foot"),
    ],
)
def test_how_the_words_of_two_names_lie_in_each_other(kind: str, one: str, other: str) -> None:
    for each in ("inside", "part", "head"):
        assert between(each, one, other) == between(each, other, one) == (each == kind)


def test_spelling_forgives_spaces_and_slips() -> None:
    assert between("letters", "glove box", "glovebox") == pytest.approx(1)
    assert between("letters", "linoleum", "lineoleum") > 0.6 > 0.1 > between("letters", "linoleum", "hammer")


def test_meaning_is_of_other_words_alone() -> None:
    assert between("meaning", "bike", "bicycle") > 0.6 > 0.3 > between("meaning", "bike", "flour")
    assert between("meaning", "old bike", "new bike") == 0


def test_states_steps_and_facts_come_from_the_changes() -> None:
    wet, damp = frozenset({Fact(1, "dry", "wet")}), frozenset({Fact(1, "dry", "damp"), Fact(2, "hot", "cold")})
    assert between("fact", "a", "b", wet, wet) == 1
    assert between("fact", "a", "b", wet, damp) == 0
    assert between("steps", "a", "b", wet, damp) == 0.5
    assert between("states", "a", "b", wet, wet) == pytest.approx(1)
    assert between("states", "a", "b", wet, frozenset()) == 0


facts = st.frozensets(st.builds(Fact, st.integers(1, 3), st.text(max_size=5), st.text(max_size=5)), max_size=3)


@settings(max_examples=40)
@given(st.lists(st.builds(NameGroup, st.tuples(st.text(min_size=1, max_size=12)), facts), min_size=1, max_size=5))
def test_evidence_of_any_names_is_symmetric_and_from_0_to_1(names: list[NameGroup]) -> None:
    evidence = PairFeatures(names, EMBEDDER)
    for kind in KINDS:
        square = evidence.of(kind)
        assert square.shape == (len(names), len(names))
        assert np.allclose(square, square.T, atol=1e-5)
        assert square.min() >= 0
        assert square.max() <= 1 + 1e-5
