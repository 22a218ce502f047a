"""Annotation projects as their people meet them: a real server, a real browser, and hardly ever a mouse."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from visit import HOSTILE, look_at, to, visiting

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

import fluents
from annotated import ServedProject, annotated
from fluents.annotation.design import ProjectDesign, Role, StageDesign
from fluents.metrics import Metric
from fluents.records import AttributeCluster, EntityCluster, Procedure, StateChange, Trace
from fluents.web.annotation_projects import Projects

pytest_plugins = ["chromium"]
pytestmark = pytest.mark.slow

EGG = Procedure(
    id="egg", goal="Fry an egg", steps=("Heat the pan.", "Crack the egg into it.", "Fry it.", "Eggs are good for you.")
)
TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour it over the leaves.", "Drink the tea."))
IDEAS = Procedure(id="ideas", goal="Ideas for breakfast", steps=("Try toast.", "Try an apple.", "Try a walk."))

Words = tuple[str, str, str, str]
"""A change as it is typed: attribute, entity, before, after."""
ANN: dict[str, list[list[Words]]] = {
    "Fry an egg": [
        [("temperature", "pan", "cold", "hot"), ("mood", "cook", "calm", "merry")],
        [("location", "egg", "in the shell", "in the pan"), ("wholeness", "shell", "whole", "cracked")],
        [("state", "egg", "raw", "fried")],
        [],
    ],
    "Make tea": [
        [("temperature", "water", "cold", "boiling")],
        [("location", "water", "in the kettle", "in the pot")],
        [("location", "tea", "in the cup", "in the stomach")],
    ],
    "Ideas for breakfast": [[("place", "toast", "on the shelf", "on the plate")], [], []],
}
BEN: dict[str, list[list[Words]]] = {
    "Fry an egg": [[("heat", "skillet", "low", "high")], [], [("texture", "egg white", "runny", "firm")], []],
    "Make tea": [[("temperature", "water", "cold", "boiling")], [], []],
    "Ideas for breakfast": [[], [], []],
}


def stages(*kinds: str | dict[str, Any]) -> tuple[StageDesign, ...]:
    return tuple(StageDesign.model_validate({"kind": kind} if isinstance(kind, str) else kind) for kind in kinds)


class Person:
    """Somebody at work, with a keyboard and nothing else."""

    def __init__(self, tab: Page, name: str) -> None:
        self.tab, self.name, self.keyboard = tab, name, tab.keyboard

    def press(self, *keys: str) -> None:
        for key in keys:
            self.keyboard.press(key)

    def type(self, *words: str) -> None:
        """Type each into a text box, and go on with Enter."""
        for text in words:
            self.keyboard.insert_text(text)
            self.keyboard.press("Enter")

    def join(self) -> None:
        expect(self.tab.get_by_label("Your name")).to_be_focused()
        self.type(self.name)
        expect(self.tab.get_by_role("button", name="Start")).to_be_focused()
        self.press("Enter")

    def typed(self) -> list[str]:
        """What the boxes of the sentence hold."""
        return [box.input_value() for box in self.tab.locator(".sentence input").all()]

    def has_item(self) -> None:
        expect(self.tab.locator(".item-place[data-item]")).to_be_visible()

    @property
    def goal(self) -> str:
        return self.tab.locator(".procedure h2").inner_text()

    @property
    def sentence(self) -> str:
        return self.tab.locator(".sentence-read").inner_text()

    def decide_all(self, decide: Callable[[Person], None]) -> int:
        """Decide every item that there is for this person, and count them. Then they read the guideline: a page at work
        would take items of the next stage."""
        self.tab.goto("/?work")
        count = 0
        last: str | None = None
        while (last := self._next_item(last)) is not None:
            decide(self)
            count += 1
        self.saved()
        self.tab.goto("/?guide")
        return count

    def _next_item(self, last: str | None) -> str | None:
        place = self.tab.locator(f".item-place[data-item]:not([data-item='{last}'])")
        expect(place.or_(self.tab.get_by_role("button", name="Check now"))).to_be_visible()
        return place.get_attribute("data-item") if place.count() else None

    def saved(self) -> None:
        expect(self.tab.locator(".saving")).to_have_text(re.compile(r"^saved ✓ \d\d:\d\d$"))

    def write(self, by_goal: dict[str, list[list[Words]]]) -> None:
        """Write the changes of the procedure on the desk."""
        changes = by_goal[self.goal]
        for step in changes:
            for words in step:
                self.type(*words)
            self.press("Enter")  # from an empty box to the next step, and from the last one to Done
        self.press("Enter")
        if not any(changes):
            expect(self.tab.get_by_role("alert")).to_contain_text("There are no changes")
            self.press("Control+Enter")


@contextmanager
def at_work(
    browser: Browser,
    served: ServedProject,
    name: str = "Ann",
    role: Role = "annotator",
    view: str = "work",
    **look: Any,
) -> Iterator[Person]:
    """Somebody who is in already."""
    state = {"cookies": [cookie_of(served, name, role)]}
    with visiting(browser, served.address, f"/?{view}", storage_state=state, **look) as tab:
        yield Person(tab, name)


def cookie_of(served: ServedProject, name: str, role: Role) -> Any:
    """What lets a new member in."""
    return {"name": "fluents_member", "value": served.token(role, name), "url": served.address}


def open_next_stage(owner: Person, number: int | None, *, sure: bool = False) -> None:
    """On the owner's page; after the last stage, there is no number. `sure` closes a stage that is not finished."""
    to(owner.tab, "Close the last stage" if number is None else "Open the next stage")
    owner.press("Enter")
    if sure:
        to(owner.tab, "Close it")
        owner.press("Enter")
    stage = owner.tab.get_by_role("region", name="Stages").locator("tbody tr")
    expect(stage.last if number is None else stage.nth(number - 1)).to_contain_text(
        "done" if number is None else "open"
    )


