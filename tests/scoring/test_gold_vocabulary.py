"""Which gold pair a predicted pair of names means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fluents.records import Alternatives, AttributeCluster, EntityCluster, Procedure, StateChange, Trace
from fluents.scoring.gold_vocabulary import (
    GoldVocabulary,
    clusters_of,
    has_expansions,
    names_of,
    normalised,
    without_article,
)

POT = EntityCluster(
    name="pot",
    mentions=("pot", "the tea pot"),
    expansions=("kettle",),
    attributes=(
        AttributeCluster(name="heat", mentions=("heat", "Temperature"), expansions=("warmth",)),
        AttributeCluster(name="place", mentions=("place",)),
    ),
)
LID = EntityCluster(
    name="lid", mentions=("lid", "pot"), attributes=(AttributeCluster(name="heat", mentions=("heat",)),)
)


def change(entity: str, attribute: str, alternatives: Alternatives = Alternatives()) -> StateChange:  # noqa: B008
    return StateChange(step=1, entity=entity, attribute=attribute, before="b", after="a", alternatives=alternatives)


def trace(*changes: StateChange) -> Trace:
    return Trace(procedure=Procedure(id="tea", steps=("Boil.",)), changes=changes, clusters=(POT, LID))


def vocabulary(*, expanded: bool = False) -> GoldVocabulary:
    return GoldVocabulary((POT, LID), expanded=expanded, entity_key=normalised, attribute_key=normalised)


def test_one_leading_article_goes_and_no_other() -> None:
    assert [without_article(text) for text in ("The Cup", "a cup", "an ant", "theatre", "the the cup", "cup a")] == [
        "cup",
        "cup",
        "ant",
        "theatre",
        "the cup",
        "cup a",
    ]


@given(st.text())
def test_white_space_makes_no_difference_when_normalised(text: str) -> None:
    assert normalised(f"  {text}\n") == normalised(text.replace(" ", "  "))


def test_a_pair_of_names_may_mean_several_gold_pairs() -> None:
    assert list(vocabulary().find("tea pot", "temperature")) == [("pot", "heat")]
    assert list(vocabulary().find("pot", "heat")) == [("pot", "heat"), ("lid", "heat")]


def test_names_of_different_pairs_do_not_mix() -> None:
    assert list(vocabulary().find("lid", "place")) == []
    assert list(vocabulary().find("cup", "heat")) == []


def test_expansions_count_only_when_asked_for() -> None:
    assert list(vocabulary().find("kettle", "warmth")) == []
    assert list(vocabulary(expanded=True).find("kettle", "warmth")) == [("pot", "heat")]
    assert names_of(POT, expanded=True) == ("pot", "the tea pot", "kettle")
    assert has_expansions(trace())
    assert not has_expansions(trace().replace(clusters=(LID,)))


def test_changes_without_a_cluster_get_one_of_their_own_wordings() -> None:
    wordings = Alternatives(entity=("cup", "mug"), attribute=("color", "hue"))
    made = clusters_of(trace(change("cup", "color", wordings)))[-1]
    assert (made.name, set(made.mentions)) == ("cup", {"cup", "mug"})
    assert [(a.name, set(a.mentions)) for a in made.attributes] == [("color", {"color", "hue"})]


def test_a_new_attribute_of_a_known_entity_goes_by_all_its_names() -> None:
    made = clusters_of(trace(change("pot", "color"), change("pot", "heat")))[-1]
    assert (made.name, made.mentions, made.expansions) == ("pot", POT.mentions, POT.expansions)
    assert [attribute.name for attribute in made.attributes] == ["color"]
