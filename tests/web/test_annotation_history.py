"""The history of a project as a file: all of it, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if os.environ.get("CI") != "true":
    pytest.importorskip("sqlalchemy", reason="the web application: pip install 'fluents[web]'")

from annotated import TEA, new_decision
from fluents.annotation.design import ProjectDesign, StageDesign, design_of
from fluents.annotation.items import change_payload
from fluents.errors import InputError
from fluents.records import StateChange
from fluents.web.annotation_blind_passes import keep_blind_pass
from fluents.web.annotation_decisions import Decisions, Judgement
from fluents.web.annotation_export import results
from fluents.web.annotation_history import history_lines, read_history
from fluents.web.annotation_members import Members
from fluents.web.annotation_places import Places
from fluents.web.annotation_projects import Projects
from fluents.web.annotation_records import Project
from fluents.web.annotation_stages import ProjectStages
from fluents.web.store import Store

CHANGES = tuple(
    StateChange(step=1, entity=name, attribute="wetness", before="dry", after="wet") for name in ("pot", "\0 é", "cup")
)


def filled(store: Store) -> Project:
    """A project with two stages, an undone decision and a ruling."""
    projects, members, places = Projects(store), Members(store), Places(store)
    decisions = Decisions(store, places)
    design = design_of("Pots", "vet,salience", guideline="Look twice.", consent="Yes?")
    project = projects.create(design, [TEA.replace(changes=CHANGES)], drafts=[TEA], systems={"s": [TEA]})
    projects.write_guideline(project.id, "Look thrice.")
    people = [members.join(members.invite(project.id), f"P{n}", consented=True)[0] for n in range(3)]
    owner, _ = members.join(members.invite(project.id, "owner"), "Olga")
    for member in people:
        while (lease := places.next(member)) is not None:
            decisions.give(member, Judgement(new_decision(), lease.item.id, {"valid": True}, seconds=1.25))
    first = decisions.mine(people[0])[0]
    decisions.undo(people[0], first.decision.id, new_decision())
    decisions.give(people[0], Judgement(new_decision(), first.decision.item, {"valid": False, "reason": "obscure"}))
    decisions.give(owner, Judgement(new_decision(), first.decision.item, {"valid": True}, adjudicates=True))
    ProjectStages(store).open_next(project)
    lease = places.next(people[1])
    assert lease is not None
    scores = dict.fromkeys(lease.item.payload["entities"], 3)
    decisions.give(people[1], Judgement(new_decision(), lease.item.id, {"scores": scores}))
    return project


def corrected(store: Store) -> Project:
    """Two wrote blind, one of them corrected the draft as well; now the changes are vetted."""
    projects, members, places = Projects(store), Members(store), Places(store)
    first = StageDesign(kind="correct", judges=2, blind_first=True)
    design = ProjectDesign(name="Corrected pots", stages=(first, StageDesign(kind="vet")))
    project = projects.create(design, [TEA.replace(changes=CHANGES[:1])])
    people = [members.join(members.invite(project.id), f"P{n}")[0] for n in range(2)]
    blind = [change_payload(CHANGES[2])]
    [item] = {lease.item.id for lease in map(places.next, people) if lease is not None}
    for member in people:
        keep_blind_pass(store, member, item, blind)
    answer = {"changes": [{**change_payload(CHANGES[0]), "from": 0}, {**blind[0], "from": None}]}
    Decisions(store, places).give(people[0], Judgement(new_decision(), item, answer))
    ProjectStages(store).open_next(project, force=True)
    return project


def numbered(content: Iterable[bytes]) -> list[tuple[str, bytes]]:
    return [(f"line {number}", line) for number, line in enumerate(b"".join(content).splitlines(keepends=True))]


def test_a_history_comes_back_byte_for_byte_and_with_the_same_results(store: Store, tmp_path: Path) -> None:
    project = filled(store)
    written = list(history_lines(store, project))
    with Store(tmp_path / "other.sqlite") as other:
        read = read_history(other, numbered(written))
        assert list(history_lines(other, read)) == written
        assert list(results(other, read)) == list(results(store, project))
        assert ProjectStages(other).progress(read.id) == ProjectStages(store).progress(project.id)
        member = Members(other).all(read.id)[0]
        assert Decisions(other, Places(other)).tally(member).done == 3


def test_a_project_goes_on_after_an_import_and_nobody_is_asked_twice(store: Store, tmp_path: Path) -> None:
    written = list(history_lines(store, filled(store)))
    with Store(tmp_path / "other.sqlite") as other:
        read = read_history(other, numbered(written), name="Pots again")
        members, places = Members(other), Places(other)
        returning, token = members.join(members.invite(read.id, member="A2"), "ignored")
        assert members.by_token(token) == returning
        seen = set()
        while (lease := places.next(returning)) is not None:
            seen.add(lease.item.id)
            scores = dict.fromkeys(lease.item.payload["entities"], 2)
            Decisions(other, places).give(returning, Judgement(new_decision(), lease.item.id, {"scores": scores}))
        decided = {json.loads(line)["decision"]["item"] for line in written if b'"author": "A2"' in line}
        assert seen
        assert not seen & decided


def test_after_an_import_nobody_is_asked_about_an_item_that_a_ruling_settled(store: Store, tmp_path: Path) -> None:
    design = design_of("Pots", "vet")
    project = Projects(store).create(design, [TEA.replace(changes=CHANGES[:1])])
    members, places = Members(store), Places(store)
    owner, _ = members.join(members.invite(project.id, "owner"), "Olga")
    lease = places.next(owner)
    assert lease is not None
    places.release(owner, lease.item.id)
    Decisions(store, places).give(owner, Judgement(new_decision(), lease.item.id, {"valid": True}, adjudicates=True))
    with Store(tmp_path / "other.sqlite") as other:
        read = read_history(other, numbered(history_lines(store, project)))
        members = Members(other)
        member, _ = members.join(members.invite(read.id), "Ann")
        assert Places(other).next(member) is None


def test_a_history_of_a_stage_that_was_closed_and_not_counted_yet_keeps_its_results(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may be killed, or the history exported, between the two."""
    project = Projects(store).create(design_of("Pots", "clean-procedures"), [TEA])
    stages = ProjectStages(store)
    with monkeypatch.context() as patch:
        patch.setattr("fluents.web.annotation_stages.left_traces", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stages.open_next(project, force=True)
    with Store(tmp_path / "other.sqlite") as other:
        read = read_history(other, numbered(history_lines(store, project)))
        assert list(results(other, read)) == list(results(store, project)) == [TEA]


def test_a_pseudonymous_history_has_no_names(store: Store) -> None:
    project = filled(store)
    open_, closed = (b"".join(history_lines(store, project, pseudonymous=flag)) for flag in (False, True))
    assert b"Olga" in open_
    assert b"Olga" not in closed
    assert b'"A1"' in closed


def test_neither_tokens_nor_invitations_are_in_a_history(store: Store) -> None:
    project = filled(store)
    code = Members(store).invite(project.id)
    _, token = Members(store).join(Members(store).invite(project.id), "x")
    from fluents.web.guard import digest

    content = b"".join(history_lines(store, project)).decode()
    for secret in (code, token):
        assert secret not in content
        assert digest(secret) not in content


def test_what_is_cut_off_or_repeated_changes_nothing(store: Store, tmp_path: Path) -> None:
    lines = numbered(history_lines(store, filled(store)))
    with Store(tmp_path / "other.sqlite") as other:
        for wrong in ([], lines[:-1], lines[1:], lines[:5] + lines[6:], [*lines, lines[-2]], lines[:9] + lines[8:]):
            with pytest.raises(InputError):
                read_history(other, wrong)
        assert Projects(other).all() == []
        read_history(other, lines)
        with pytest.raises(InputError, match="already"):
            read_history(other, lines)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("author", "A9", "an answer by the member 'A9', but does not list this member"),
        ("guideline", 7, "an answer given with version 7 of the guideline, but does not contain this version"),
        ("item", "none", "an answer to the item 'none', but does not contain this item"),
    ],
)
def test_an_answer_without_what_it_refers_to_is_refused(
    written: list[bytes], other: Store, field: str, value: object, message: str
) -> None:
    lines = [json.loads(line) for line in written]
    next(line for line in lines if line["kind"] == "decision")["decision"][field] = value
    with pytest.raises(InputError, match=message):
        read_history(other, numbered(json.dumps(line).encode() + b"\n" for line in lines))


VALUES: st.SearchStrategy[object] = st.one_of(
    st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2), st.just({})
)


@pytest.fixture(scope="module", params=[filled, corrected])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A history."""
    with Store(tmp_path_factory.mktemp("filled") / "annotation.sqlite") as store:
        return list(history_lines(store, request.param(store)))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that all examples share: opening one takes longer than all else."""
    with Store(tmp_path_factory.mktemp("other") / "annotation.sqlite") as store:
        yield store


@settings(max_examples=100)
@given(data=st.data())
def test_a_history_with_any_value_changed_is_read_or_refused(
    written: list[bytes], other: Store, data: st.DataObject
) -> None:
    lines = [json.loads(line) for line in written]
    line = data.draw(st.sampled_from(lines))
    while isinstance(inner := line[data.draw(st.sampled_from(sorted(line)))], dict) and inner:
        line = inner
    line[data.draw(st.sampled_from(sorted(line)))] = data.draw(VALUES)
    try:
        changed = numbered(json.dumps(one).encode() + b"\n" for one in lines)
        project = read_history(other, changed, name=new_decision())
    except InputError:
        return
    list(history_lines(other, project))