def test_two_author_three_vet_and_clean_and_three_datasets_come_out(browser: Browser, tmp_path: Path) -> None:
    design = ProjectDesign(
        name="Breakfast",
        stages=stages(
            "author",
            "vet",
            "clean-procedures",
            "clean-steps",
            "clean-changes",
            "entities",
            "attributes",
            {"kind": "salience", "scope": "global"},
        ),
        guideline="# What to write\n\nEvery change that **somebody** could see.",
        consent="Your answers are kept.",
    )
    traces = [Trace(procedure=procedure) for procedure in (EGG, TEA, IDEAS)]
    with annotated(tmp_path / "store.sqlite", design, traces) as served, ExitStack() as people:

        def come(name: str, role: Role = "annotator") -> Person:
            tab = people.enter_context(
                visiting(browser, served.address, served.link(role).removeprefix(served.address))
            )
            person = Person(tab, name)
            person.join()
            expect(tab.get_by_text("Your answers are kept.")).to_be_visible()
            expect(tab.get_by_role("button", name="I agree")).to_be_focused()
            person.press("Enter")
            return person

        olga, ann, ben = come("Olga", "owner"), come("Ann"), come("Ben")
        made = ann.decide_all(lambda one: one.write(ANN)) + ben.decide_all(lambda one: one.write(BEN))
        assert made == 6

        open_next_stage(olga, 2)  # twelve changes, two of them the same: three judges each
        wrong = "mood of cook was calm before and merry afterwards"
        cem = come("Cem")
        vet = {"Ann": "y", "Ben": "1", "Cem": "n"}
        for one in (ann, ben, cem):
            made += one.decide_all(lambda who: who.press(vet[who.name] if who.sentence == wrong else "y"))

        open_next_stage(olga, 3)
        procedures = {"Ann": "y", "Ben": "n", "Cem": "n"}
        for one in (ann, ben, cem):
            made += one.decide_all(lambda who: who.press(procedures[who.name] if who.goal == IDEAS.goal else "y"))

        open_next_stage(olga, 4)
        fourth = {"Ann": "n", "Ben": "y", "Cem": "n"}  # two of three
        third = {"Ann": "y", "Ben": "y", "Cem": "n"}  # one of three is not enough

        def steps(who: Person) -> None:
            keys = ["y", "y", third[who.name], fourth[who.name]] if who.goal == EGG.goal else ["y"] * 3
            who.press(*keys, "Enter")

        for one in (ann, ben, cem):
            made += one.decide_all(steps)

        open_next_stage(olga, 5)
        doubts = {"whole before and cracked": {"Ann": "1", "Ben": "2"}, "in the stomach": {"Ben": "1", "Cem": "3"}}

        def certainty(who: Person) -> None:
            said = next((keys for words, keys in doubts.items() if words in who.sentence), {})
            who.press(said.get(who.name, "1"))

        for one in (ann, ben, cem):  # each change is judged by two who did not write it, if there are two
            made += one.decide_all(certainty)

        open_next_stage(olga, 6)
        made += ann.decide_all(join_pan_and_skillet)
        open_next_stage(olga, 7)
        made += ann.decide_all(join_temperature_and_heat)
        open_next_stage(olga, 8)
        scores = {"Ann": "5", "Ben": "4"}
        for one in (ann, ben):
            made += one.decide_all(lambda who: who.press(*scores[who.name] * 3, "Enter"))
        open_next_stage(olga, None)
        files = {
            name: download(olga, name, tmp_path)
            for name in ("OpenPI", "OpenPI-C", "OpenPI2.0", "History of all answers")
        }

    kept = {
        ("temperature", "pan", "cold", "hot"),
        ("heat", "skillet", "low", "high"),
        ("location", "egg", "in the shell", "in the pan"),
        ("state", "egg", "raw", "fried"),
        ("texture", "egg white", "runny", "firm"),
    }
    canonical = kept - {("heat", "skillet", "low", "high")} | {("temperature", "pan", "low", "high")}
    expected: list[tuple[str, set[Words], list[Metric]]] = [
        ("OpenPI", kept, ["original", "cluster"]),
        ("OpenPI-C", kept, ["original", "cluster"]),
        ("OpenPI2.0", canonical, ["original", "schemata", "states"]),
    ]
    for name, changes, metrics in expected:
        [trace] = fluents.load(files[name])
        assert trace.procedure.steps == EGG.steps[:3], name
        assert {(one.attribute, one.entity, one.before, one.after) for one in trace.changes} == changes, name
        for metric in metrics:
            score = fluents.score(metric, files[name], files[name])
            for row in score.rows.values():
                assert row.get("f1", row.get("accuracy")) == pytest.approx(score.scale), (name, metric)
    assert ("pan", "skillet") in [cluster.mentions for cluster in trace.clusters]
    assert {one.entity: one.value for one in trace.salience} == {"pan": 5, "egg": 5, "egg white": 5}
    history = [json.loads(line) for line in files["History of all answers"].read_text(encoding="utf-8").splitlines()]
    ids = [line["decision"]["id"] for line in history if line["kind"] == "decision"]
    assert len(ids) == len(set(ids)) == made


