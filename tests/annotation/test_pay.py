"""Pay and time, and how far a draft pulls people: figures computed from decisions."""

from __future__ import annotations

import pytest
from decided import BARE, BOILED, FILLED, POURED, SOAKED, TEA_TRACE, Notebook, change, one_stage, run, shown

from fluents.annotation import design_of, items, pay_of
from fluents.annotation.design import Pay, ProjectDesign, StageDesign
from fluents.annotation.pay import pay_for
from fluents.errors import InputError

TIERS = Pay(per_change=0.07, first=3, per_change_after=0.14)
"""As OpenPI paid: seven cents for the first three changes of a step, fourteen for the next three."""


def test_two_tiers_count_the_changes_of_each_step() -> None:
    """Step 1 has five changes: 3 · 0.07 + 2 · 0.14; step 2 has one: 0.07."""
    first = [shown(BOILED, after=f"{number}") for number in range(5)]
    assert pay_for(TIERS, {"changes": [*first, shown(POURED)]}) == pytest.approx(0.21 + 0.28 + 0.07)
    assert pay_for(TIERS, {"changes": []}) == 0
    assert pay_for(Pay(per_change=1), {"changes": first}) == 5


def test_changes_of_a_draft_are_not_paid_and_judgements_are_paid_by_the_item() -> None:
    answer = {"changes": [{**shown(BOILED), "from": 0}, {**shown(FILLED), "from": None}], "blind": None}
    assert pay_for(Pay(per_change=1), answer) == 1
    assert pay_for(Pay(per_item=0.03), {"procedure": True}) == 0.03


def test_people_are_paid_for_what_counts_and_their_time_is_all_their_time() -> None:
    design = one_stage("author", pay=TIERS.model_dump())
    [item] = items(design, 1, [BARE])
    notebook = Notebook()
    notebook.note(item, "A", {"changes": [shown(BOILED), shown(POURED)]}, seconds=100)
    notebook.note(item, "A", {"changes": [shown(BOILED)]}, seconds=80)
    last = notebook.note(item, "B", {"changes": [shown(BOILED)]})
    notebook.note(item, "B", {}, undoes=last.id)
    [found] = pay_of(design, [item], notebook.decisions)
    assert found.to_dict() == {
        "author": "A",
        "items": 1,
        "changes": 1,
        "seconds": 180,
        "amount": 0.07,
        "currency": "USD",
        "per_hour": pytest.approx(1.4),
    }


def test_without_prices_there_is_no_amount() -> None:
    found = run(one_stage("vet"), [TEA_TRACE], lambda *_: {"valid": True})
    paid = pay_of(design_of("tea", "vet"), found.items, found.decisions)
    assert [(one.author, one.items, one.amount, one.per_hour, one.currency) for one in paid] == [
        (author, 5, None, None, None) for author in "ABC"
    ]


def test_a_project_pays_in_one_currency() -> None:
    stages = [StageDesign(kind="vet", pay=Pay(currency=name)) for name in ("USD", "EUR")]
    with pytest.raises(ValueError, match="`currency` must be the same"):
        ProjectDesign(name="tea", stages=tuple(stages))


def test_a_design_with_a_mistake_says_where() -> None:
    with pytest.raises(InputError, match="seed"):
        design_of("tea", "vet", seed=-1)


# Anchoring

STOVE = change(1, "stove", "power", "off", "on")


def test_anchoring_by_hand() -> None:
    """The draft has four changes. Blind, a person wrote one of them and the stove: F1 = 2 · 1 / (2 + 4) = 1/3. In the
    end there are two of the draft's and no stove: F1 = 2 · 2 / (2 + 4) = 2/3. So the answer went half of the way; of
    three changes that were new, one was taken over, and of one that the draft lacks, one was given up."""
    draft = TEA_TRACE.replace(changes=(BOILED, POURED, FILLED, SOAKED))
    answer = {
        "blind": [shown(BOILED), shown(STOVE)],
        "changes": [{**shown(BOILED), "from": 0}, {**shown(POURED), "from": 1}],
    }
    found = run(one_stage("correct", blind_first=True), [BARE], lambda *_: answer, drafts=[draft]).anchoring
    assert found is not None
    assert found.answers == 1
    assert (found.blind_f1, found.final_f1) == pytest.approx((1 / 3, 2 / 3))
    assert found.moved == pytest.approx(0.5)
    assert found.adopted == pytest.approx(1 / 3)
    assert found.given_up == 1


def test_a_person_who_ignores_the_draft_does_not_move() -> None:
    answer = {"blind": [shown(STOVE)], "changes": [{**shown(STOVE), "from": None}]}
    found = run(one_stage("correct", blind_first=True), [TEA_TRACE], lambda *_: answer).anchoring
    assert found is not None
    assert (found.moved, found.adopted, found.given_up) == (0, 0, 0)


@pytest.mark.parametrize("price", [0.0, 0.2])
def test_rulings_and_checks_earn_nothing_unless_the_design_says_so(price: float) -> None:
    design = one_stage("author", pay={"per_item": 0.5, "per_change": 1, "per_ruling": price})
    [item] = items(design, 1, [BARE])
    notebook = Notebook()
    notebook.note(item, "A", {"changes": [shown(BOILED), shown(POURED)]})
    notebook.note(item, "B", {"changes": [shown(BOILED), shown(POURED)]}, adjudicates=True)
    notebook.note(item, "C", {"changes": [shown(BOILED)]}, checks=True)
    paid = pay_of(design, [item], notebook.decisions)
    assert [(one.author, one.items, one.changes, one.amount) for one in paid] == [
        ("A", 1, 2, 2.5),
        ("B", 1, 0, price),
        ("C", 1, 0, price),
    ]
