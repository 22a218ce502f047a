"""Nobody judges a change that they wrote themselves, if enough others are there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from annotated import TEA, Annotating, ServedProject, annotated
from fluents import jsonl
from fluents.web.annotation_history import history_lines, read_history
from fluents.web.annotation_members import Members
from fluents.web.annotation_places import Places
from fluents.web.store import Store

HOT = {"step": 1, "entity": "water", "attribute": "temperature", "before": "cold", "after": "hot"}
WET = {"step": 2, "entity": "leaves", "attribute": "wetness", "before": "dry", "after": "wet"}


@pytest.fixture
def served(store_address: str) -> Iterator[ServedProject]:
    with annotated(store_address, "author:2,vet:2", [TEA]) as found:
        yield found


def written(served: ServedProject) -> tuple[Annotating, Annotating]:
    """Ann wrote one change, Ben another; they are to be vetted."""
    ann, ben = served.client("annotator", "Ann"), served.client("annotator", "Ben")
    ann.decide(ann.next(), {"changes": [HOT]})
    ben.decide(ben.next(), {"changes": [WET]})
    served.client("owner").call("POST", "/stages/open", {})
    return ann, ben


def judged(client: Annotating) -> list[str]:
    """The entities of the changes that somebody is given, in order."""
    seen = []
    while (item := client.next()) is not None:
        seen.append(item["item"]["payload"]["change"]["entity"])
        client.decide(item, {"valid": True})
    return seen


def test_with_enough_others_nobody_gets_their_own_change(served: ServedProject) -> None:
    ann, ben = written(served)
    cy = served.client("annotator", "Cy")
    assert (judged(ann), judged(ben)) == (["leaves"], ["water"])
    theirs = ann.call("GET", "/mine")[0]["item"]
    mine = ben.call("GET", "/mine")[0]["item"]
    assert "continue" in ann.decide(mine, {"valid": True}, status=409)["fix"]  # not by its id either
    ann.call("POST", f"/items/{mine}/renew", {}, status=409)
    assert judged(cy) == ["water", "leaves"]
    assert theirs != mine


def test_with_too_few_others_one_s_own_changes_come_last(served: ServedProject) -> None:
    """Two judges for each change, and two people: an owner who only looks is not one of them."""
    ann, ben = written(served)
    assert judged(ann) == ["leaves", "water"]
    cy = served.client("annotator", "Cy")  # now there are enough
    assert judged(ben) == ["water"]
    assert judged(cy) == ["leaves"]


def test_one_person_alone_can_do_everything(tmp_path: Path) -> None:
    with annotated(tmp_path / "annotation.sqlite", "author:1,vet:1", [TEA]) as served:
        owner = served.client("owner")
        owner.decide(owner.next(), {"changes": [HOT, WET]})
        owner.call("POST", "/stages/open", {})
        assert judged(owner) == ["water", "leaves"]


def test_after_an_import_it_still_holds(served: ServedProject, tmp_path: Path) -> None:
    written(served)
    file = tmp_path / "history.jsonl"
    file.write_bytes(b"".join(history_lines(served.store, served.project)))
    with Store(tmp_path / "other.sqlite") as other:
        project = read_history(other, jsonl.read_lines(file))
        members, places = Members(other), Places(other)
        ann, *_ = [members.join(members.invite(project.id, member=who), who)[0] for who in ("A1", "A2")]
        members.join(members.invite(project.id), "Cy")
        lease = places.next(ann)
        assert lease is not None
        assert lease.item.payload["change"]["entity"] == "leaves"
        assert places.next(ann, [lease.item.id]) is None