def join_pan_and_skillet(who: Person) -> None:
    names = who.tab.locator(".chip")
    expect(names.first).to_be_focused()
    order = [text.split(" ")[0] for text in names.all_inner_texts()]
    who.press(*["ArrowRight"] * order.index("skillet"))
    expect(who.tab.locator(".chip:focus")).to_contain_text("skillet")
    who.press("1", "Enter")


def join_temperature_and_heat(who: Person) -> None:
    names = who.tab.locator(".chip").all_inner_texts()
    if any(name.startswith("heat") for name in names):
        who.press("ArrowRight", "ArrowUp")
    who.press("Enter")


def download(owner: Person, name: str, folder: Path) -> Path:
    """What the owner downloads; a zip file is unpacked."""
    to(owner.tab, name)
    with owner.tab.expect_download() as waiting:
        owner.press("Enter")
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    if file.suffix != ".zip":
        return file
    with zipfile.ZipFile(file) as packed:
        packed.extractall(folder / "openpi")
    return folder / "openpi"


def change(step: int, entity: str, attribute: str, before: str, after: str) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


FRIED = Trace(
    procedure=Procedure(id="fried", goal="Fry an egg", steps=("Heat the pan.", "Crack the egg into it.", "Fry it.")),
    changes=(
        change(1, "pan", "temperature", "cold", "hot"),
        change(2, "egg", "location", "in the shell", "in the pan"),
        change(3, "egg", "state", "raw", "fried"),
    ),
    clusters=(
        EntityCluster(
            name="pan",
            mentions=("pan",),
            expansions=("skillet", "pot"),
            attributes=(AttributeCluster(name="temperature", mentions=("temperature",)),),
        ),
        EntityCluster(name="egg", mentions=("egg",), attributes=(AttributeCluster(name="state", mentions=("state",)),)),
    ),
)
PLAIN = Trace(procedure=FRIED.procedure)
ADDED = {"step": 1, "attribute": "power", "entity": "stove", "before": "off", "after": "on"}
DRAFT = [{**one.model_dump(include=set(ADDED)), "from": place} for place, one in enumerate(FRIED.changes)]

