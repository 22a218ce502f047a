"""Consensus over samples, hand-worked and as properties."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fluents.records import StateChange
from fluents.text.names import plain_name
from fluents.trackers.consensus import Consensus, Pool, consensus
from strategies import words


def change(entity: str, attribute: str = "heat", before: str = "cold", after: str = "hot") -> StateChange:
    return StateChange(step=1, entity=entity, attribute=attribute, before=before, after=after)


POT, LID = change("pot"), change("lid", "location", "off", "on")
EXACT = Consensus(exact=1, bleu=0, rouge=0)

vocabulary = st.sampled_from(["pot", "the pot", "lid", "heat", "cold", "hot", "in pot", "wet"])
some_changes = st.builds(change, vocabulary, vocabulary, vocabulary, vocabulary) | st.builds(
    change, words, words, words, words
)
samples_of_changes = st.lists(st.lists(some_changes, max_size=4), max_size=5)
settings_of_any_kind = st.builds(
    Consensus,
    exact=st.sampled_from([0.0, 1.0, 4.0]),
    bleu=st.sampled_from([0.0, 1.0]),
    most=st.integers(1, 5),
    distinct=st.booleans(),
    paired=st.booleans(),
    candidates=st.integers(1, 30),
    no_change=st.sampled_from([1.0, 1.3]),
    recall=st.sampled_from([0.5, 1.0, 2.0]),
)


class FirstLetter:
    """Texts mean the same if their entities begin alike."""

    name, threshold = "first letter", 0.5

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        letters = [text.split(" of ")[1][0] for text in texts]
        return np.array([[float(one == other) for other in sorted(set(letters))] for one in letters], dtype=np.float32)


def key(one: StateChange) -> tuple[str, ...]:
    return tuple(text.lower() for text in (one.entity, one.attribute, one.before, one.after))


def test_what_most_samples_say_is_chosen_with_its_share() -> None:
    """POT stands in 3 of 4 samples, LID in 1. {POT} has an expected exact F1 of (1 + 1 + 2/3 + 0) / 4 = .667;
    {POT, LID} of (2/3 + 2/3 + 1 + 0) / 4 = .583: LID does not pay."""
    found = consensus([[POT], [POT], [POT, LID], [change("x y", "z", "u", "v")]], EXACT)
    assert [one.entity for one in found] == ["pot"]
    assert found[0].support == pytest.approx(0.75, abs=0.06), "a little of the last sample, by its likeness"
    assert Pool([[POT], [POT], [POT, LID], [change("x y", "z", "u", "v")]], EXACT)._expected([], [0])[
        0
    ] == pytest.approx((1 + 1 + 2 / 3) / 4)


def test_a_second_change_is_added_where_it_pays() -> None:
    """{POT}: (1 + 2/3 + 2/3) / 3 = .778; {POT, LID}: (2/3 + 1 + 1) / 3 = .889."""
    assert [one.entity for one in consensus([[POT], [POT, LID], [LID, POT]], EXACT)] == ["pot", "lid"]


def test_nothing_changes_where_most_samples_say_so() -> None:
    assert consensus([[], [], [POT]], EXACT) == []
    assert consensus([[], [POT], [POT]], EXACT) != []


def test_nothing_changes_can_be_made_dearer() -> None:
    """4 of 7 are empty: nothing scores 4/7 = .571, {POT} 3/7 = .429, and .429 · 1.4 = .6 is more."""
    samples: list[list[StateChange]] = [[], [], [], [], [POT], [POT], [POT]]
    assert consensus(samples, EXACT) == []
    assert consensus(samples, Consensus(exact=1, bleu=0, rouge=0, no_change=1.4)) != []


def test_a_single_sample_has_no_support() -> None:
    """1.00 would read as certainty, and means that nobody else was asked."""
    assert [one.support for one in consensus([[POT, LID]], Consensus())] == [None, None]


def test_distinct_says_one_thing_of_an_attribute_and_one_attribute_of_a_pair_of_states() -> None:
    wordings = [POT, change("the pots", "heat", "cool", "warm"), change("pot", "temperature"), LID]
    found = consensus([[POT, LID], wordings], Consensus(distinct=True))
    assert sorted(key(one) for one in found) == [key(LID), key(POT)]
    assert len(consensus([wordings, wordings], Consensus(distinct=False))) == 4


@pytest.mark.parametrize("samples", [[], [[]], [[], [], []]])
def test_no_samples_and_empty_samples_give_nothing(samples: list[list[StateChange]]) -> None:
    assert consensus(samples, Consensus()) == []


@given(samples_of_changes, settings_of_any_kind)
def test_what_every_consensus_keeps_to(samples: list[list[StateChange]], settings: Consensus) -> None:
    found = consensus(samples, settings)
    said = {key(one) for sample in samples for one in sample}
    assert {key(one) for one in found} <= said
    assert len({key(one) for one in found}) == len(found) <= settings.most
    for one in found:
        assert one.support is None if len(samples) == 1 else 0 <= (one.support or 0) <= 1
    if settings.distinct:
        attributes = [(plain_name(one.entity), plain_name(one.attribute)) for one in found]
        states = [(plain_name(one.entity), plain_name(one.before), plain_name(one.after)) for one in found]
        assert len(set(attributes)) == len(set(states)) == len(found)


@given(st.lists(some_changes, max_size=5), st.integers(1, 4))
def test_samples_that_are_all_the_same_are_their_own_consensus(sample: list[StateChange], count: int) -> None:
    found = consensus([sample] * count, Consensus(most=100))
    assert {key(one) for one in found} == {key(one) for one in sample}
    assert all(one.support == (None if count == 1 else 1) for one in found)


@given(samples_of_changes, st.randoms(use_true_random=False))
def test_the_order_of_samples_changes_neither_support_nor_the_best_first_choice(
    samples: list[list[StateChange]], shuffle: random.Random
) -> None:
    """Further choices may differ where two candidates are equally good: then the one that was said first is taken."""
    shuffled = shuffle.sample(samples, len(samples))
    one, other = Pool(samples, Consensus()), Pool(shuffled, Consensus())
    assert _support(one) == pytest.approx(_support(other))
    if one.changes:
        first = [pool._expected([], list(range(len(pool.changes)))).max() for pool in (one, other)]
        assert first[0] == pytest.approx(first[1])


@given(samples_of_changes)
def test_more_is_chosen_only_as_long_as_the_expected_score_grows(samples: list[list[StateChange]]) -> None:
    pool = Pool(samples, Consensus(most=100))
    chosen = pool.choose()
    scores = [pool._expected(chosen[:place], [index])[0] for place, index in enumerate(chosen)]
    assert scores == sorted(set(scores))


def _support(pool: Pool) -> dict[tuple[str, ...], float]:
    return {key(one): float(share) for one, share in zip(pool.changes, pool.support, strict=True)}


def test_other_wordings_of_one_meaning_cost_nothing_in_a_grouped_consensus() -> None:
    """Samples {pot}, {pan}: alone, {pot} has an expected exact F1 of 1/2, and {pot, pan} as well (1/2 by 1: 2/3 each)
    = .667 ungrouped; grouped, pot and pan are one answer, which meets both in full: 1."""
    samples = [[change("pot")], [change("pan")]]
    apart = Pool(samples, EXACT)
    together = Pool(samples, Consensus(exact=1, bleu=0, rouge=0, grouped=True), FirstLetter())
    assert apart._expected([0], [1])[0] == pytest.approx(2 / 3)
    assert together._expected([0], [1])[0] == pytest.approx(1)


def test_a_wording_joins_a_group_only_if_it_means_the_same_as_all_of_it() -> None:
    pool = Pool([[change("pot"), change("lid"), change("pan")]], Consensus(grouped=True), FirstLetter())
    assert pool._grouped([0, 1, 2]) == [[0, 2], [1]]


def test_recall_can_weigh_more() -> None:
    """{POT} misses LID of one sample in three; with recall doubled, adding it pays."""
    samples = [[POT], [POT], [POT, LID]]
    plain = Consensus(exact=1, bleu=0, rouge=0)
    assert len(consensus(samples, plain)) == 1
    assert len(consensus(samples, Consensus(exact=1, bleu=0, rouge=0, recall=3))) == 2


def test_every_meaning_is_said_once_where_one_wording_is_asked_for() -> None:
    """Pot and pan mean the same: in many wordings both are chosen, in one the better supported."""
    samples = [[change("pot"), change("lid")], [change("pan"), change("lid")], [change("pot"), change("lid")]]
    settings = Consensus(exact=1, bleu=0, rouge=0, grouped=True)
    chosen = [
        {one.entity for one in consensus(samples, replace(settings, one_wording=once), FirstLetter())}
        for once in (False, True)
    ]
    assert chosen == [{"pot", "pan", "lid"}, {"pot", "lid"}]


def test_a_grouped_consensus_says_that_it_needs_an_embedder() -> None:
    with pytest.raises(ValueError, match="embedder"):
        consensus([[POT]], Consensus(grouped=True))


def test_paired_changes_meet_each_change_of_a_sample_once() -> None:
    """Three samples hold one change in two wordings. Freely, both wordings pay; paired, the second meets nothing."""
    wordings = [change("pot", after="hot"), change("pot", after="very hot")]
    samples = [wordings[:1], wordings[:1], wordings[1:]]
    rouge = Consensus(exact=0, bleu=0, recall=3)
    assert len(consensus(samples, rouge)) == 2
    assert consensus(samples, Consensus(exact=0, bleu=0, paired=True))[0].after == "hot"
    assert len(consensus(samples, Consensus(exact=0, bleu=0, paired=True))) == 1


def test_paired_samples_that_agree_are_taken_as_they_are() -> None:
    assert {key(one) for one in consensus([[POT, LID]] * 3, Consensus(paired=True))} == {key(POT), key(LID)}
    assert consensus([[], [], [POT]], Consensus(paired=True)) == []
