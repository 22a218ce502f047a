"""Places of items: who gets which, for how long, and that nobody gets what another holds."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("sqlalchemy", reason="the web application: pip install 'fluents[web]'")

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from annotated import TEA
from fluents.annotation.design import ProjectDesign, StageDesign
from fluents.records import Procedure, StateChange, Trace
from fluents.web.annotation_decisions import Decisions, Judgement
from fluents.web.annotation_members import Member, Members
from fluents.web.annotation_places import Places
from fluents.web.annotation_projects import Projects
from fluents.web.annotation_records import ConflictError, Project
from fluents.web.annotation_stages import ProjectStages
from fluents.web.annotation_tables import PlaceRow
from fluents.web.store import NotFoundError, Store

LEASE = 100.0


class Clock:
    """A time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def changes(count: int) -> Trace:
    """A procedure with so many changes, each of which is an item of vetting."""
    said = [
        StateChange(step=1, entity=f"leaf {n}", attribute="wetness", before="dry", after="wet") for n in range(count)
    ]
    return TEA.replace(changes=tuple(said))


class Bench:
    """A project on a store, with as many members as a test asks for."""

    def __init__(self, store: Store, items: int = 3, judges: int = 2) -> None:
        self.store, self.clock = store, Clock()
        design = ProjectDesign(name=uuid4().hex, stages=(StageDesign(kind="vet", judges=judges),))
        self.projects, self.stages, self.members = Projects(store), ProjectStages(store), Members(store)
        self.project: Project = self.projects.create(design, [changes(items)])
        self.places = Places(store, LEASE, self.clock)
        self.decisions = Decisions(store, self.places, self.clock)

    def member(self) -> Member:
        member, _ = self.members.join(self.members.invite(self.project.id), "somebody")
        return member

    def take(self, member: Member, besides: Sequence[str] = (), release: str | None = None) -> str | None:
        lease = self.places.next(member, besides, release)
        return None if lease is None else lease.item.id

    def decide(self, member: Member, item: str, valid: bool = True) -> None:
        self.decisions.give(member, Judgement(uuid4().hex, item, {"valid": valid}))

    def rows(self) -> list[PlaceRow]:
        with self.store.reading() as session:
            chosen = select(PlaceRow).where(PlaceRow.project_id == self.project.id)
            return list(session.scalars(chosen.order_by(PlaceRow.position)))


@pytest.fixture
def bench(store: Store) -> Bench:
    return Bench(store)


def test_an_item_has_as_many_holders_as_judges_and_the_next_member_gets_the_next_item(bench: Bench) -> None:
    first = [bench.take(bench.member()) for _ in range(2)]
    second = bench.take(bench.member())
    assert first[0] == first[1] != second


def test_a_member_is_given_the_item_they_hold_until_they_decide_or_have_it_in_hand(bench: Bench) -> None:
    member = bench.member()
    held = bench.take(member)
    assert held is not None
    assert bench.take(member) == held
    other = bench.take(member, besides=[held])
    assert other not in (None, held)
    bench.decide(member, held)
    assert bench.take(member) == other


def test_nobody_is_given_an_item_again_that_they_decided(bench: Bench) -> None:
    member = bench.member()
    seen = []
    while (item := bench.take(member)) is not None:
        seen.append(item)
        bench.decide(member, item)
    assert len(seen) == len(set(seen)) == 3


def test_a_lease_ends_and_the_place_goes_to_another_who_is_past_it(bench: Bench) -> None:
    slow, quick, third = (bench.member() for _ in range(3))
    held = bench.take(slow)
    assert held is not None
    for member in (quick, third):
        while (item := bench.take(member)) is not None:
            bench.decide(member, item)
    late = bench.member()
    assert bench.take(late) is None or bench.take(late) != held
    bench.clock.now += LEASE + 1
    taken = [bench.take(late)]
    while taken[-1] is not None and taken[-1] != held:
        bench.decide(late, taken[-1])
        taken.append(bench.take(late))
    assert held in taken
    bench.decide(late, held)
    with pytest.raises(ConflictError, match="other people answer it instead"):
        bench.decide(slow, held)


def test_a_decision_after_the_lease_counts_if_nobody_took_the_place(bench: Bench) -> None:
    member = bench.member()
    held = bench.take(member)
    assert held is not None
    bench.clock.now += LEASE + 1
    bench.take(bench.member())  # frees it
    bench.decide(member, held)
    assert [row.holder for row in bench.rows() if row.decision] == [member.id]


def test_renewing_holds_an_item_for_longer(bench: Bench) -> None:
    member = bench.member()
    held = bench.take(member)
    assert held is not None
    bench.clock.now += LEASE - 1
    assert bench.places.renew(member, held).until == bench.clock.now + LEASE
    with pytest.raises(ConflictError):
        bench.places.renew(member, "0" * 20)


def twice_at_once(work: Callable[[], object]) -> None:
    ready = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(lambda: (ready.wait(), work())) for _ in range(2)]:
            done.result()