BY_KEYBOARD: dict[str, tuple[dict[str, Any], Trace, list[str], dict[str, Any]]] = {
    "select": ({"filtered": False}, PLAIN, ["n"], {"keep": False}),
    "author": ({}, PLAIN, ["=power", "=stove", "=off", "=on", "Control+Enter"], {"changes": [ADDED]}),
    "audit": (
        {},
        FRIED,
        ["=power", "=stove", "=off", "=on", "Control+Enter"],
        {"missing": [{**ADDED, "type": "indirect"}]},
    ),
    "vet": ({}, FRIED, ["3"], {"valid": False, "reason": "mismatch"}),
    "clean-procedures": ({}, PLAIN, ["y"], {"procedure": True}),
    "clean-steps": ({}, PLAIN, ["y", "n", "n", "ArrowUp", "y", "Enter"], {"valid": [True, True, False]}),
    "clean-changes": ({}, FRIED, ["2"], {"verdict": "uncertain"}),
    "entities": ({}, FRIED, ["ArrowRight", "1", "0", "ArrowUp", "Enter"], {"clusters": [["pan", "egg"]]}),
    "attributes": ({}, FRIED, ["ArrowRight", "1", "Enter"], {"clusters": [["location", "state"]]}),
    "expansions": ({}, FRIED, ["y", "n", "Enter"], {"accepted": ["skillet"]}),
    "salience": ({"scope": "local"}, FRIED, ["5", "0", "Enter"], {"scores": {"pan": 5, "egg": 0}}),
    "judge": (
        {},
        FRIED,
        ["1", "a", "=power", "=stove", "Escape", "Enter"],
        {"verdicts": ["right"], "missing": [{"entity": "stove", "attribute": "power"}]},
    ),
    "hallucinations": ({}, FRIED, ["y"], {"hallucinated": True}),
    "correct": (
        {"blind_first": True},
        FRIED,
        ["=power", "=stove", "=off", "=on", "Control+Enter", "@3 changes of the draft", "y", "y", "n", "Control+Enter"],
        {"changes": [ADDED | {"from": None}, *DRAFT[:2]], "blind": [ADDED]},
    ),
}
"""A stage's settings, a trace, the keys that are pressed ("=" stands before what is typed and ends with Enter, "@"
before what must be there first), and the answer that the server keeps."""


def project_beside(served: ServedProject, kind: str, settings: dict[str, Any], trace: Trace) -> ServedProject:
    """Another project of the same server, with one stage. Close it if it had clients."""
    name = f"{kind} of {trace.id}"
    design = ProjectDesign(name=name, stages=stages({"kind": kind, **settings}), guideline="# Rules\n\n- one")
    return ServedProject(served.address, served.store, Projects(served.store).create(design, [trace]))


def press_all(person: Person, keys: list[str]) -> None:
    for key in keys:
        if key.startswith("="):
            person.type(key[1:])
        elif key.startswith("@"):
            expect(person.tab.get_by_text(key[1:])).to_be_visible()
        else:
            person.press(key)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProject]:
    """A server with one project; tests add others."""
    with annotated(tmp_path_factory.mktemp("annotation") / "store.sqlite", "author", [PLAIN]) as served:
        yield served


@pytest.fixture(scope="module")
def projects(server: ServedProject) -> dict[str, ServedProject]:
    """A project for each kind of stage."""
    return {kind: project_beside(server, kind, *row[:2]) for kind, row in BY_KEYBOARD.items()}


@pytest.mark.parametrize("kind", BY_KEYBOARD)
def test_every_kind_of_item_is_decided_by_keys(browser: Browser, projects: dict[str, ServedProject], kind: str) -> None:
    _, _, keys, answer = BY_KEYBOARD[kind]
    served = projects[kind]
    with at_work(browser, served) as ann:
        ann.has_item()
        press_all(ann, keys)
        ann.saved()
        [kept] = ann.tab.request.get("/api/v1/annotation/mine").json()
        assert kept["answer"] == answer


def test_the_draft_comes_from_the_server_after_the_blind_pass_and_stays(
    browser: Browser, server: ServedProject
) -> None:
    """Before it, the page does not have the draft; after it, another browser need not write blind again."""
    served = project_beside(server, "correct", {"blind_first": True}, FRIED.replace(procedure=EGG))
    with at_work(browser, served) as ann:
        ann.has_item()
        ann.tab.route("**/blind", lambda route: route.abort())
        press_all(ann, ["=power", "=stove", "=off", "=on", "Control+Enter"])
        expect(ann.tab.get_by_role("alert")).to_contain_text("The server does not answer")
        ann.tab.unroute("**/blind")
        press_all(ann, ["Control+Enter", "@3 changes of the draft"])
        ann.tab.evaluate("localStorage.clear()")
        ann.tab.reload()
        expect(ann.tab.locator(".change-form")).to_contain_text("3 changes of the draft")
        press_all(ann, ["y", "y", "y", "Control+Enter"])
        ann.saved()
        ann.press("z")
        expect(ann.tab.locator(".written.kept")).to_have_count(3)


