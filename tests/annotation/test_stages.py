"""Stages: what they ask, and what the decisions leave."""

from __future__ import annotations

from typing import Any

import pytest
from decided import BARE, BOILED, FILLED, MOVED, POURED, SOAKED, TEA, TEA_TRACE, Notebook, change, one_stage, run, shown

from fluents.annotation import Decision, Item, check_answer, design_of, expert_sample, is_decided, items, outcome
from fluents.annotation.design import STAGE_KINDS
from fluents.annotation.items import ItemAnswers, standing
from fluents.annotation.judging import system_scores
from fluents.annotation.labels import majority_answer
from fluents.errors import InputError
from fluents.records import EntityCluster, Procedure, Trace


def test_the_same_stage_makes_the_same_items() -> None:
    for kind in STAGE_KINDS:
        design = one_stage(kind)
        first, again = list(items(design, 1, [TEA_TRACE])), list(items(design, 1, [TEA_TRACE]))
        assert first == again
        assert len({item.id for item in first}) == len(first)
        assert all(Item.model_validate_json(item.model_dump_json()) == item for item in first)


def test_items_of_two_stages_of_one_kind_differ() -> None:
    design = design_of("tea", "vet,vet")
    assert not {item.id for item in items(design, 1, [TEA_TRACE])} & {item.id for item in items(design, 2, [TEA_TRACE])}


def test_two_procedures_of_one_id_are_refused() -> None:
    with pytest.raises(InputError, match="same id"):
        list(items(one_stage("vet"), 1, [TEA_TRACE, TEA_TRACE]))


# Which decisions count


@pytest.fixture
def item() -> Item:
    return next(items(one_stage("vet"), 1, [TEA_TRACE]))


def answered(item: Item, notebook: Notebook) -> ItemAnswers:
    [found] = standing([item], notebook.decisions)
    return found


def test_the_last_decision_of_an_author_counts_and_undo_brings_back_the_one_before(item: Item) -> None:
    notebook = Notebook()
    notebook.note(item, "A", {"valid": True})
    second = notebook.note(item, "A", {"valid": False})
    assert answered(item, notebook).by_author["A"]["valid"] is False
    undo = notebook.note(item, "A", {}, undoes=second.id)
    assert answered(item, notebook).by_author["A"]["valid"] is True
    notebook.note(item, "A", {}, undoes=undo.id)
    assert answered(item, notebook).by_author["A"]["valid"] is False


def test_nobody_undoes_the_decision_of_another(item: Item) -> None:
    notebook = Notebook()
    first = notebook.note(item, "A", {"valid": True})
    notebook.note(item, "B", {}, undoes=first.id)
    assert answered(item, notebook).by_author.keys() == {"A"}


def test_an_adjudicator_outweighs_all_and_a_check_nobody(item: Item) -> None:
    notebook = Notebook()
    for author in "ABC":
        notebook.note(item, author, {"valid": True})
    notebook.note(item, "E", {"valid": False}, checks=True)
    assert answered(item, notebook).votes("valid", True) == 3
    notebook.note(item, "J", {"valid": False}, adjudicates=True)
    found = answered(item, notebook)
    assert (found.votes("valid", False), found.majority, found.check) == (1, 1, {"valid": False, "reason": None})


def test_an_item_is_decided_when_its_places_are_filled_or_a_ruling_is_there(item: Item) -> None:
    notebook = Notebook()
    for author in "AB":
        notebook.note(item, author, {"valid": True})
    notebook.note(item, "A", {"valid": False})
    notebook.note(item, "E", {"valid": False}, checks=True)
    assert not is_decided(item, notebook.decisions)
    third = notebook.note(item, "C", {"valid": True})
    assert is_decided(item, notebook.decisions)
    notebook.note(item, "C", {}, undoes=third.id)
    assert not is_decided(item, notebook.decisions)
    notebook.note(item, "J", {"valid": True}, adjudicates=True)
    assert is_decided(item, notebook.decisions)


# Authoring


