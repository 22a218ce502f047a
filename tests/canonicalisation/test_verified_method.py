"""Doubtful pairs put to a model: its word counts where it can be read, the evidence's where not."""

from __future__ import annotations

import pytest
from bike import BIKE, change

from fluents.canonicalisation import canonicalise
from fluents.canonicalisation.feature_method import FeatureMethod, VerifiedMethod, read_judgement
from fluents.llm import LanguageModel, Question
from fluents.llm.answers import UnreadableAnswer
from fluents.records import Procedure, Trace
from scripted import Script


def verified(script: Script, pairs: int = 20) -> Trace:
    return canonicalise(BIKE, VerifiedMethod(LanguageModel(script, "parrot", workers=1), pairs))


def asked_pair(question: Question) -> set[str]:
    lines = question.prompt.splitlines()
    return {line.partition(": ")[2].strip('"') for line in lines if line.startswith(("First name", "Second name"))}


def test_the_model_can_part_what_the_evidence_joins_and_join_what_it_parts() -> None:
    def answer(question: Question) -> str:
        return '{"same": true}' if asked_pair(question) == {"bike", "hook"} else '{"same": false}'

    done = verified(Script(answer))
    assert [set(cluster.mentions) for cluster in done.clusters] == [
        {"bike", "a bike", "hook"},
        {"the bicycle"},
        {"kitchen towel"},
        {"towel"},
    ]
    assert done.provenance.decoding["clusters"] == "offline-1, verified-1 by parrot, 20 pairs"


def test_names_that_mean_one_thing_only_here_are_joined_by_a_model_alone() -> None:
    """Of a paper bird: the evidence does not suffice, as the documentation says, and the model is asked."""
    bird = BIKE.replace(
        procedure=Procedure(id="bird", goal="Make a paper bird", steps=("Roll paper into a torso.", "Glue the wings.")),
        changes=(
            change(1, "torso", "shape", "flat", "rolled"),
            change(1, "paper chunk", "shape", "flat", "rolled"),
            change(2, "torso", "location", "on the table", "between the wings"),
            change(2, "paper chunk", "location", "on the table", "between the wings"),
            change(2, "wings", "location", "on the table", "on the torso"),
        ),
    )
    script = Script(
        lambda asked: '{"same": true}' if asked_pair(asked) == {"torso", "paper chunk"} else '{"same": false}'
    )
    assert len(canonicalise(bird, FeatureMethod()).clusters) == 3
    done = canonicalise(bird, VerifiedMethod(LanguageModel(script, "parrot", workers=1)))
    assert [set(cluster.mentions) for cluster in done.clusters] == [{"torso", "paper chunk"}, {"wings"}]


def test_only_so_many_pairs_are_asked_about_and_attributes_never() -> None:
    script = Script(lambda _: '{"same": true}')
    verified(script, pairs=2)
    assert [question.name for question in script.asked] == ["same-entity-1"] * 2


def test_where_the_model_cannot_be_read_the_evidence_stands() -> None:
    done = verified(Script(lambda _: "maybe"))
    assert done.clusters == canonicalise(BIKE, FeatureMethod()).clusters
    assert len(done.rejects) == 10  # every pair of five names
    assert all(one.reason.startswith("clustering: ") for one in done.rejects)


@pytest.mark.parametrize("text", ['{"same": "yes"}', '{"same": 1}', "[true]", "true", ""])
def test_anything_but_true_or_false_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableAnswer):
        read_judgement(text)