def test_the_owner_invites_revokes_and_ends_access(browser: Browser, server: ServedProject) -> None:
    served = project_beside(server, "vet", {}, FRIED.replace(procedure=TEA))
    allowed = {"permissions": ["clipboard-read", "clipboard-write"]}
    with at_work(browser, served, "Olga", "owner", view="progress", **allowed) as olga:

        def make_link() -> str:
            to(olga.tab, "Make a link")
            olga.press("Enter")
            link = olga.tab.locator(".made .secret")
            expect(link).to_be_visible()
            to(olga.tab, "Copy")
            olga.press("Enter")
            expect(olga.tab.get_by_role("button", name="Copied ✓")).to_be_visible()
            copied = str(olga.tab.evaluate("navigator.clipboard.readText()"))
            assert copied == link.inner_text()
            return copied

        first = make_link()
        with visiting(browser, served.address, first.removeprefix(served.address)) as tab:
            expect(tab.locator("form")).to_contain_text(f"the project {served.project.name} as an annotator")
            ann = Person(tab, "Ann")
            ann.join()
            ann.has_item()
            links = olga.tab.get_by_role("list", name="Links that still work")
            olga.tab.reload()
            expect(links.get_by_role("listitem")).to_have_count(0)  # the first link is used up
            second = make_link()
            expect(links.get_by_role("listitem")).to_have_count(1)
            to(olga.tab, "Revoke: Link for one annotator")
            olga.press("Enter")
            expect(links.get_by_role("listitem")).to_have_count(0)
            with visiting(browser, served.address, second.removeprefix(served.address)) as late:
                expect(late.get_by_role("alert")).to_contain_text("revoked")
            olga.tab.locator("#ended-member").select_option("A2")
            to(olga.tab, "End access")
            olga.press("Enter", "Shift+Tab", "Enter")
            expect(olga.tab.get_by_role("region", name="People")).to_contain_text("A2, no access")
            tab.reload()
            expect(tab.get_by_label("Token")).to_be_visible()


def test_when_all_stages_are_done_the_page_says_so_and_looks_no_more(browser: Browser, server: ServedProject) -> None:
    served = project_beside(server, "vet", {"judges": 1}, FRIED.replace(procedure=IDEAS))
    with at_work(browser, served) as ann:
        for _ in FRIED.changes:
            ann.has_item()
            ann.press("y")
        expect(ann.tab.locator(".rest")).to_contain_text("New questions appear here by themselves")
        served.client("owner").call("POST", "/stages/open", {})
        ann.tab.get_by_role("button", name="Check now").click()
        expect(ann.tab.locator(".rest")).to_have_text("This project is finished. Thank you!")
    served.close()


def test_names_are_grouped_by_dragging_too(browser: Browser, server: ServedProject) -> None:
    served = project_beside(server, "entities", {}, FRIED.replace(procedure=FRIED.procedure.replace(id="g")))
    with at_work(browser, served) as ann:
        egg, groups = ann.tab.locator(".chip", has_text="egg"), ann.tab.locator(".group-of-names")
        egg.drag_to(groups.first)
        expect(groups).to_have_count(1)
        egg.drag_to(ann.tab.locator(".alone"))
        expect(groups).to_have_count(2)


