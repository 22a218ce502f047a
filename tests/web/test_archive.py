"""Documents, traces and judgements in both kinds of store, and the search over them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("sqlalchemy", reason="the web application: pip install 'fluents[web]'")

from soup import SOUP, STEPS, TEXT

from fluents import jsonl
from fluents.data.file_formats import load
from fluents.records import Procedure, StateChange, Trace
from fluents.training.examples import examples
from fluents.web.archive import Archive
from fluents.web.store import NotFoundError, Store
from fluents.web.trace_resources import CorrectedWords, CorrectionGiven

HOSTILE = "<script>alert(1)</script> %_\\ ' \" \x00 \U0001f525 שלום \u202e"


@pytest.fixture
def archive(store: Store) -> Archive:
    return Archive(store)


def _kept_soup(archive: Archive) -> str:
    _, [trace] = archive.add_traces([SOUP], "soup.jsonl")
    return trace


def test_a_text_comes_back_as_it_was_given(archive: Archive) -> None:
    procedure = Procedure(goal=HOSTILE, steps=(HOSTILE, "Stir."))
    found = archive.document(archive.add(procedure, HOSTILE.encode(), HOSTILE, [HOSTILE]))
    assert (found.text, found.read, found.warnings) == (HOSTILE, procedure, [HOSTILE])
    assert found.name == HOSTILE.replace("\x00", " ")  # which PostgreSQL holds nowhere


def test_corrected_steps_stand_beside_those_that_were_read_and_can_be_taken_back(archive: Archive) -> None:
    document = archive.add(SOUP.procedure, TEXT.encode(), None)
    archive.correct_steps(document, "Soup", [*STEPS, "Serve it."])
    found = archive.document(document)
    assert (found.procedure.goal, len(found.procedure.steps)) == ("Soup", 5)
    assert found.read == SOUP.procedure
    assert archive.documents("serve").total == 1
    archive.correct_steps(document, None, None)
    assert archive.document(document).corrected is None
    assert archive.documents("serve").total == 0


def test_the_archive_comes_in_pages_newest_first(archive: Archive) -> None:
    ids = [archive.add(Procedure(goal=f"Cook dish {n}", steps=("Cook it.",)), b"", None) for n in range(7)]
    first = archive.documents(limit=5)
    assert [one.id for one in first.items] == ids[:1:-1]
    assert (first.total, first.next) == (7, 5)
    rest = archive.documents(offset=5, limit=5)
    assert ([one.id for one in rest.items], rest.next) == (ids[1::-1], None)
    assert archive.documents("cooking DISHES").total == 7  # by stems, as metrics compare words
    assert archive.documents("dish 3").total == 1


def test_deleting_a_document_deletes_all_that_belongs_to_it(archive: Archive) -> None:
    [document], [trace] = archive.add_traces([SOUP], "soup.jsonl")
    archive.correct(trace, CorrectionGiven(verdict="wrong", position=0))
    archive.delete_document(document)
    assert archive.documents().total == archive.search("leeks").total == 0
    for gone in (lambda: archive.trace(trace), lambda: archive.document(document)):
        with pytest.raises(NotFoundError):
            gone()


def test_everything_that_becomes_hot(archive: Archive) -> None:
    _kept_soup(archive)
    found = archive.search(after="hot")
    assert [(one.entity, one.after, one.step, one.text) for one in found.items] == [
        ("soup", "boiling hot", 4, "Boil the soup.")
    ]
    assert archive.search("soup hot").total == 1
    assert archive.search("ho").total == 0  # "hot" is a word, not letters
    assert archive.search(entity="leek").total == 2  # of "leeks"
    assert archive.search(entity="leek", after="soft").total == 1
    assert archive.search(before="hot").total == 0
    assert archive.search("%").total == archive.search().total == 6
    assert archive.search("%_\\ leek").total == 2  # punctuation is no word


def test_scripts_without_spaces_are_searched_by_their_letters(archive: Archive) -> None:
    change = StateChange(step=1, entity="热水", attribute="温度", before="冷", after="很热")
    archive.add_traces([Trace(procedure=Procedure(goal="茶", steps=("烧水。",)), changes=(change,))], "tea")
    assert archive.search(after="热").total == 1


def test_a_search_sees_corrections(archive: Archive) -> None:
    trace = _kept_soup(archive)
    words = CorrectedWords(entity="leeks", attribute="colour", before="green", after="golden")
    archive.correct(trace, CorrectionGiven(verdict="edited", position=2, words=words))
    archive.correct(trace, CorrectionGiven(verdict="wrong", position=4))
    archive.correct(trace, CorrectionGiven(verdict="added", step=3, words=words.model_copy(update={"entity": "stock"})))
    assert [one.entity for one in archive.search(after="golden").items] == ["leeks", "stock"]
    assert archive.search(after="soft").total == archive.search(entity="pot").total == 0
    archive.correct(trace, CorrectionGiven(verdict="withdrawn", position=4))
    assert archive.search(entity="pot").total == 1
    kept = archive.trace(trace)
    assert kept.trace.changes == SOUP.changes  # the words of the model stay
    assert kept.summary.corrections == len(kept.corrections) == 4


def test_corrections_are_exported_as_data_for_training(archive: Archive, tmp_path: Path) -> None:
    trace, _ = _kept_soup(archive), _kept_soup(archive)
    _kept_soup(archive)  # which nobody judged, and so is left out
    for one in (trace, _):
        archive.correct(one, CorrectionGiven(verdict="wrong", position=1))
    jsonl.write(archive.corrected_traces(), tmp_path / "mine.jsonl")  # which refuses ids that come twice
    [first, second] = load(tmp_path / "mine.jsonl")
    assert [len(first.changes), len(second.changes)] == [5, 5]
    assert len(examples([first, second], "transcript")) == 2
