"""Filters: who stays, who decides, and that nothing but the ratings does."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.errors import InputError
from fluents.records import EntityCluster, Procedure, Salience, StateChange, Trace, TrackedEntity
from fluents.salience.filter import Keep, keep, keep_rated, keep_salient
from fluents.scoring import Scope
from strategies import traces


def change(step: int, entity: str, attribute: str = "place") -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before="here", after="there")


def rating(entity: str, value: float | None, rater: str = "me", step: int | None = None) -> Salience:
    return Salience(entity=entity, rater=rater, value=value, step=step)


SOUP = Trace(
    procedure=Procedure(id="soup", goal="Make soup", steps=("Cut the leek.", "Boil it in the pot.")),
    changes=(change(1, "leek"), change(1, "knife"), change(2, "leek"), change(2, "pot"), change(2, "smell")),
    clusters=(EntityCluster(name="leek", mentions=("leek",)), EntityCluster(name="knife", mentions=("knife",))),
    entities=(TrackedEntity(name="leek"), TrackedEntity(name="smell")),
    salience=(rating("leek", 5), rating("pot", 4), rating("knife", 3), rating("smell", None)),
)


def left(trace: Trace) -> list[tuple[int, str]]:
    return [(one.step, one.entity) for one in trace.changes]


def test_entities_below_the_least_go_with_their_names_and_ratings() -> None:
    kept = keep_rated(SOUP, Keep(min_salience=4))
    assert left(kept) == [(1, "leek"), (2, "leek"), (2, "pot")]
    assert [one.name for one in kept.clusters] == ["leek"]
    assert [one.name for one in kept.entities] == ["leek"]
    assert [one.entity for one in kept.salience] == ["leek", "pot"]


def test_the_top_ones_are_the_highest_rated() -> None:
    assert left(keep_rated(SOUP, Keep(top=1))) == [(1, "leek"), (2, "leek")]
    assert set(left(keep_rated(SOUP, Keep(min_salience=4, top=5)))) == {(1, "leek"), (2, "leek"), (2, "pot")}


def test_an_entity_nobody_could_rate_is_not_known_to_matter() -> None:
    assert (2, "smell") not in left(keep_rated(SOUP, Keep(min_salience=0)))


def test_of_equals_the_one_that_changes_more_stays_then_the_first_by_name() -> None:
    equal = SOUP.replace(salience=tuple(rating(name, 4) for name in ("knife", "leek", "pot")))
    assert left(keep_rated(equal, Keep(top=1))) == [(1, "leek"), (2, "leek")]
    assert {name for _, name in left(keep_rated(equal, Keep(top=2)))} == {"leek", "knife"}


def test_a_step_can_decide_for_itself() -> None:
    local = (rating("leek", 5, step=1), rating("leek", 1, step=2), rating("knife", 2, step=1), rating("pot", 4, step=2))
    trace = SOUP.replace(salience=(*SOUP.salience, *local))
    assert left(keep_rated(trace, Keep(min_salience=4, scope="local"))) == [(1, "leek"), (2, "pot")]
    assert left(keep_rated(trace, Keep(top=1, scope="local"))) == [(1, "leek"), (2, "pot")]


def test_names_of_a_cluster_share_its_rating() -> None:
    trace = SOUP.replace(
        clusters=(EntityCluster(name="vegetable", mentions=("leek", "smell")),),
        entities=(),
        salience=(rating("vegetable", 5), rating("pot", 1)),
    )
    assert left(keep_rated(trace, Keep(min_salience=4))) == [(1, "leek"), (2, "leek"), (2, "smell")]


def test_ratings_made_before_the_names_were_joined_still_count() -> None:
    trace = SOUP.replace(clusters=(EntityCluster(name="vegetable", mentions=("leek", "smell")),), entities=())
    assert left(keep_rated(trace, Keep(min_salience=5))) == [(1, "leek"), (2, "leek"), (2, "smell")]


def test_of_several_raters_one_must_be_named() -> None:
    trace = SOUP.replace(salience=(rating("leek", 1), rating("leek", 5, rater="A1")))
    with pytest.raises(InputError, match="set `salience_rater` to one of: A1, me"):
        keep_rated(trace, Keep(min_salience=4))
    assert left(keep_rated(trace, Keep(min_salience=4, rater="A1"))) == [(1, "leek"), (2, "leek")]


def test_what_nobody_rated_is_rated_offline_first() -> None:
    kept = keep_salient(SOUP.replace(salience=()), Keep(top=1))
    assert left(kept) == [(1, "leek"), (2, "leek")]
    assert {one.rater for one in kept.salience} == {"offline-1"}
    assert left(keep_salient(SOUP, Keep(top=1))) == [(1, "leek"), (2, "leek")]


def test_it_says_what_it_does_in_a_few_words() -> None:
    assert str(Keep(min_salience=4, top=5)) == ">=4 top5"
    assert str(Keep(min_salience=3.5, rater="A1", scope="local")) == ">=3.5 by A1 local"


@given(
    traces(),
    st.randoms(),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(1, 3),
    st.sampled_from(["global", "local"]),
)
def test_keeping_twice_keeps_no_less_and_no_order_decides(
    trace: Trace, random: Random, least: int | None, top: int | None, scope: Scope
) -> None:
    values = [
        rating(one.entity, random.choice([None, 1, 4, 5]), step=step)
        for one in trace.changes
        for step in (None, one.step)
    ]
    trace = trace.replace(salience=tuple({(one.entity, one.step): one for one in values}.values()))
    wanted = Keep(least, top, scope=scope)
    kept = keep_rated(trace, wanted)
    assert keep_rated(kept, wanted) == kept
    assert set(kept.changes) <= set(trace.changes)
    shuffled = trace.replace(
        changes=tuple(random.sample(trace.changes, len(trace.changes))),
        salience=tuple(random.sample(trace.salience, len(trace.salience))),
    )
    assert set(keep_rated(shuffled, wanted).changes) == set(kept.changes)


def test_the_provenance_says_what_was_kept_and_by_whom() -> None:
    once = keep_rated(SOUP, Keep(min_salience=4))
    assert once.provenance.decoding["salience"] == ">=4 by me"
    assert keep_rated(once, Keep(min_salience=4)) == once
    assert keep_rated(once, Keep(top=1)).provenance.decoding["salience"] == ">=4 by me; top1 by me"
    assert keep_salient(SOUP.replace(salience=()), Keep(top=2)).provenance.decoding["salience"] == "top2 by offline-1"


def test_where_nothing_is_left_it_still_says_why() -> None:
    nothing = keep_rated(SOUP.replace(salience=(rating("leek", 1),)), Keep(min_salience=5))
    assert nothing.changes == ()
    assert nothing.provenance.decoding["salience"] == ">=5 by me"
    assert keep_rated(nothing, Keep(min_salience=5)) == nothing


def supported(*support: float | None) -> Trace:
    changes = (one.replace(support=share) for one, share in zip(SOUP.changes, support, strict=True))
    return SOUP.replace(changes=tuple(changes))


def test_changes_that_too_few_samples_agree_on_go_with_their_names() -> None:
    trace = supported(0.9, 0.2, 0.5, None, 0.1)
    kept = keep(trace, min_support=0.5)
    assert left(kept) == [(1, "leek"), (2, "leek")]
    assert [one.name for one in kept.clusters] == ["leek"]
    assert {one.entity for one in kept.salience} == {"leek"}
    assert kept.provenance.decoding["min_support"] == 0.5
    assert keep(kept, min_support=0.5) == kept
    assert keep(kept, min_support=0.2) == kept, "the note says the higher"
    nothing = keep(trace, min_support=1)
    assert (nothing.changes, keep(nothing, min_support=1)) == ((), nothing)


def test_support_and_salience_decide_together_and_support_needs_no_ratings() -> None:
    trace = supported(0.1, 0.9, 0.2, 0.9, 0.9)
    assert left(keep(trace, top=1, min_support=0.5)) == [(2, "pot")], "the leek has the higher rating, and no support"
    unrated = keep(trace.replace(salience=()), min_support=0.5)
    assert unrated.salience == ()


def test_a_trace_without_support_is_an_error_not_an_empty_one() -> None:
    with pytest.raises(InputError, match="needs a support value"):
        keep(SOUP, min_support=0.5)
    empty = SOUP.replace(changes=())
    assert keep(empty, min_support=0.5) == empty


def test_changes_that_are_likely_wrong_go() -> None:
    changes = (one.replace(confidence=share) for one, share in zip(SOUP.changes, (0.9, 0.2, 0.5, 0, 0.1), strict=True))
    trace = SOUP.replace(changes=tuple(changes))
    kept = keep(trace, min_confidence=0.5)
    assert left(kept) == [(1, "leek"), (2, "leek")]
    assert kept.provenance.decoding["min_confidence"] == 0.5
    assert keep(kept, min_confidence=0.3) == kept
    assert str(Keep(min_confidence=0.25)) == "confidence>=0.25"
    with pytest.raises(InputError, match="needs a confidence value"):
        keep(SOUP, min_confidence=0.5)


def test_the_front_door_rates_what_nobody_rated_and_refuses_to_keep_everything() -> None:
    assert left(keep(SOUP.replace(salience=()), top=1)) == [(1, "leek"), (2, "leek")]
    assert left(keep(SOUP, min_salience=4)) == left(keep_rated(SOUP, Keep(min_salience=4)))
    with pytest.raises(InputError, match="no filter given"):
        keep(SOUP)
    with pytest.raises(InputError, match="`top` must be at least 1, not 0"):
        keep(SOUP, top=0)