def test_writing_is_helped_by_what_was_written(browser: Browser, server: ServedProject) -> None:
    """Names come back, the state before is filled in, contradictions show, the grid fills and can be walked, and
    what was said against half a change goes when it is mended."""
    served = project_beside(server, "author", {"judges": 9}, PLAIN.replace(procedure=FRIED.procedure.replace(id="w")))
    with at_work(browser, served) as ann:
        ann.has_item()
        ann.type("temperature", "pan", "cold", "hot")
        ann.press("Enter")
        ann.keyboard.insert_text("temp")
        expect(ann.tab.get_by_role("option").first).to_have_text("temperature")
        ann.press("ArrowDown", "Enter")
        ann.type("The pan")
        assert ann.typed() == ["temperature", "The pan", "hot", ""]
        filled_in = "The state before this step is filled in: it is the state after step 1."
        expect(ann.tab.locator(".notes")).to_have_text(filled_in)
        ann.keyboard.insert_text("warm")
        expect(ann.tab.locator(".notes")).to_have_text("≠ after step 1, the state is “hot”")
        ann.press("Enter", "Control+Enter")
        expect(ann.tab.get_by_role("alert")).to_contain_text("The change at step 2 is not finished")
        ann.keyboard.insert_text("cool")
        expect(ann.tab.get_by_role("alert")).to_have_count(0)
        grid = ann.tab.get_by_role("region", name="State grid")
        expect(grid.locator("td.conflict")).to_have_text("≠ cool")
        ann.tab.reload()
        expect(ann.tab.get_by_role("combobox", name="State after")).to_have_value("cool")
        assert ann.typed() == ["temperature", "The pan", "warm", "cool"]
        ann.press("Enter")
        expect(ann.tab.locator(".written")).to_have_count(2)
        ann.press("Enter", "Escape")
        to(ann.tab, "temperature of pan, step 1")
        ann.press("ArrowRight", "Enter")
        assert ann.typed() == ["temperature", "The pan", "warm", "cool"]
        to(ann.tab, "Cancel")
        ann.press("Enter", "Escape", "ArrowDown", "Delete")
        expect(ann.tab.locator(".written")).to_have_count(1)


def test_other_names_are_offered_and_forgotten_things_recalled_after_the_answer(
    browser: Browser, server: ServedProject
) -> None:
    """What the draft of a model mentions is shown only when the author's own answer is kept."""
    steps = ("Fill the coffee maker.", "Switch it on.")
    coffee = [Procedure(id=name, goal=f"Make {name}", steps=steps) for name in ("coffee", "espresso")]
    draft = Trace(
        procedure=coffee[0],
        changes=(change(1, "jug", "fullness", "full", "empty"), change(2, "coffee maker", "power", "off", "on")),
    )
    design = ProjectDesign(name="Coffee", stages=stages("author"))
    traces = [Trace(procedure=procedure) for procedure in coffee]
    project = Projects(server.store).create(design, traces, drafts=[draft])
    with at_work(browser, ServedProject(server.address, server.store, project)) as ann:
        ann.has_item()
        ann.press("Enter")
        ann.type("power", "coffee maker", "off", "on")
        ann.press("Control+Enter")
        expect(ann.tab.locator(".reminder")).to_contain_text("You did not mention jug in “Make coffee”.")
        expect(ann.tab.get_by_role("heading", name="Make espresso")).to_be_visible()
        ann.type("power")
        ann.keyboard.insert_text("coffee machine")
        expect(ann.tab.get_by_role("option", name="the same as coffee maker?")).to_be_visible()
        ann.press("ArrowDown", "Enter")
        assert ann.typed()[:2] == ["power", "coffee maker"]
        ann.press("Escape")
        to(ann.tab, "Look again")
        ann.press("Enter")
        expect(ann.tab.get_by_role("heading", name="Make coffee")).to_be_visible()
        to(ann.tab, "fullness of jug")
        ann.press("Enter")
        assert ann.typed() == ["fullness", "jug", "", ""]
        ann.type("full", "empty")
        ann.press("Control+Enter")
        expect(ann.tab.get_by_role("heading", name="Make espresso")).to_be_visible()
        assert ann.typed()[:2] == ["power", "coffee maker"]
        ann.saved()
        listed = ann.tab.request.get("/api/v1/annotation/mine").json()
        assert [len(one["answer"]["changes"]) for one in listed] == [2, 1]


def test_keys_can_be_changed_and_decisions_taken_back(browser: Browser, server: ServedProject) -> None:
    served = project_beside(server, "vet", {"judges": 9}, FRIED.replace(procedure=FRIED.procedure.replace(id="k")))
    with at_work(browser, served) as ann:
        ann.has_item()
        ann.press("?")
        to(ann.tab, "Right: y, change")
        ann.press("Enter", "n")
        expect(ann.tab.get_by_text("n is already used for “Wrong”. Choose another key.")).to_be_visible()
        to(ann.tab, "Right: y, change")
        ann.press("Enter", "j")
        expect(ann.tab.get_by_text("The key for “Right” is now j.")).to_be_visible()
        ann.press("Escape")
        ann.tab.reload()
        ann.has_item()
        first = ann.sentence
        ann.press("y")
        assert ann.sentence == first
        ann.press("j")
        expect(ann.tab.locator(".sentence-read")).not_to_have_text(first)
        ann.press("5")
        ann.saved()
        ann.press("z", "z")
        expect(ann.tab.locator(".sentence-read")).to_have_text(first)
        expect(ann.tab.locator("[aria-pressed=true]")).to_have_text("j Right")
        ann.press("n")
        ann.saved()
        listed = ann.tab.request.get("/api/v1/annotation/mine").json()
        assert [(one["answer"]["valid"], one["undone"]) for one in listed] == [
            (False, False),
            (False, True),
            (True, True),
        ]


