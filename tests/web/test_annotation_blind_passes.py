"""Corrections with a blind pass: nobody gets the draft before what they see without it is saved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from annotated import API, TEA, ServedProject, annotated
from fluents import jsonl
from fluents.annotation.design import ProjectDesign, StageDesign
from fluents.errors import InputError
from fluents.records import StateChange
from fluents.web.annotation_history import history_lines, read_history
from fluents.web.annotation_members import Members
from fluents.web.annotation_places import Places
from fluents.web.store import Store

HOT = {"step": 1, "entity": "water", "attribute": "temperature", "before": "cold", "after": "hot"}
WET = {"step": 2, "entity": "leaves", "attribute": "soakedness", "before": "dry", "after": "wet"}
DRAFT = TEA.replace(changes=(StateChange(**WET),))
BLIND_FIRST = ProjectDesign(
    name="blind", stages=(StageDesign(kind="correct", judges=2, blind_first=True, expert_check=1),)
)


@pytest.fixture
def served(store_address: str) -> Iterator[ServedProject]:
    with annotated(store_address, BLIND_FIRST, [TEA], drafts=[DRAFT]) as found:
        yield found


def pass_blind(client: Any, item: Any, *changes: dict[str, Any], status: int = 200) -> Any:
    return client.call("POST", f"/items/{item['item']['id']}/blind", {"changes": list(changes)}, status)


def test_the_draft_comes_after_the_blind_pass_and_never_before(served: ServedProject) -> None:
    client = served.client()
    item = client.next()
    identity = item["item"]["id"]
    assert item["item"]["payload"].keys() == {"procedure", "blind_first"}
    asked = {"item": identity, "kind": "entity", "q": "lea"}
    seen = [
        client.get(f"{API}/items/{identity}"),
        client.post(f"{API}/items/{identity}/renew"),
        client.post(f"{API}/next", json={}),
        client.get(f"{API}/me"),
        client.get(f"{API}/recall", params={"item": identity}),
        client.get(f"{API}/suggest", params={**asked, "kind": "attribute", "q": "soak"}),
    ]
    assert [answer.status_code for answer in seen] == [200, 200, 200, 200, 422, 200]
    assert not any(b"soakedness" in answer.content for answer in seen)
    client.decide(item, {"changes": [], "blind": [HOT]}, status=409)  # as if somebody had passed
    shown = pass_blind(client, item, HOT)
    assert [change["entity"] for change in shown["item"]["payload"]["changes"]] == ["leaves"]
    assert shown["item"]["payload"]["blind"] == [HOT]
    assert client.next()["item"] == shown["item"]
    assert client.call("GET", "/suggest", params=asked)[0]["text"] == "leaves"
    assert [one["entity"] for one in client.call("GET", "/recall", params={"item": identity})["prompts"]] == []


def test_the_pass_of_one_shows_the_draft_to_nobody_else(served: ServedProject) -> None:
    ann, ben, expert = served.client(), served.client(), served.client("adjudicator")
    pass_blind(ann, ann.next(), HOT)
    item = ben.next()
    assert "changes" not in item["item"]["payload"]
    [check] = expert.call("GET", "/checks")["items"]
    assert "changes" not in check["payload"]
    assert "changes" not in expert.call("GET", f"/items/{check['id']}")["item"]["payload"]
    pass_blind(expert, {"item": check})
    assert "changes" in expert.call("GET", "/checks")["items"][0]["payload"]
    pass_blind(served.client(), item, HOT, status=404)  # not theirs


def test_what_was_saved_first_counts_whatever_is_sent_later(served: ServedProject) -> None:
    client = served.client()
    item = client.next()
    pass_blind(client, item, {**HOT, "step": 9}, status=422)
    pass_blind(client, item, HOT)
    assert pass_blind(client, item, HOT, WET)["item"]["payload"]["blind"] == [HOT]
    kept = client.decide(item, {"changes": [{**WET, "from": 0}], "blind": [HOT, WET]})
    [listed] = client.call("GET", "/mine")
    assert (listed["id"], listed["answer"]["blind"]) == (kept["id"], [HOT])
    client.call("POST", f"/decisions/{kept['id']}/undo", {"id": "undone-0001"})
    assert client.next()["item"]["payload"]["blind"] == [HOT]


def test_items_without_a_blind_pass_take_none(tmp_path: Path) -> None:
    with annotated(tmp_path / "annotation.sqlite", "correct", [TEA], drafts=[DRAFT]) as served:
        client = served.client()
        item = client.next()
        assert "changes" in item["item"]["payload"]
        pass_blind(client, item, HOT, status=422)


def test_a_pass_by_somebody_whom_the_history_does_not_contain_is_refused(served: ServedProject, tmp_path: Path) -> None:
    pass_blind(client := served.client("annotator", "Ada"), client.next(), HOT)
    file = tmp_path / "history.jsonl"
    content = b"".join(history_lines(served.store, served.project))
    file.write_bytes(content.replace(b'"author": "A1"', b'"author": "A9"'))
    with Store(tmp_path / "other.sqlite") as other, pytest.raises(InputError, match="by the member 'A9'"):
        read_history(other, jsonl.read_lines(file))


def test_a_pass_is_in_the_history_and_comes_back(served: ServedProject, tmp_path: Path) -> None:
    pass_blind(client := served.client("annotator", "Ada"), client.next(), HOT)
    lines = list(history_lines(served.store, served.project))
    file = tmp_path / "history.jsonl"
    file.write_bytes(b"".join(lines))
    with Store(tmp_path / "other.sqlite") as other:
        project = read_history(other, jsonl.read_lines(file))
        assert list(history_lines(other, project)) == lines
        members = Members(other)
        member, _ = members.join(members.invite(project.id, member="A1"), "Ada")
        lease = Places(other).next(member)
        assert lease is not None
        assert lease.item.payload["blind"] == [HOT]