def test_authors_of_both_modalities_are_merged_into_one_trace() -> None:
    """The same words are one change with two votes, in both modalities; every author's own words are kept."""
    design = one_stage("author", modalities=("with_image", "without_image"))
    words = {"with_image": [BOILED, POURED], "without_image": [BOILED.replace(entity="WATER"), FILLED]}
    found = run(design, [BARE], lambda item, _: {"changes": [shown(one) for one in words[item.payload["modality"]]]})
    [trace] = found.traces
    assert [(one.entity, one.after, one.votes, one.modality) for one in trace.changes] == [
        ("water", "hot", 4, "both"),
        ("water", "in the cup", 2, "with_image"),
        ("cup", "full", 2, "without_image"),
    ]
    assert len(trace.annotations) == 8
    assert found.tallies == {"written": 8, "with_image": 4, "without_image": 4, "contradictions": 0}


def test_images_are_shown_only_to_those_who_should_see_them_and_nobody_writes_in_both_modalities() -> None:
    design = one_stage("author", modalities=("with_image", "without_image"))
    with_image, without = items(design, 1, [BARE])
    assert with_image.payload["procedure"]["images"] == list(TEA.images)
    assert "images" not in without.payload["procedure"]
    assert with_image.apart == without.apart == "tea"
    [only] = items(design, 1, [Trace(procedure=TEA.replace(images=()))])
    assert (only.payload["modality"], only.apart) == ("without_image", None)


def test_contradictions_of_an_author_with_himself_are_counted() -> None:
    again = change(2, "the water", "temperature", "cold", "boiling")
    found = run(one_stage("author"), [BARE], lambda *_: {"changes": [shown(BOILED), shown(again)]})
    assert found.tallies["contradictions"] == 2


# Audit


def test_an_audit_adds_what_is_new_and_counts_the_rest() -> None:
    missing = [
        shown(change(1, "kettle", "temperature", "cold", "hot"), type="indirect"),
        shown(change(3, "bag", "weight", "light", "heavy"), type="dimension"),
        shown(change(1, "water", "heat", "cool", "hot"), type="rewording"),
        shown(change(4, "bag", "color", "white", "blue"), type="wrong"),
        shown(BOILED, type="indirect"),
    ]
    found = run(one_stage("audit"), [TEA_TRACE], lambda *_: {"missing": missing})
    [trace] = found.traces
    assert [one.entity for one in trace.changes] == ["water", "kettle", "water", "cup", "bag", "bag", "bag"]
    assert found.tallies == {
        "changes": 5,
        "missing": 5,
        "indirect": 2,
        "dimension": 1,
        "rewording": 1,
        "wrong": 1,
    }
    assert found.coverage == 0.5


# Names


def test_clusters_are_named_by_their_first_name_and_attributes_follow() -> None:
    trace = TEA_TRACE.replace(changes=(BOILED, POURED.replace(entity="the tea"), SOAKED.replace(entity="the tea")))
    design = design_of("tea", "entities,attributes")
    found = run(design, [trace], lambda *_: {"clusters": [["the tea", "water"]]})
    [clustered] = found.traces
    assert [one.name for one in clustered.clusters] == ["the tea"]
    assert [one.name for one in clustered.clusters[0].attributes] == ["temperature", "location", "wetness"]
    assert clustered.changes == trace.changes
    found = run(design, [clustered], lambda *_: {"clusters": [["location"], ["temperature", "wetness"]]}, stage=2)
    assert [one.mentions for one in found.traces[0].clusters[0].attributes] == [
        ("location",),
        ("temperature", "wetness"),
    ]


def test_one_name_is_a_cluster_without_asking() -> None:
    trace = TEA_TRACE.replace(changes=(BOILED, POURED))
    design = one_stage("entities")
    assert list(items(design, 1, [trace])) == []
    [found] = outcome(design, 1, [trace], [], []).traces
    assert [one.mentions for one in found.clusters] == [("water",)]


def test_of_several_clusterings_the_one_most_like_the_others_is_taken() -> None:
    said = {"A": [["water", "cup"], ["bag"]], "B": [["water"], ["cup"], ["bag"]], "C": [["water", "cup"], ["bag"]]}
    found = run(one_stage("entities", judges=3), [TEA_TRACE], lambda _, author: {"clusters": said[author]})
    assert [one.mentions for one in found.traces[0].clusters] == [("water", "cup"), ("bag",)]


def test_expansions_stay_where_most_accept_them() -> None:
    cluster = EntityCluster(name="water", mentions=("water",), expansions=("liquid", "tea"))
    said = {"A": ["liquid"], "B": ["liquid", "tea"], "C": []}
    trace = TEA_TRACE.replace(clusters=(cluster,))
    found = run(one_stage("expansions", judges=3), [trace], lambda _, author: {"accepted": said[author]})
    assert found.traces[0].clusters[0].expansions == ("liquid",)
    assert [one.words for one in found.removed] == ["tea"]