def test_a_cut_connection_a_reload_and_a_lost_answer_lose_and_double_nothing(
    browser: Browser, server: ServedProject
) -> None:
    many = [change(1, "pan", "temperature", "cold", f"{degree} degrees") for degree in range(8)]
    procedure = FRIED.procedure.replace(id="c")
    served = project_beside(server, "vet", {"judges": 9}, Trace(procedure=procedure, changes=tuple(many)))
    with at_work(browser, served) as ann:
        visit = ann.tab.context
        ann.has_item()
        ann.press("y")
        ann.saved()

        expect(ann.tab.locator("[data-ahead='1']")).to_be_visible()
        visit.set_offline(True)
        ann.press("y")
        expect(ann.tab.locator(".lost")).to_contain_text("No connection. Your answers are stored in this browser")
        ann.press("n")  # the next item was there already
        expect(ann.tab.locator(".saving")).to_have_text("2 answers not saved yet")
        visit.set_offline(False)
        expect(ann.tab.locator(".lost")).to_be_hidden()
        ann.saved()
        ann.has_item()

        def cut(route: Route) -> None:
            route.abort()

        def lose_the_answer(route: Route) -> None:
            route.fetch()
            route.abort()

        for trouble in (cut, lose_the_answer):
            ann.tab.route("**/annotation/decisions*", trouble)
            ann.press("y")
            expect(ann.tab.locator(".lost")).to_be_visible()
            ann.tab.reload()
            expect(ann.tab.locator(".lost")).to_be_visible()
            ann.tab.unroute("**/annotation/decisions*")
            ann.saved()
            ann.has_item()
        listed = ann.tab.request.get("/api/v1/annotation/mine").json()
        assert len(listed) == 5
        assert len({one["item"] for one in listed}) == 5
        assert [one["answer"]["valid"] for one in listed] == [True, True, False, True, True]


def test_a_decision_that_is_not_taken_stays_until_it_is_seen(browser: Browser, server: ServedProject) -> None:
    trace = FRIED.replace(procedure=FRIED.procedure.replace(id="r"))
    with closing(project_beside(server, "vet", {"judges": 1}, trace)) as served, at_work(browser, served) as ann:
        ann.has_item()
        served.client("owner").call("POST", "/stages/open", {"force": True})
        ann.press("y")
        problem = ann.tab.locator(".refused .problem")
        expect(problem).to_contain_text("Not saved: Vetting of “Fry an egg”")
        ann.tab.reload()
        expect(problem).to_contain_text("closed")
        to(ann.tab, "Discard")
        ann.press("Enter")
        expect(problem).to_have_count(0)


def test_markup_in_any_field_is_only_ever_text(browser: Browser, server: ServedProject) -> None:
    hostile = Trace(
        procedure=Procedure(id="h", goal=HOSTILE, steps=(HOSTILE, HOSTILE)),
        changes=(change(1, HOSTILE, HOSTILE, HOSTILE, HOSTILE + "!"),),
    )
    design = ProjectDesign(
        name=HOSTILE, stages=stages("vet", "author"), guideline=f"# {HOSTILE}\n\n- {HOSTILE}", consent=HOSTILE
    )
    served = ServedProject(server.address, server.store, Projects(server.store).create(design, [hostile]))
    with at_work(browser, served, HOSTILE, "owner", "guide") as owner:
        expect(owner.tab.locator("h1")).to_have_text(HOSTILE)
        for address in ("/?work", "/?guide", "/?audit", "/?progress"):
            owner.tab.goto(address)
            expect(owner.tab.get_by_text(HOSTILE).first).to_be_visible()
        owner.tab.goto("/?work")
        owner.has_item()
        assert HOSTILE in owner.sentence
        owner.press("n")
        owner.saved()
        owner.tab.goto("/?progress")
        open_next_stage(owner, 2, sure=True)
        owner.tab.goto("/?work")
        owner.has_item()
        owner.type(HOSTILE, HOSTILE, "a", HOSTILE)
        expect(owner.tab.locator(".written")).to_contain_text(HOSTILE)
        assert owner.tab.locator("img, main script").count() == 0
        assert owner.tab.evaluate("window.hacked") is None


