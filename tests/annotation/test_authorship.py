"""Who wrote a change, as later stages need to know it."""

from __future__ import annotations

from typing import Any

from decided import BARE, BOILED, FILLED, SOAKED, Notebook, one_stage, shown

from fluents.annotation import Item, items
from fluents.annotation.authorship import ChangeKey, authors, change_key
from fluents.records import StateChange, Trace


def only_item(kind: str, trace: Trace = BARE, **settings: Any) -> Item:
    [item] = items(one_stage(kind, **settings), 1, [trace])
    return item


def key(change: StateChange) -> ChangeKey:
    """As a stage that judges the change has it."""
    return change_key(only_item("vet", BARE.replace(changes=(change,))))


def test_all_who_wrote_the_same_words_are_its_authors_wherever_the_step_is_now() -> None:
    item, notes = only_item("author"), Notebook()
    notes.note(item, "A1", {"changes": [shown(BOILED), shown(FILLED)]})
    notes.note(item, "A2", {"changes": [shown(BOILED.replace(entity=BOILED.entity.upper()))]})
    found = authors([item], notes.decisions)
    assert found == {key(BOILED): {"A1", "A2"}, key(FILLED): {"A1"}}
    assert key(BOILED.replace(step=2)) == key(BOILED)


def test_what_was_undone_or_only_checked_has_no_author() -> None:
    item, notes = only_item("author"), Notebook()
    first = notes.note(item, "A1", {"changes": [shown(BOILED)]})
    notes.note(item, "A1", {}, undoes=first.id)
    notes.note(item, "A2", {"changes": [shown(FILLED)]}, checks=True)
    assert authors([item], notes.decisions) == {}


def test_a_ruling_makes_nobody_the_author_of_what_others_wrote() -> None:
    item, notes = only_item("author"), Notebook()
    notes.note(item, "A1", {"changes": [shown(BOILED)]})
    notes.note(item, "A9", {"changes": [shown(BOILED), shown(SOAKED)]}, adjudicates=True)
    assert authors([item], notes.decisions) == {key(BOILED): {"A1"}, key(SOAKED): {"A9"}}


def test_a_draft_has_no_author_but_what_was_added_edited_or_written_blind_has() -> None:
    draft = BARE.replace(changes=(BOILED, FILLED))
    item, notes = only_item("correct", draft, blind_first=True), Notebook()
    edited = FILLED.replace(after="to the brim")
    changes = [{**shown(BOILED), "from": 0}, {**shown(edited), "from": 1}]
    notes.note(item, "A1", {"changes": changes, "blind": [shown(SOAKED)]})
    assert authors([item], notes.decisions) == {key(edited): {"A1"}, key(SOAKED): {"A1"}}
    audited = only_item("audit", draft)
    notes.note(audited, "A2", {"missing": [{**shown(SOAKED), "type": "indirect"}]})
    assert authors([audited], notes.decisions) == {key(SOAKED): {"A2"}}
