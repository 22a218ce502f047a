"""Who may do what in an annotation project: every route of the API, and the least role that may use it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

import httpx

from annotated import API, TEA, Annotating, ServedProject, annotated
from fluents.annotation.design import ProjectDesign, Role, StageDesign
from fluents.records import StateChange
from fluents.web import annotation_adjudicator_api, annotation_api, annotation_owner_api

HOT = StateChange(step=1, entity="water", attribute="temperature", before="cold", after="hot")
NO_ITEM = "0" * 20
NO_INVITATION = "0" * 20


class Call(NamedTuple):
    """A route, and what it is called with. Nothing has the ids that stand for the parts of its path."""

    method: str
    route: str
    given: Any = None
    query: str = ""

    @property
    def path(self) -> str:
        parts = {"item_id": NO_ITEM, "decision_id": "decision-1", "name": "A99", "invitation_id": "0123456789abcdef"}
        return self.route.format(**parts) + self.query


ANYBODY = [
    Call("GET", "/health"),
    Call("POST", "/join/about", {"invitation": NO_INVITATION}),
    Call("POST", "/join", {"invitation": NO_INVITATION, "name": "Ada"}),
    Call("POST", "/session", {"token": "wrong"}),
    Call("DELETE", "/session"),
]
ANSWERS = [
    (200, "ok"),
    (403, "this invitation does not exist"),
    (403, "this invitation does not exist"),
    (401, "token"),
    (204, ""),
]
"""To those calls: the status, and what is said."""
MEMBERS = [
    Call("GET", "/me"),
    Call("PUT", "/me/keys", {}),
    Call("POST", "/me/consent"),
    Call("GET", "/mine"),
]
"""These are also for people who have not agreed to the project's terms."""
ANNOTATORS = [
    Call("POST", "/next", {}),
    Call("GET", "/items/{item_id}"),
    Call("POST", "/items/{item_id}/renew"),
    Call("POST", "/items/{item_id}/release"),
    Call("POST", "/items/{item_id}/blind", {"changes": []}),
    Call("POST", "/decisions", {"id": "decision-1", "item": NO_ITEM, "answer": {}}),
    Call("POST", "/decisions/{decision_id}/undo", {"id": "decision-2"}),
    Call("GET", "/suggest", query=f"?kind=entity&q=pot&item={NO_ITEM}"),
    Call("GET", "/recall", query=f"?item={NO_ITEM}"),
]
ADJUDICATORS = [
    Call("GET", "/disagreements"),
    Call("POST", "/adjudicate/bulk", {"threshold": 1}),
    Call("GET", "/checks"),
]
OWNERS = [
    Call("POST", "/stages/open", {}),
    Call("GET", "/progress"),
    Call("GET", "/agreement"),
    Call("GET", "/outcome"),
    Call("GET", "/pay"),
    Call("GET", "/people"),
    Call("DELETE", "/people/{name}"),
    Call("GET", "/audit"),
    Call("PUT", "/guideline", {"text": "x"}),
    Call("POST", "/invitations", {}),
    Call("GET", "/invitations"),
    Call("DELETE", "/invitations/{invitation_id}"),
    Call("GET", "/export"),
]
LEAST: dict[Role, list[Call]] = {"annotator": [*MEMBERS, *ANNOTATORS], "adjudicator": ADJUDICATORS, "owner": OWNERS}
ROLES: tuple[Role, ...] = tuple(LEAST)
FOR_MEMBERS = [call for calls in LEAST.values() for call in calls]


def named(call: Call) -> str:
    return f"{call.method} {call.route}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProject]:
    """One for all calls: what is refused changes nothing, and the others here may follow each other."""
    store = tmp_path_factory.mktemp("roles") / "annotation.sqlite"
    with annotated(store, "vet,clean-changes", [TEA.replace(changes=(HOT,))]) as found:
        yield found


@pytest.fixture(scope="module")
def people(served: ServedProject) -> dict[Role, Annotating]:
    return {role: served.client(role) for role in ROLES}


