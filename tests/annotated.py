"""An annotation project that is served in this process, and clients of its members."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from fluents.annotation.design import ProjectDesign, Role, design_of
from fluents.records import Procedure, Trace
from fluents.web.annotation_application import AnnotationSettings, create_annotation_app
from fluents.web.annotation_members import Members
from fluents.web.annotation_projects import Projects
from fluents.web.annotation_records import Project
from fluents.web.server import GuardedServer, listening_socket
from fluents.web.store import Store

API = "/api/v1/annotation"
TEA = Trace(
    procedure=Procedure(
        id="tea", goal="Make tea", steps=("Boil the water.", "Pour it over the leaves.", "Wait.", "Drink the tea.")
    )
)


class Annotating(httpx.Client):
    """A member at work. `client.call("GET", "/me")` is the JSON of the answer."""

    def call(self, method: str, path: str, json: Any = None, status: int | None = None, **more: Any) -> Any:
        """The JSON of the answer, which must have this status, or else one of success."""
        answer = self.request(method, API + path, json=json, **more)
        assert answer.status_code == status if status else answer.is_success, f"{answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def next(self, **more: Any) -> Any:
        """The next item, its lease and the earlier answer; None if nothing is left."""
        return self.call("POST", "/next", more)

    def decide(self, item: Mapping[str, Any] | str, answer: Any, status: int | None = None, **more: Any) -> Any:
        """A decision on an item, as `next` gives it or by its id."""
        identity = item if isinstance(item, str) else item["item"]["id"]
        given = {"id": new_decision(), "item": identity, "answer": answer, **more}
        return self.call("POST", "/decisions", given, status)


class ServedProject:
    """A project with its server. `client("annotator")` is a new member's client, who is let in by an invitation."""

    def __init__(self, address: str, store: Store, project: Project) -> None:
        self.address, self.store, self.project = address, store, project
        self.members = Members(store)
        self._clients: list[Annotating] = []

    def invitation(self, role: Role = "annotator", uses: int = 1) -> str:
        """The code of an invitation."""
        return self.members.invite(self.project.id, role, uses)

    def link(self, role: Role = "annotator", uses: int = 1) -> str:
        """A link to join by, as people get it."""
        return f"{self.address}/?join#{self.invitation(role, uses)}"

    def token(self, role: Role = "annotator", name: str = "") -> str:
        """The token of a new member."""
        _, token = self.members.join(self.invitation(role), name or role, consented=True)
        return token

    def client(self, role: Role = "annotator", name: str = "") -> Annotating:
        """A client of a new member."""
        headers = {"Authorization": f"Bearer {self.token(role, name)}"}
        made = Annotating(base_url=self.address, timeout=60, headers=headers)
        self._clients.append(made)
        return made

    def close(self) -> None:
        for client in self._clients:
            client.close()


def new_decision() -> str:
    """An id as a client makes it."""
    return uuid4().hex


@contextmanager
def annotated(
    store: str | Path,
    design: ProjectDesign | str = "author,vet",
    traces: Sequence[Trace] = (TEA,),
    settings: AnnotationSettings | None = None,
    **sources: Any,
) -> Iterator[ServedProject]:
    """A new project, served until the block ends. `design` may be the names of its stages; `sources` are drafts and
    systems, as `Projects.create` takes them."""
    chosen = design_of("Tea and soup", design) if isinstance(design, str) else design
    with Store(store) as opened:
        project = Projects(opened).create(chosen, traces, **sources)
        with served_project(opened, project, settings) as found:
            yield found


@contextmanager
def served_project(
    store: Store, project: Project, settings: AnnotationSettings | None = None
) -> Iterator[ServedProject]:
    """A project of an open store, served until the block ends."""
    ready = threading.Event()
    with listening_socket("127.0.0.1", 0) as listening:
        server = GuardedServer(create_annotation_app(store, settings or AnnotationSettings()), ready.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        found = ServedProject(f"http://127.0.0.1:{listening.getsockname()[1]}", store, project)
        try:
            assert ready.wait(60)
            yield found
        finally:
            found.close()
            server.should_exit = True
            thread.join()