def test_two_renewals_at_once_after_the_lease_ended_hold_one_place(bench: Bench) -> None:
    """Each finds that the member holds no place, and takes a free one; PostgreSQL lets both go ahead."""
    for _ in range(10):
        member = bench.member()
        held = bench.take(member)
        assert held is not None
        bench.places.release(member, held)
        twice_at_once(partial(bench.places.renew, member, held))
        assert [row.item_id for row in bench.rows() if row.holder == member.id] == [held]
        bench.places.release(member, held)


def test_what_is_given_back_comes_last_and_goes_to_others_first(bench: Bench) -> None:
    member, other = bench.member(), bench.member()
    unwanted = bench.take(member)
    following = bench.take(member, release=unwanted)
    assert following != unwanted
    assert bench.take(other) == unwanted
    order = []
    while (item := bench.take(member)) is not None:
        order.append(item)
        bench.decide(member, item)
    assert order[-1] == unwanted


def test_one_member_cannot_have_two_places_of_an_item_whatever_asks_the_store(bench: Bench) -> None:
    member = bench.member()
    bench.take(member)
    of_project = PlaceRow.project_id == bench.project.id
    with pytest.raises(IntegrityError), bench.store.writing() as session:
        session.execute(update(PlaceRow).where(of_project).values(holder=member.id))


def test_the_two_modalities_of_a_procedure_go_to_different_people(store: Store) -> None:
    stage = StageDesign(kind="author", judges=1, modalities=("with_image", "without_image"))
    illustrated = Procedure(id="tea", steps=("Boil.", "Pour."), images=("http://a/1.png", "http://a/2.png"))
    projects, members, places = Projects(store), Members(store), Places(store)
    project = projects.create(ProjectDesign(name="two", stages=(stage,)), [Trace(procedure=illustrated)])
    people = [members.join(members.invite(project.id), "somebody")[0] for _ in range(2)]
    first = places.next(people[0])
    assert first is not None
    assert places.next(people[0], besides=[first.item.id]) is None
    other = places.next(people[1])
    assert other is not None
    assert other.item.payload["modality"] == "without_image"


def test_an_item_is_shown_to_those_who_have_it_and_to_adjudicators(bench: Bench) -> None:
    member, stranger = bench.member(), bench.member()
    held = bench.take(member)
    assert held is not None
    assert bench.places.show(member, held).until is not None
    with pytest.raises(NotFoundError):
        bench.places.show(stranger, held)
    ruler, _ = bench.members.join(bench.members.invite(bench.project.id, "adjudicator"), "ruler")
    assert bench.places.show(ruler, held).item.id == held


def test_an_item_that_an_adjudicator_decided_is_given_to_nobody_until_that_is_undone(bench: Bench) -> None:
    ruler, _ = bench.members.join(bench.members.invite(bench.project.id, "adjudicator"), "ruler")
    first = bench.take(bench.member())
    assert first is not None
    ruling = bench.decisions.give(ruler, Judgement(uuid4().hex, first, {"valid": False}, adjudicates=True))
    assert bench.take(bench.member()) != first
    bench.decisions.undo(ruler, ruling.decision.id, uuid4().hex)
    assert bench.take(bench.member()) == first


def test_many_at_once_never_hold_the_same_place_and_all_work_is_done(store: Store) -> None:
    """Eight threads on 40 items with three judges each: 120 decisions, three people for each item."""
    bench = Bench(store, items=40, judges=3)
    people = [bench.member() for _ in range(8)]
    done: list[tuple[str, str]] = []
    errors: list[BaseException] = []

    def work(member: Member) -> None:
        try:
            while (item := bench.take(member)) is not None:
                bench.decide(member, item)
                done.append((item, member.id))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(member,)) for member in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(done) == len(set(done)) == 120
    assert set(Counter(item for item, _ in done).values()) == {3}
    assert [one.decided for one in bench.stages.progress(bench.project.id)] == [40]


@pytest.fixture
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Many items, once."""
    with Store(tmp_path_factory.mktemp("large") / "annotation.sqlite") as store:
        yield Bench(store, items=5000)


def test_the_next_item_is_found_by_the_index_and_not_by_looking_at_all(large: Bench) -> None:
    """Counted in steps of SQLite's machine, which do not depend on how busy this machine is."""
    quick = large.member()
    for _ in range(30):
        item = large.take(quick)
        assert item is not None
        large.decide(quick, item)
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    with large.store.writing() as first, large.store.reading() as second:  # all that the pool has
        for session in (first, second):
            connection: Any = session.connection().connection.dbapi_connection
            connection.set_progress_handler(count, 10)
    large.take(quick)
    assert steps
    assert steps < 300  # 3,000 instructions; looking at 5,000 items takes far more


def test_stages_that_are_closed_give_nothing(bench: Bench) -> None:
    member = bench.member()
    bench.take(member)
    assert bench.stages.open_next(bench.project, force=True) is None
    assert bench.take(member) is None
