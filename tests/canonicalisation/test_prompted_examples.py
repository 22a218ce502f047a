"""Examples of clusters: what is shown of them, what is never shown, and that the same seed shows the same."""

from __future__ import annotations

import json

import pytest
from bike import BIKE
from hypothesis import given
from hypothesis import strategies as st

from fluents.canonicalisation import canonicalise
from fluents.canonicalisation.prompted_method import MOST_SHOWN, ClusterExamples, PromptedMethod
from fluents.errors import InputError
from fluents.llm import LanguageModel
from fluents.records import AttributeCluster, EntityCluster, Procedure, Trace
from scripted import Script
from strategies import traces

KETTLE = EntityCluster(
    name="kettle",
    mentions=("kettle", "boiler"),
    attributes=(
        AttributeCluster(name="heat", mentions=("heat", "temperature")),
        AttributeCluster(name="weight", mentions=("weight",)),
    ),
)


def teas(count: int) -> list[Trace]:
    clusters = (EntityCluster(name="cup", mentions=("cup",)), KETTLE)
    return [
        Trace(procedure=Procedure(id=f"{n}", goal=f"Make tea {n}", steps=(f"Boil {n}.",)), clusters=clusters)
        for n in range(count)
    ]


def test_examples_stand_in_the_question_instead_of_ours() -> None:
    script = Script(lambda _: '{"groups": []}')
    examples = ClusterExamples(teas(2), 2, source="mine.jsonl")
    model = LanguageModel(script, "parrot", workers=1)
    done = canonicalise(BIKE, PromptedMethod(model, 1, 1, examples=examples))
    entities = next(one.prompt for one in script.asked if one.name == "cluster-entities-1")
    assert entities.count('Names: "boiler", "cup", "kettle"\nAnswer: {"groups": [["cup"], ["kettle", "boiler"]]}') == 2
    assert "paper bird" not in entities
    attributes = next(one.prompt for one in script.asked if one.name == "cluster-attributes-1")
    assert 'Thing: "kettle"\nNames: "heat", "temperature", "weight"\n' in attributes
    assert "jumper" not in attributes
    assert str(done.provenance.decoding["clusters"]).endswith("1+1 runs, 2 examples of mine.jsonl")


def test_the_procedure_itself_is_never_shown() -> None:
    shown = ClusterExamples(teas(3), 3)
    with pytest.raises(InputError, match="only 2 procedures in `examples` can be"):
        shown.of(teas(3)[1].procedure, "entities")


def test_the_same_seed_shows_the_same_and_another_seed_others() -> None:
    scenes = {
        seed: [one.scene for one in ClusterExamples(teas(9), 3, seed).of(BIKE.procedure, "entities")] for seed in (1, 2)
    }
    assert scenes[1] == [one.scene for one in ClusterExamples(teas(9), 3, 1).of(BIKE.procedure, "entities")]
    assert scenes[1] != scenes[2]


def test_procedures_with_one_name_or_very_many_are_no_examples() -> None:
    many = tuple(EntityCluster(name=f"{n}", mentions=(f"{n}",)) for n in range(MOST_SHOWN + 1))
    for clusters in ((), many, many[:1]):
        shown = ClusterExamples([teas(1)[0].replace(clusters=clusters)], 1)
        with pytest.raises(InputError, match="no procedures in `examples` can be"):
            shown.of(BIKE.procedure, "entities")


@given(st.lists(traces(), max_size=3, unique_by=lambda trace: trace.id))
def test_every_answer_shown_is_json_and_groups_all_the_names_shown(pool: list[Trace]) -> None:
    shown = ClusterExamples([canonicalise_alone(trace) for trace in pool], 1)
    try:
        [example] = shown.of(BIKE.procedure, "entities")
    except InputError:
        return
    groups = json.loads(example.answer)["groups"]
    assert sorted(name for group in groups for name in group) == sorted(json.loads(name) for name in example.names)


def canonicalise_alone(trace: Trace) -> Trace:
    """Every name by itself, as a file made by hand may have it."""
    names = dict.fromkeys(change.entity for change in trace.changes)
    return trace.replace(clusters=tuple(EntityCluster(name=name, mentions=(name,)) for name in names))