def test_expansions_come_from_a_draft_whose_clusters_share_a_name() -> None:
    trace = TEA_TRACE.replace(clusters=(EntityCluster(name="water", mentions=("water",)),))
    drafted = EntityCluster(name="the liquid", mentions=("water", "the liquid"), expansions=("fluid", "water"))
    draft = TEA_TRACE.replace(clusters=(drafted,))
    [item] = items(one_stage("expansions"), 1, [trace], drafts=[draft])
    assert item.payload["expansions"] == ["fluid"]


def test_everybodys_salience_is_kept_and_a_ruling_comes_first() -> None:
    design = one_stage("salience", scope="global")
    [item] = items(design, 1, [TEA_TRACE])
    notebook = Notebook()
    for author, score in (("A", 5), ("B", 4)):
        notebook.note(item, author, {"scores": {"water": score, "cup": 3, "bag": 1}})
    notebook.note(item, "J", {"scores": {"water": 0, "cup": 0, "bag": 0}}, adjudicates=True)
    [trace] = outcome(design, 1, [TEA_TRACE], [item], notebook.decisions).traces
    assert [(one.rater, one.value) for one in trace.salience if one.entity == "water"] == [
        ("adjudicated", 0),
        ("A", 5),
        ("B", 4),
    ]
    scopes = [one.payload.get("step") for one in items(one_stage("salience"), 1, [TEA_TRACE])]
    assert scopes == [None, 1, 2, 3, 4]


# Judging systems


def test_systems_are_judged_blind_and_scored_apart() -> None:
    """Gold and two systems: nothing in a payload tells them apart, and each gets its own score."""
    one = TEA_TRACE.replace(changes=(BOILED.replace(entity="Water"), change(1, "idea", "weight", "light", "heavy")))
    two = TEA_TRACE.replace(changes=(change(1, "kettle", "fullness", "full", "empty"),))
    systems = {"one": [one], "two": [two]}
    design = one_stage("judge")
    gold = TEA_TRACE.replace(changes=(BOILED,))
    [item] = items(design, 1, [gold], systems=systems)
    assert "one" not in str(item.payload)
    assert len(item.payload["pairs"]) == 3
    verdicts = {"water": "right", "idea": "nonsense", "kettle": "no change"}

    def say(item: Item, _: str) -> dict[str, Any]:
        pairs = item.payload["pairs"]
        missing = [{"entity": "stove", "attribute": "power"}]
        return {"verdicts": [verdicts[pair["entity"].lower()] for pair in pairs], "missing": missing}

    found = run(design, [gold], say, systems=systems)
    assert found.traces == (gold,)
    scores = {name: score.rows for name, score in system_scores(found.answers).items()}
    counts = {name: {row: values["count"] for row, values in rows.items()} for name, rows in scores.items()}
    assert counts == {
        "gold": {"correct": 1, "no change": 0, "nonsense": 0, "missing": 1},
        "one": {"correct": 1, "no change": 0, "nonsense": 1, "missing": 1},
        "two": {"correct": 0, "no change": 1, "nonsense": 0, "missing": 2},
    }


def test_a_system_that_is_silent_on_a_step_misses_what_is_right_there() -> None:
    """Also if it says nothing at all; a step that it does not cover is not held against it."""
    systems = {"silent": [TEA_TRACE.replace(changes=())], "partial": [TEA_TRACE.replace(changes=(), covered=(2,))]}
    gold = TEA_TRACE.replace(changes=(BOILED,))
    found = run(one_stage("judge"), [gold], lambda *_: {"verdicts": ["right"], "missing": []}, systems=systems)
    scores = {name: score.rows["missing"]["count"] for name, score in system_scores(found.answers).items()}
    assert scores == {"gold": 0, "silent": 1}