def disputed(server: ServedProject, name: str) -> ServedProject:
    """A project whose three judges disagree on all three changes; an expert is to check one of them."""
    trace = FRIED.replace(procedure=FRIED.procedure.replace(id=name))
    verdicts = {"pan": (True, True, False), "egg": (True, False, False)}
    served = project_beside(server, "vet", {"judges": 3, "expert_check": 1}, trace)
    with closing(served):
        for place in range(3):
            judge = served.client("annotator")
            while (handed := judge.next()) is not None:
                said = verdicts[handed["item"]["payload"]["change"]["entity"]][place]
                judge.decide(handed, {"valid": said})
    return served


def test_disagreements_are_settled_and_a_sample_is_checked(browser: Browser, server: ServedProject) -> None:
    with at_work(browser, disputed(server, "d"), "Ada", "adjudicator", "adjudicate") as ada:
        expect(ada.tab.get_by_text("Disagreement 1 of 3. Agreement between the annotators: 67 %.")).to_be_visible()
        expect(ada.tab.locator(".answer-column")).to_have_count(3)
        ada.press("1")
        expect(ada.tab.get_by_text("Disagreement 1 of 2. Agreement between the annotators: 67 %.")).to_be_visible()
        ada.press("e")
        expect(ada.tab.locator(".ruling-form")).to_contain_text("Wrong for this reason:")
        ada.press("5")
        expect(ada.tab.get_by_text("Disagreement 1 of 1. Agreement between the annotators: 67 %.")).to_be_visible()
        ada.saved()
        to(ada.tab, "Minimum agreement")
        ada.press("Control+a")
        ada.keyboard.insert_text("60")
        to(ada.tab, "Accept")
        ada.press("Enter")
        expect(ada.tab.get_by_text("No disagreements are left.")).to_be_visible()
        expect(ada.tab.get_by_text("1 question left.")).to_be_visible()
        ada.press("Escape", "n")
        expect(ada.tab.get_by_text("Expert's check")).to_have_count(0)
        ada.saved()
        listed = ada.tab.request.get("/api/v1/annotation/mine").json()
        assert [(one["adjudicates"], one["checks"]) for one in listed] == [(False, True)] + [(True, False)] * 3


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1280, "dark"), (2560, "light")])
def test_every_view_has_no_serious_fault_and_fits_the_window(
    browser: Browser, server: ServedProject, width: int, scheme: str
) -> None:
    """Axe looks at each form and each page; a picture of each lies in scratch/screenshots."""
    size = {"width": width, "height": 900}
    look: dict[str, Any] = {"viewport": size, "color_scheme": scheme, "reduced_motion": "reduce"}

    def picture(person: Person, name: str) -> None:
        look_at(person.tab, f"annotate-{name}-{width}-{scheme}")

    with visiting(browser, server.address, "/?join#CODE", **look) as tab:
        person = Person(tab, "Olga")
        expect(tab.get_by_label("Your name")).to_be_focused()
        picture(person, "join")
        for kind in ("author", "audit", "vet", "clean-steps", "entities", "salience", "judge", "correct"):
            settings, trace, keys, _ = BY_KEYBOARD[kind]
            beside = trace.replace(procedure=trace.procedure.replace(id=f"{kind}-{width}"))
            served = project_beside(server, kind, settings, beside)
            tab.context.add_cookies([cookie_of(served, "Olga", "owner")])
            tab.goto("/?grid" if kind == "correct" else "/?work")
            person.has_item()
            press_all(person, keys[:-1])
            picture(person, kind)
        person.press("Escape", "?")
        expect(tab.get_by_role("dialog")).to_be_visible()
        picture(person, "keys")
        tab.context.add_cookies([cookie_of(disputed(server, f"disputed-{width}"), "Olga", "owner")])
        for view in ("guide", "audit", "adjudicate"):
            tab.goto(f"/?{view}")
            expect(tab.get_by_role("heading", level=1)).to_be_visible()
            picture(person, f"page-{view}")
        tab.goto("/?progress")
        for figures in ("Stages", "Agreement by person", "Agreement by item", "Outcome", "People"):
            expect(tab.get_by_role("region", name=figures, exact=True)).to_be_visible()
        expect(tab.get_by_role("alert")).to_have_count(0)
        picture(person, "page-progress")
