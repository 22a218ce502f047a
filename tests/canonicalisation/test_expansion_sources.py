"""Where other names come from: a dataset's words that are used alike, or a model."""

from __future__ import annotations

import pytest
from bike import BIKE, change

from fluents.canonicalisation import canonicalise
from fluents.canonicalisation.expansion import PromptedThesaurus, VocabularyThesaurus, expand, read
from fluents.canonicalisation.feature_method import FeatureMethod
from fluents.llm import LanguageModel
from fluents.llm.answers import UnreadableAnswer
from fluents.records import Trace
from scripted import Script

CLUSTERED = canonicalise(BIKE, FeatureMethod())


def said(
    entity: str, attribute: str = "cleanness", before: str = "dirty", after: str = "clean", times: int = 3
) -> Trace:
    changes = tuple(change(1, entity, attribute, before, after) for _ in range(times))
    return BIKE.replace(changes=changes)


def expanded(*vocabulary: Trace, near: float = 0.5) -> Trace:
    return expand(CLUSTERED, VocabularyThesaurus(vocabulary, "mine", near))


def test_a_name_near_in_meaning_and_with_like_states_is_taken() -> None:
    done = expanded(said("motorbike"), said("flour"), near=0.3)
    assert done.clusters[0].expansions == ("motorbike",)
    assert done.provenance.decoding["expansions"] == "neighbours-1 in mine, 0.3"


def test_meaning_alone_does_not_do() -> None:
    assert expanded(said("motorbike", "noise", "silent", "roaring"), near=0.3).clusters[0].expansions == ()


def test_parts_and_slips_of_the_pen_are_not_taken() -> None:
    """A name that shares a word is a part or a kind; one said but once or twice may be a slip."""
    assert expanded(said("bike chain"), said("motorbike", times=2), near=0).clusters[0].expansions == ()


def test_attributes_find_each_other_by_their_states() -> None:
    done = expanded(said("x", "dampness", "dry", "wet"), said("x", "price", "high", "low"))
    assert [one.expansions for one in done.clusters[0].attributes] == [(), ("dampness",)]


def test_a_vocabulary_without_words_has_no_names() -> None:
    assert expanded() == expanded(said("q", times=1))


def test_the_model_is_asked_about_every_cluster_and_every_attribute_by_itself() -> None:
    script = Script(lambda q: '{"names": ["cycle"]}' if q.name == "expand-entity-1" else "no idea")
    done = expand(CLUSTERED, PromptedThesaurus(LanguageModel(script, "parrot", workers=1)))
    assert done.clusters[0].expansions == ("cycle",)
    attributes = sum(len(cluster.attributes) for cluster in CLUSTERED.clusters)
    assert len(done.rejects) == attributes
    assert {one.reason for one in done.rejects} == {"expansion: the answer contains no JSON"}
    assert 'Thing: "bike"' in next(q.prompt for q in script.asked if q.name == "expand-attribute-1")


def test_names_are_read_or_the_reason_is_told() -> None:
    assert read(f'Sure! {{"names": ["cycle", " ", "{"x" * 100}"]}}') == ["cycle"]
    for text in ('{"names": [1]}', '{"names": "cycle"}', "cycle"):
        with pytest.raises(UnreadableAnswer):
            read(text)
