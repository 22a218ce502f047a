"""What adjudicators and owners see: disagreements, agreement, pay, checks; and what is offered to those who write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from annotated import TEA, Annotating, ServedProject, annotated
from fluents.annotation.design import Pay, ProjectDesign, StageDesign
from fluents.records import StateChange, Trace


def change(step: int, entity: str, attribute: str, before: str, after: str) -> dict[str, Any]:
    return {"step": step, "entity": entity, "attribute": attribute, "before": before, "after": after}


HOT = change(1, "water", "temperature", "cold", "hot")
WET = change(2, "leaves", "wetness", "dry", "wet")
FULL = change(2, "cup", "fullness", "empty", "full")


def trace(*changes: dict[str, Any]) -> Trace:
    return TEA.replace(changes=tuple(StateChange(**one) for one in changes))


def judged(served: ServedProject, *votes: dict[str, bool]) -> list[Annotating]:
    """Each of so many judges says of each entity whether its change is valid."""
    people = [served.client() for _ in votes]
    for client, vote in zip(people, votes, strict=True):
        while (item := client.next()) is not None:
            client.decide(item, {"valid": vote[item["item"]["payload"]["change"]["entity"]]}, seconds=10)
    return people


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedProject]:
    stage = StageDesign(kind="vet", expert_check=2, pay=Pay(per_item=0.5, currency="EUR"))
    with annotated(
        tmp_path / "annotation.sqlite", ProjectDesign(name="Tea", stages=(stage,)), [trace(HOT, WET, FULL)]
    ) as found:
        yield found


SPLIT = (
    {"water": True, "leaves": True, "cup": False},
    {"water": True, "leaves": True, "cup": True},
    {"water": True, "leaves": False, "cup": False},
)


def test_disagreements_are_shown_with_pseudonyms_and_settled_by_a_ruling(served: ServedProject) -> None:
    judged(served, *SPLIT)
    ruler = served.client("adjudicator")
    page = ruler.call("GET", "/disagreements?stage=1")
    assert (page["total"], page["next"]) == (2, None)
    assert {one["item"]["payload"]["change"]["entity"] for one in page["items"]} == {"leaves", "cup"}
    first = page["items"][0]
    assert [one["author"] for one in first["answers"]] == ["A1", "A2", "A3"]
    assert first["agreement"] == pytest.approx(2 / 3)
    assert "secret" not in first["item"]
    kept = ruler.decide(first["item"]["id"], {"valid": True}, adjudicates=True)
    assert ruler.call("GET", "/disagreements")["total"] == 1
    ruler.call("POST", f"/decisions/{kept['id']}/undo", {"id": "undo-of-it"})
    assert ruler.call("GET", "/disagreements")["total"] == 2
    served.client().call("GET", "/disagreements", status=403)


def test_what_most_say_is_accepted_above_a_threshold(served: ServedProject) -> None:
    judged(served, *SPLIT)
    ruler, owner = served.client("adjudicator"), served.client("owner")
    assert ruler.call("POST", "/adjudicate/bulk", {"stage": 1, "threshold": 0.7}) == {"accepted": 0}
    assert ruler.call("POST", "/adjudicate/bulk", {"stage": 1, "threshold": 0.6}) == {"accepted": 2}
    assert ruler.call("POST", "/adjudicate/bulk", {"stage": 1, "threshold": 0.6}) == {"accepted": 0}
    rulings = [one for one in owner.call("GET", "/audit")["items"] if one["adjudicates"]]
    assert sorted(one["answer"]["valid"] for one in rulings) == [False, True]
    assert {one["author"] for one in rulings} == {"A4"}


def test_agreement_is_live_and_names_people_by_their_pseudonyms(served: ServedProject) -> None:
    owner = served.client("owner")
    assert owner.call("GET", "/agreement?stage=1")["alpha"] is None
    judged(served, *SPLIT)
    found = owner.call("GET", "/agreement")
    assert found["full"] == pytest.approx(1 / 3)
    assert (found["stage"], found["kind"], found["units"]) == (1, "vet", 3)
    people = {one["pseudonym"]: one for one in found["by_person"]}
    assert people["A2"]["decisions"] == 3
    assert [one["agreement"] for one in found["by_item"]] == pytest.approx([2 / 3, 2 / 3, 1])
    outcome = owner.call("GET", "/outcome")
    assert (outcome["before"]["changes"], outcome["after"]["changes"]) == (3, 2)
    owner.call("GET", "/agreement?stage=2", status=404)


def test_pay_and_time_are_computed_from_decisions(served: ServedProject) -> None:
    judged(served, *SPLIT)
    pay = served.client("owner").call("GET", "/pay")
    assert pay["currency"] == "EUR"
    assert [one["amount"] for one in pay["people"]] == [1.5, 1.5, 1.5]
    assert pay["people"][0]["seconds"] == 30
    assert pay["people"][0]["per_hour"] == pytest.approx(180)


def test_experts_check_a_sample_and_change_nothing(served: ServedProject) -> None:
    judged(served, *SPLIT)
    expert, owner = served.client("adjudicator"), served.client("owner")
    page = expert.call("GET", "/checks?stage=1")
    assert page["total"] == len(page["items"]) == 2
    before = owner.call("GET", "/outcome")
    for item in page["items"]:
        expert.decide(item["id"], {"valid": False}, checks=True)
    assert expert.call("GET", "/checks")["total"] == 0
    assert owner.call("GET", "/agreement")["expert"]["items"] == 2
    assert owner.call("GET", "/outcome") == before


def test_systems_are_scored_from_what_people_judged_blind(tmp_path: Path) -> None:
    systems = {"one": [trace(HOT, WET)], "two": [trace(HOT)]}
    with annotated(tmp_path / "annotation.sqlite", "judge", [trace(HOT)], systems=systems) as served:
        client = served.client()
        while (item := client.next()) is not None:
            pairs = item["item"]["payload"]["pairs"]
            verdicts = ["right" if pair["entity"] == "water" else "nonsense" for pair in pairs]
            client.decide(item, {"verdicts": verdicts, "missing": []})
        found = served.client("owner").call("GET", "/outcome")["systems"]
        assert set(found) == {"gold", "one", "two"}


# While somebody writes


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[ServedProject]:
    with annotated(tmp_path / "annotation.sqlite", "author,audit", [TEA], drafts=[trace(HOT, WET, FULL)]) as found:
        yield found


def offers(client: Annotating, item: Any, kind: str, typed: str) -> list[Any]:
    found: list[Any] = client.call(
        "GET", "/suggest", params={"kind": kind, "q": typed, "item": item["item"]["id"], "procedure": "tea"}
    )
    return found


def test_authors_are_offered_the_text_the_design_and_their_own_words_but_not_those_of_others(
    writing: ServedProject,
) -> None:
    first, second = writing.client(), writing.client()
    mine = first.next()
    first.decide(mine, {"changes": [change(1, "kettle lid", "openness", "closed", "ajar")]})
    assert "kettle lid" in [one["text"] for one in offers(first, mine, "entity", "kett")]
    assert "ajar" in [one["text"] for one in offers(first, mine, "value", "aj")]
    theirs = second.next()
    assert offers(second, theirs, "entity", "kett") == []
    assert offers(second, theirs, "value", "aj") == []
    assert "leaves" in [one["text"] for one in offers(second, theirs, "entity", "lea")]
    assert "temperature" in [one["text"] for one in offers(second, theirs, "attribute", "temp")]


def test_a_name_in_use_is_offered_for_another_that_means_the_same(writing: ServedProject) -> None:
    client = writing.client()
    item = client.next()
    client.decide(item, {"changes": [change(1, "coffee maker", "power", "off", "on")]})
    same = [one for one in offers(client, item, "entity", "the coffee maker") if one["same_as"]]
    assert [(one["text"], one["same_as"]) for one in same] == [("the coffee maker", "coffee maker")]


def test_prompts_come_after_the_blind_pass_only(writing: ServedProject) -> None:
    client, other = writing.client(), writing.client()
    item = client.next()
    client.call("GET", "/recall", params={"item": item["item"]["id"]}, status=422)
    client.decide(item, {"changes": [HOT]})
    prompts = client.call("GET", "/recall", params={"item": item["item"]["id"]})["prompts"]
    assert {one["entity"] for one in prompts} == {"leaves", "cup"}
    other.decide(other.next(), {"changes": [HOT]})
    writing.client("owner").call("POST", "/stages/open", {})
    audited = client.next()
    assert audited["item"]["kind"] == "audit"
    prompts = client.call("GET", "/recall", params={"item": audited["item"]["id"]})["prompts"]
    assert {one["entity"] for one in prompts} == {"leaves", "cup"}
