"""Who gets into a project: invitations, what they say, and how the owner takes them and people's access back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from annotated import API, TEA, Annotating, ServedProject, annotated, served_project
from fluents.annotation.design import design_of
from fluents.records import StateChange
from fluents.web.annotation_application import AnnotationSettings
from fluents.web.annotation_members import InvitationError, Members
from fluents.web.annotation_projects import Projects
from fluents.web.annotation_records import ConflictError
from fluents.web.store import Store

HOT = StateChange(step=1, entity="water", attribute="temperature", before="cold", after="hot")
VETTED = TEA.replace(changes=(HOT,))


@pytest.fixture
def served(store_address: str) -> Iterator[ServedProject]:
    with annotated(store_address, "vet:1", [VETTED]) as found:
        yield found


def about(served: ServedProject, code: str, status: int = 200) -> dict[str, object]:
    answer = httpx.post(f"{served.address}{API}/join/about", json={"invitation": code})
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def test_an_invitation_says_what_it_is_for_and_is_not_used_up_by_that(served: ServedProject) -> None:
    code = served.invitation("adjudicator")
    for _ in range(2):
        assert about(served, code) == {"project": "Tea and soup", "role": "adjudicator", "name": None}
    served.members.join(code, "Ada")
    assert "used up" in str(about(served, code, 403)["error"])
    again = served.members.invite(served.project.id, member="A1")
    assert about(served, again) == {"project": "Tea and soup", "role": "adjudicator", "name": "Ada"}
    assert "does not exist" in str(about(served, "no-such-invitation", 403)["error"])


def test_a_server_of_one_project_refuses_invitations_to_others_and_leaves_them_as_they_are(tmp_path: Path) -> None:
    with Store(tmp_path / "annotation.sqlite") as store:
        mine, other = (Projects(store).create(design_of(name, "vet:1"), [VETTED]) for name in ("mine", "other"))
        members = Members(store)
        code = members.invite(other.id)
        with served_project(store, mine, AnnotationSettings(only=mine.id)) as served:
            about(served, code, 403)
            with Annotating(base_url=served.address) as client:
                refused = client.call("POST", "/join", {"invitation": code, "name": "Ada"}, status=403)
        assert "another project" in refused["error"]
        assert members.all(other.id) == []
        member, _ = members.join(code, "Ada")
        assert member.project == other.id


def test_a_revoked_invitation_lets_nobody_in_and_those_inside_stay(served: ServedProject) -> None:
    owner = served.client("owner")
    code = owner.call("POST", "/invitations", {"uses": 5})["link"].partition("#")[2]
    member, token = served.members.join(code, "Ada")
    [listed] = owner.call("GET", "/invitations")
    assert (listed["role"], listed["uses"], listed["member"]) == ("annotator", 4, None)
    owner.call("DELETE", f"/invitations/{listed['id']}", status=204)
    with pytest.raises(InvitationError, match="revoked"):
        served.members.join(code, "Ben")
    assert owner.call("GET", "/invitations") == []
    assert served.members.by_token(token) == member
    owner.call("DELETE", "/invitations/0123456789abcdef", status=404)


def test_an_owner_cannot_touch_the_people_and_invitations_of_other_projects(served: ServedProject) -> None:
    other = Projects(served.store).create(design_of("other", "vet:1"), [VETTED])
    foreign, token = served.members.join(served.members.invite(other.id), "Eve")
    served.members.invite(other.id)
    [invitation] = served.members.invitations(other.id)
    owner = served.client("owner")
    owner.call("DELETE", f"/invitations/{invitation.id}", status=404)
    owner.call("DELETE", f"/people/{foreign.id}", status=404)
    assert served.members.by_token(token) == foreign
    assert served.members.invitations(other.id) == [invitation]


def test_when_access_ends_the_token_ends_at_once_decisions_stay_and_items_are_free(served: ServedProject) -> None:
    owner, ada = served.client("owner"), served.client("annotator", "Ada")
    kept = ada.decide(ada.next(), {"valid": True})
    ada.call("POST", f"/decisions/{kept['id']}/undo", {"id": "undone-0001"})  # the item is in her hands again
    pending = served.members.invite(served.project.id, member="A2")
    owner.call("DELETE", "/people/A2", status=204)
    ada.call("GET", "/me", status=401)
    ada.decide("0" * 20, {"valid": True}, status=401)
    with pytest.raises(InvitationError):
        served.members.join(pending, "Ada")
    assert [(one["name"], one["access"]) for one in owner.call("GET", "/people")] == [("owner", True), ("Ada", False)]
    assert owner.call("GET", "/audit")["total"] == 2
    assert served.client("annotator", "Ben").next() is not None
    again, _ = served.members.join(served.members.invite(served.project.id, member="A2"), "Ada")
    assert (again.name, again.has_access) == ("Ada", True)


def test_a_command_beside_the_server_ends_access_at_once(store_address: str) -> None:
    with annotated(store_address, "vet:1", [VETTED]) as served, Store(store_address, beside=True) as beside:
        ada = served.client("annotator", "Ada")
        ada.call("GET", "/me")
        Members(beside).end_access(served.project.id, "A1")
        ada.call("GET", "/me", status=401)


def test_a_project_keeps_an_owner(served: ServedProject) -> None:
    first = served.client("owner", "first")
    refused = first.call("DELETE", "/people/A1", status=409)
    assert "only owner" in refused["error"]
    second = served.client("owner", "second")
    second.call("DELETE", "/people/A1", status=204)
    with pytest.raises(ConflictError):
        served.members.end_access(served.project.id, "A2")