def test_the_table_has_every_route(served: ServedProject) -> None:
    """A new route must say who may use it, in one of the lists above."""
    paths = httpx.get(f"{served.address}/api/v1/openapi.json").json()["paths"]
    routes = sorted((method.upper(), path.removeprefix(API)) for path, found in paths.items() for method in found)
    assert routes == sorted((call.method, call.route) for call in [*ANYBODY, *FOR_MEMBERS])
    for module in (annotation_api, annotation_adjudicator_api, annotation_owner_api):
        assert "include_in_schema" not in inspect.getsource(module)


@pytest.mark.parametrize("call", FOR_MEMBERS, ids=named)
def test_nobody_gets_in_without_a_token(served: ServedProject, call: Call) -> None:
    with Annotating(base_url=served.address) as stranger:
        assert stranger.call(call.method, call.path, call.given, status=401)["error"] == "you are not signed in"
        stranger.headers["Authorization"] = "Bearer wrong"
        stranger.call(call.method, call.path, call.given, status=401)


@pytest.mark.parametrize(
    ("call", "status", "said"),
    [(call, *expected) for call, expected in zip(ANYBODY, ANSWERS, strict=True)],
    ids=lambda one: named(one) if isinstance(one, Call) else str(one),
)
def test_some_calls_need_no_token(served: ServedProject, call: Call, status: int, said: str) -> None:
    """Those by which people come in are refused only for what they say."""
    answer = httpx.request(call.method, served.address + API + call.path, json=call.given)
    assert answer.status_code == status
    assert said in answer.text


@pytest.mark.parametrize("call", [*ADJUDICATORS, *OWNERS], ids=named)
def test_what_is_the_adjudicators_or_the_owners_is_refused_to_annotators(
    people: dict[Role, Annotating], call: Call
) -> None:
    assert "owner" in people["annotator"].call(call.method, call.path, call.given, status=403)["error"]


@pytest.mark.parametrize("call", OWNERS, ids=named)
def test_what_is_the_owners_is_refused_to_adjudicators(people: dict[Role, Annotating], call: Call) -> None:
    assert "only owners" in people["adjudicator"].call(call.method, call.path, call.given, status=403)["error"]


@pytest.mark.parametrize(
    ("role", "call"),
    [(role, call) for place, role in enumerate(ROLES) for least in ROLES[: place + 1] for call in LEAST[least]],
    ids=lambda one: named(one) if isinstance(one, Call) else str(one),
)
def test_whoever_has_the_role_is_let_in(people: dict[Role, Annotating], role: Role, call: Call) -> None:
    """The lists are no stricter than the API: an owner may do all that the others may."""
    answer = people[role].request(call.method, API + call.path, json=call.given)
    assert answer.is_success or answer.status_code in (404, 409), answer.text


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProject]:
    """A project with terms."""
    design = ProjectDesign(name="asks", stages=(StageDesign(kind="vet"),), consent="Your work is published.")
    store = tmp_path_factory.mktemp("terms") / "annotation.sqlite"
    with annotated(store, design, [TEA.replace(changes=(HOT,))]) as found:
        yield found


def test_terms_must_be_accepted_first(asking: ServedProject) -> None:
    with Annotating(base_url=asking.address) as client:
        client.call("POST", "/join", {"invitation": asking.invitation(), "name": "Ada"}, status=201)
        me = client.call("GET", "/me")  # the cookie is enough
        assert (me["consent"], me["consented"]) == ("Your work is published.", False)
        client.call("POST", "/next", {}, status=403)
        client.call("POST", "/me/consent", status=204)
        assert client.call("GET", "/me")["consented"] is True
        assert client.next() is not None


@pytest.mark.parametrize("call", [*ANNOTATORS, *ADJUDICATORS, *OWNERS], ids=named)
def test_an_owner_who_has_not_agreed_to_the_terms_may_do_nothing_else(asking: ServedProject, call: Call) -> None:
    with Annotating(base_url=asking.address) as owner:
        owner.call("POST", "/join", {"invitation": asking.invitation("owner"), "name": "Olga"}, status=201)
        assert "agreed to the terms" in owner.call(call.method, call.path, call.given, status=403)["error"]