def test_what_most_say_of_a_step_includes_what_most_miss() -> None:
    """In other letters, too; what one judge alone misses is not in it."""
    said = {"A": ["stove"], "B": ["the Stove"], "C": ["pot"]}
    verdicts = {"A": "right", "B": "right", "C": "nonsense"}

    def say(_: Item, author: str) -> dict[str, Any]:
        missing = [{"entity": name, "attribute": "power"} for name in said[author]]
        return {"verdicts": [verdicts[author]], "missing": missing}

    found = run(one_stage("judge", judges=3), [TEA_TRACE.replace(changes=(BOILED,))], say)
    assert majority_answer(found.answers[0]) == {
        "verdicts": ["right"],
        "missing": [{"entity": "stove", "attribute": "power"}],
    }


def test_hallucinations_are_asked_about_once_and_counted_for_each_system() -> None:
    systems = {"one": [TEA_TRACE.replace(changes=(BOILED, SOAKED))], "two": [TEA_TRACE.replace(changes=(SOAKED,))]}
    bare = Trace(procedure=TEA)
    design = one_stage("hallucinations", judges=3)
    said = {"A": True, "B": True, "C": False}
    found = run(
        design,
        [bare],
        lambda item, author: {"hallucinated": said[author] and item.payload["change"]["entity"] == "bag"},
        systems=systems,
    )
    assert len(found.items) == 2
    scores = system_scores(found.answers)
    assert {name: score["hallucinated"]["share"] for name, score in scores.items()} == {"one": 0.5, "two": 1.0}


# Correction


def test_a_draft_is_corrected_and_what_people_did_is_counted() -> None:
    draft = TEA_TRACE.replace(changes=(BOILED, POURED, FILLED))
    answer = {
        "changes": [
            {**shown(BOILED), "from": 0},
            {**shown(POURED.replace(after="in a cup")), "from": 1},
            {**shown(MOVED), "from": None},
        ]
    }
    found = run(one_stage("correct"), [BARE], lambda *_: answer, drafts=[draft])
    assert [one.after for one in found.traces[0].changes] == ["hot", "in a cup", "on the saucer"]
    assert found.tallies == {"kept": 1, "edited": 1, "added": 1, "dropped": 1}
    assert found.anchoring is None


def test_a_draft_that_nobody_corrected_changes_nothing() -> None:
    design = one_stage("correct")
    made = list(items(design, 1, [BARE], drafts=[TEA_TRACE]))
    assert outcome(design, 1, [BARE], made, []).traces == (BARE,)


# An expert's check


def test_the_experts_sample_is_fixed_and_no_larger_than_the_stage() -> None:
    design = one_stage("vet", expert_check=3)
    ids = [item.id for item in items(design, 1, [TEA_TRACE])]
    sample = expert_sample(design, 1, ids)
    assert sample == expert_sample(design, 1, reversed(ids))
    assert len(set(sample)) == 3
    assert len(expert_sample(one_stage("vet", expert_check=50), 1, ids)) == 5


def test_a_procedure_of_another_stage_or_an_unknown_item_changes_nothing(item: Item) -> None:
    design = one_stage("vet")
    made = list(items(design, 1, [TEA_TRACE]))
    stray = Decision(id="decision-9", item="0" * 20, author="A", answer={"valid": False}, time=1)
    assert outcome(design, 1, [TEA_TRACE], made, [stray]).traces == outcome(design, 1, [TEA_TRACE], made, []).traces
    assert check_answer(item, {"valid": True})


def test_a_stage_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InputError, match="no stage 2"):
        list(items(one_stage("vet"), 2, [TEA_TRACE]))
    with pytest.raises(InputError, match="unknown stage 'veto'"):
        design_of("tea", "author,veto")


def test_selection_filters_first_and_asks_about_the_rest() -> None:
    short = Trace(procedure=Procedure(id="short", steps=("Go.",)))
    dreamy = Trace(procedure=Procedure(id="dreamy", steps=("Sit.", "Know yourself.", "See the need.", "Go.")))
    design = one_stage("select")
    found = run(design, [short, dreamy, BARE], lambda *_: {"keep": True})
    assert [trace.id for trace in found.traces] == ["tea"]
    assert [(one.procedure, one.reason) for one in found.removed] == [
        ("short", "fewer than 4 steps"),
        ("dreamy", "stative verbs"),
    ]
    shown_all = run(one_stage("select", filtered=False), [short, dreamy], lambda *_: {"keep": False})
    assert [item.payload["facts"] for item in shown_all.items] == [
        {"steps": 1, "stative": [], "passes": False},
        {"steps": 4, "stative": ["know", "see"], "passes": False},
    ]
    assert shown_all.traces == ()
