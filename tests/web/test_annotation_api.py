"""The API of annotation projects over HTTP: what its routes do, and a project from its first item to its exports."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

import httpx

from annotated import API, TEA, Annotating, ServedProject, annotated, new_decision
from fluents.annotation.design import ProjectDesign, StageDesign
from fluents.data.file_formats import read_traces
from fluents.records import StateChange, Trace
from fluents.web.annotation_application import AnnotationSettings

HOT = {"step": 1, "entity": "water", "attribute": "temperature", "before": "cold", "after": "hot"}
WET = {"step": 2, "entity": "leaves", "attribute": "wetness", "before": "dry", "after": "wet"}


def changed(*changes: dict[str, Any]) -> Trace:
    return TEA.replace(changes=tuple(StateChange(**change) for change in changes))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedProject]:
    with annotated(tmp_path / "annotation.sqlite", "vet,clean-changes", [changed(HOT, WET)]) as found:
        yield found


def test_a_project_from_authors_to_its_exports(tmp_path: Path, store_address: str) -> None:
    with annotated(store_address, "author,vet", [TEA]) as served:
        owner = served.client("owner")
        for changes in ([HOT, WET], [HOT]):
            author = served.client()
            author.decide(author.next(), {"changes": changes})
        opened = owner.call("POST", "/stages/open", {})["stage"]
        assert (opened["kind"], opened["items"]) == ("vet", 2)
        for judge in [served.client() for _ in range(3)]:
            while (item := judge.next()) is not None:
                judge.decide(item, {"valid": item["item"]["payload"]["change"]["entity"] == "water"})
        assert owner.call("POST", "/stages/open", {}) == {"stage": None}
        assert [stage["state"] for stage in owner.call("GET", "/me")["stages"]] == ["done", "done"]
        for name in ("fluents", "openpi-c", "openpi2", "openpi"):
            file = tmp_path / f"{name}.json"
            content = owner.get(f"{API}/export", params={"format": name}).content
            if name == "openpi":
                file = tmp_path / name
                zipfile.ZipFile(io.BytesIO(content)).extractall(file)
            else:
                file.write_bytes(content)
            [trace] = read_traces(file)
            assert [(change.entity, change.after) for change in trace.changes] == [("water", "hot")], name


def test_me_says_all_that_the_page_needs(served: ServedProject) -> None:
    me = served.client("annotator", "Ada").call("GET", "/me")
    assert (me["member"]["name"], me["member"]["role"], me["member"]["pseudonym"]) == ("Ada", "annotator", "A1")
    assert me["project"]["name"] == "Tea and soup"
    assert (me["stage"]["number"], me["stage"]["kind"], me["stage"]["judges"]) == (1, "vet", 3)
    assert me["stages"][0] == {"number": 1, "kind": "vet", "state": "open", "items": 2, "decided": 0}
    assert me["stages"][1]["state"] == "waiting"
    assert me["mine"] == {"done": 0, "today": 0}


def test_a_decision_can_bring_the_next_item_along(served: ServedProject) -> None:
    client = served.client()
    first = client.next()
    given = {"id": new_decision(), "item": first["item"]["id"], "answer": {"valid": True}}
    kept = client.call("POST", "/decisions?next=1", given, status=201)
    assert kept["next"]["item"]["id"] != first["item"]["id"]
    again = client.call("POST", "/decisions", given, status=200)
    assert (again["id"], again["number"], again["time"]) == (kept["id"], kept["number"], kept["time"])
    client.call("POST", "/decisions", given | {"answer": {"valid": False}}, status=409)
    assert client.call("GET", "/me")["mine"] == {"done": 1, "today": 1}


def test_two_items_in_hand_come_without_asking_for_the_same_twice(served: ServedProject) -> None:
    client = served.client()
    first = client.next()["item"]["id"]
    second = client.next(besides=[first])["item"]["id"]
    assert second != first
    assert client.next(besides=[first, second]) is None
    kept = client.call(
        "POST",
        f"/decisions?next=1&besides={second}",
        {"id": new_decision(), "item": first, "answer": {"valid": True}},
    )
    assert kept["next"] is None


def test_a_decision_of_somebody_else_is_not_kept_under_my_name(served: ServedProject) -> None:
    """In one browser, another window may have joined as another person before all decisions were sent."""
    ann, ben = served.client("annotator"), served.client("annotator")
    handed = ann.next()
    given = {"id": new_decision(), "item": handed["item"]["id"], "answer": {"valid": True}}
    mine = ann.call("GET", "/me")["member"]["id"]
    ben.call("POST", f"/decisions?member={mine}", given, 401)
    ann.call("POST", f"/decisions?member={mine}", given, 201)
    assert ben.call("GET", "/mine") == []


def test_names_that_were_not_sent_yet_are_offered_as_the_same(served: ServedProject) -> None:
    ann = served.client("annotator")
    asked = {"kind": "entity", "q": "coffee machine", "item": ann.next()["item"]["id"]}
    assert ann.call("GET", "/suggest", params=asked) == []
    [found] = ann.call("GET", "/suggest", params=asked | {"known": ["coffee maker", "spoon"]})
    assert found["same_as"] == "coffee maker"


def test_undo_takes_back_and_the_item_is_there_to_be_decided_again(served: ServedProject) -> None:
    client = served.client()
    item = client.next()
    kept = client.decide(item, {"valid": True})
    undoing = {"id": new_decision()}
    undone = client.call("POST", f"/decisions/{kept['id']}/undo", undoing, status=201)
    assert undone["item"] == item["item"]
    assert undone["lease"]["until"] is not None
    assert undone["answer"]["valid"] is True
    assert client.call("POST", f"/decisions/{kept['id']}/undo", undoing, status=200)["number"] == undone["number"]
    assert client.call("GET", "/me")["mine"]["done"] == 0
    [listed] = client.call("GET", "/mine")
    assert (listed["id"], listed["undone"]) == (kept["id"], True)
    client.decide(item, {"valid": False, "reason": "factual"})
    assert client.call("GET", "/me")["mine"]["done"] == 1


def test_an_answer_that_does_not_fit_is_refused_and_nothing_is_kept(served: ServedProject) -> None:
    client = served.client()
    item = client.next()
    wrong: list[dict[str, Any]] = [{}, {"valid": "yes"}, {"valid": True, "reason": "factual"}, {"changes": []}]
    for answer in wrong:
        client.decide(item, answer, status=422)
    assert client.call("GET", "/mine") == []


# Who sees what (who may do what is in `test_annotation_roles`)


def test_annotators_may_neither_adjudicate_nor_check(served: ServedProject) -> None:
    client = served.client()
    item = client.next()
    for claim in ("adjudicates", "checks"):
        client.decide(item, {"valid": True}, status=403, **{claim: True})


def test_a_token_sees_its_own_project_only(tmp_path: Path) -> None:
    from fluents.web.annotation_members import Members
    from fluents.web.annotation_projects import Projects

    with annotated(tmp_path / "annotation.sqlite", "vet", [changed(HOT)]) as served:
        design = ProjectDesign(name="another", stages=(StageDesign(kind="vet"),))
        other = Projects(served.store).create(design, [changed(WET, HOT)])
        mine = served.client("owner")
        _, token = Members(served.store).join(Members(served.store).invite(other.id, "owner"), "other")
        with Annotating(base_url=served.address, headers={"Authorization": f"Bearer {token}"}) as theirs:
            items = [theirs.next()["item"]["id"]]
            items.append(theirs.next(besides=items)["item"]["id"])
            foreign = next(item for item in items if item != mine.next()["item"]["id"])
            kept = theirs.decide(foreign, {"valid": True})
            mine.call("GET", f"/items/{foreign}", status=404)
            mine.decide(foreign, {"valid": True}, status=404)
            mine.call("POST", f"/decisions/{kept['id']}/undo", {"id": new_decision()}, status=404)
            assert mine.call("GET", "/audit")["total"] == 0
            assert [one["name"] for one in mine.call("GET", "/people")] == ["owner"]
            assert b"wetness" not in mine.get(f"{API}/export", params={"format": "history"}).content


def test_a_server_of_one_project_does_not_know_the_members_of_others(tmp_path: Path) -> None:
    settings = AnnotationSettings(only="0123456789abcdef")
    with annotated(tmp_path / "annotation.sqlite", "vet", [changed(HOT)], settings) as served:
        served.client("owner").call("GET", "/me", status=401)


def test_what_annotators_must_not_see_never_leaves(tmp_path: Path) -> None:
    systems = {"secret system": [changed(WET)]}
    with annotated(tmp_path / "annotation.sqlite", "judge", [changed(HOT)], systems=systems) as served:
        client, seen = served.client(), b""
        while (answer := client.post(f"{API}/next", json={})).status_code == 200:
            seen += answer.content
            pairs = answer.json()["item"]["payload"]["pairs"]
            client.decide(answer.json(), {"verdicts": ["right"] * len(pairs)})
        assert b"wetness" in seen
        assert b"secret" not in seen
        assert b"gold" not in seen
        owner = served.client("owner")
        assert b"secret system" in owner.get(f"{API}/export", params={"format": "history"}).content


@pytest.mark.parametrize("code", ["abc", "12345678901 half", "\ud800" * 10, "x" * 101])
def test_half_a_link_is_told_in_plain_words(served: ServedProject, code: str) -> None:
    with httpx.Client(base_url=served.address) as client:
        body = json.dumps({"invitation": code, "name": "Ada"})
        answer = client.post(f"{API}/join", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422
        assert answer.json()["error"] == "the link of this invitation is incomplete: copy all of it"


def test_an_invitation_lets_in_as_many_as_it_says(served: ServedProject) -> None:
    code = served.invitation("adjudicator", uses=2)
    with httpx.Client(base_url=served.address) as client:
        for name in ("Ada", "Bo"):
            joined = client.post(f"{API}/join", json={"invitation": code, "name": name})
            assert (joined.status_code, joined.json()["role"]) == (201, "adjudicator")
        assert client.post(f"{API}/join", json={"invitation": code, "name": "Cy"}).status_code == 403
        for name in ("", " ", "a\nb", "x" * 101):
            given = {"invitation": served.invitation(), "name": name}
            assert client.post(f"{API}/join", json=given).status_code == 422


def test_a_member_who_lost_the_cookie_is_let_in_again_and_the_old_token_ends(served: ServedProject) -> None:
    owner, member = served.client("owner"), served.client("annotator", "Ada")
    member.decide(member.next(), {"valid": True})
    link = owner.call("POST", "/invitations", {"member": "A2"}, status=201)["link"]
    with Annotating(base_url=served.address) as again:
        joined = again.call("POST", "/join", {"invitation": link.partition("#")[2], "name": "whoever"})
        assert joined["member"]["name"] == "Ada"
        assert again.call("GET", "/me")["mine"]["done"] == 1
    member.call("GET", "/me", status=401)
    owner.call("POST", "/invitations", {"member": "A9"}, status=404)


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(served: ServedProject) -> None:
    with httpx.Client(base_url=served.address) as client:
        joined = client.post(f"{API}/join", json={"invitation": served.invitation(), "name": "Ada"})
        [cookie] = [one for one in joined.headers.get_list("set-cookie") if one.startswith("fluents_member=")]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert client.get(f"{API}/me").status_code == 200
        client.delete(f"{API}/session")
        assert client.get(f"{API}/me").status_code == 401
        assert client.post(f"{API}/session", json={"token": joined.json()["token"]}).status_code == 204
        assert client.get(f"{API}/me").status_code == 200
        assert client.post(f"{API}/session", json={"token": "wrong"}).status_code == 401


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}]
)
def test_other_sites_can_neither_decide_nor_join(served: ServedProject, headers: dict[str, str]) -> None:
    client = served.client()
    item = client.next()
    given = {"id": new_decision(), "item": item["item"]["id"], "answer": {"valid": True}}
    assert client.post(f"{API}/decisions", json=given, headers=headers).status_code == 403
    join = {"invitation": served.invitation(), "name": "Ada"}
    assert client.post(f"{API}/join", json=join, headers=headers).status_code == 403
    assert client.call("GET", "/mine") == []


def test_links_have_their_code_in_the_fragment(served: ServedProject) -> None:
    link = served.client("owner").call("POST", "/invitations", {"uses": 3}, status=201)["link"]
    address, _, code = link.partition("/?join#")
    assert address == served.address
    assert len(code) >= 24


def test_a_guideline_has_versions_and_decisions_name_theirs(served: ServedProject) -> None:
    owner, client = served.client("owner"), served.client()
    client.decide(client.next(), {"valid": True})
    assert owner.call("PUT", "/guideline", {"text": "Be strict.\0"}) == {"version": 2, "text": "Be strict.\0"}
    assert client.call("GET", "/me")["guideline"] == {"version": 2, "text": "Be strict.\0"}
    client.decide(client.next(), {"valid": True})
    assert [one["guideline"] for one in owner.call("GET", "/audit")["items"]] == [2, 1]


def test_keys_are_kept_and_limited(served: ServedProject) -> None:
    client = served.client()
    client.call("PUT", "/me/keys", {"yes": "j", "undo": "u"}, status=204)
    assert client.call("GET", "/me")["keys"] == {"yes": "j", "undo": "u"}
    for keys in ({"yes": "x" * 21}, {"yes": 1}, {str(n): "a" for n in range(41)}):
        client.call("PUT", "/me/keys", keys, status=422)


def test_a_stage_that_is_not_finished_is_closed_by_force_only_and_then_refuses_decisions(served: ServedProject) -> None:
    owner, client = served.client("owner"), served.client()
    item = client.next()
    kept = client.decide(item, {"valid": True})
    assert "2 of 2 items" in owner.call("POST", "/stages/open", {}, status=409)["error"]
    assert owner.call("POST", "/stages/open", {"force": True})["stage"]["number"] == 2
    client.decide(item, {"valid": False}, status=409)
    client.call("POST", f"/decisions/{kept['id']}/undo", {"id": new_decision()}, status=409)
    again = {"id": kept["id"], "item": item["item"]["id"], "answer": {"valid": True}}
    client.call("POST", "/decisions", again, status=200)  # it was acknowledged, but the answer may have been lost


def test_the_audit_shows_who_said_what_when(served: ServedProject) -> None:
    owner, client = served.client("owner", "Olga"), served.client("annotator", "Ada")
    kept = client.decide(client.next(), {"valid": False, "reason": "reader"}, seconds=2.5)
    client.call("POST", f"/decisions/{kept['id']}/undo", {"id": new_decision()})
    page = owner.call("GET", "/audit?limit=1")
    assert (page["total"], page["next"]) == (2, 1)
    assert page["items"][0]["undoes"] == kept["id"]
    [first] = owner.call("GET", "/audit?offset=1")["items"]
    assert (first["author"], first["answer"]["reason"], first["seconds"], first["undone"]) == (
        "A2",
        "reader",
        2.5,
        True,
    )
    people = owner.call("GET", "/people")
    assert [(one["name"], one["pseudonym"], one["done"]) for one in people] == [("Olga", "A1", 0), ("Ada", "A2", 0)]


def test_the_schema_names_every_route_and_the_page_is_served(served: ServedProject) -> None:
    with httpx.Client(base_url=served.address) as client:
        paths = client.get("/api/v1/openapi.json").json()["paths"]
        assert all(path.startswith(API) for path in paths)
        assert client.get(f"{API}/health").json()["status"] == "ok"
        assert json.dumps(paths).count("operationId") >= 20
        for path in ("/", "/annotate"):
            assert "<title>" in client.get(path).text


def test_the_same_request_to_close_a_stage_closes_one_stage(served: ServedProject) -> None:
    """Whoever presses twice, or sends it again after a lost answer, must not close the stage that follows."""
    owner = served.client("owner")
    owner.call("POST", "/stages/open", {"force": True, "stage": 1})
    owner.call("POST", "/stages/open", {"force": True, "stage": 1}, 409)
    assert [stage["state"] for stage in owner.call("GET", "/progress")] == ["done", "open"]


def test_many_at_once_leaves_rulings_alone_that_are_newer_than_the_figures(
    served: ServedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fluents.web.annotation_figures.QUICK", -1)
    monkeypatch.setattr("fluents.web.annotation_figures.REST", 10**9)
    adjudicator = served.client("adjudicator")
    for judge, valid in ((served.client(), valid) for valid in (True, True, False)):
        while (item := judge.next()) is not None:
            judge.decide(item, {"valid": valid})
    first, _ = adjudicator.call("GET", "/disagreements")["items"]
    adjudicator.decide(first["item"]["id"], {"valid": False}, adjudicates=True)
    assert adjudicator.call("POST", "/adjudicate/bulk", {"threshold": 0.5}) == {"accepted": 1}
    rulings = [one for one in served.client("owner").call("GET", "/audit")["items"] if one["adjudicates"]]
    assert [one["answer"]["valid"] for one in rulings if one["item"] == first["item"]["id"]] == [False]


def test_an_undo_that_is_sent_again_after_the_lease_ended_is_acknowledged(tmp_path: Path) -> None:
    """The first answer was lost; somebody else has the item now."""
    settings = AnnotationSettings(lease_seconds=0.05)
    with annotated(tmp_path / "annotation.sqlite", "vet:1", [changed(HOT)], settings) as served:
        ann, bob = served.client(), served.client()
        kept = ann.decide(ann.next(), {"valid": True})
        undoing = {"id": new_decision()}
        ann.call("POST", f"/decisions/{kept['id']}/undo", undoing, 201)
        while (taken := bob.next()) is None:
            pass
        bob.decide(taken, {"valid": False})
        assert ann.call("POST", f"/decisions/{kept['id']}/undo", undoing, 200)["answer"] == {
            "valid": True,
            "reason": None,
        }


def test_behind_a_proxy_the_link_and_the_cookie_are_those_of_the_public_address(served: ServedProject) -> None:
    """The browser says by which address it came; a proxy that speaks HTTPS asks us by HTTP."""
    public = {"Host": "localhost", "Origin": "https://localhost"}
    link = served.client("owner").call("POST", "/invitations", {}, headers=public)["link"]
    assert link.startswith("https://localhost/?join#")
    given = {"invitation": served.invitation(), "name": "Ann"}
    joined = httpx.post(f"{served.address}{API}/join", json=given, headers=public)
    assert "; Secure" in joined.headers["set-cookie"]
