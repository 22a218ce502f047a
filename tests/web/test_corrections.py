"""Judgements: the model's words stay, positions never move, and the latest judgement counts."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("sqlalchemy", reason="the web application: pip install 'fluents[web]'")

from hypothesis import given
from hypothesis import strategies as st
from soup import SOUP

from fluents.errors import InputError
from fluents.web.corrections import corrected, judged, placed
from fluents.web.trace_resources import CorrectedWords, Correction, CorrectionGiven

WORDS = CorrectedWords(entity="ladle", attribute="place", before="drawer", after="pot")


def _added(corrections: list[Correction], given: CorrectionGiven) -> list[Correction]:
    """As the store does it."""
    position, step = placed(SOUP, corrections, given)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    one = Correction(
        id="0" * 16,
        trace="0" * 16,
        position=position,
        verdict=given.verdict,
        step=step,
        words=given.words,
        created=moment,
    )
    return [*corrections, one]


def _judgement(position: int, verdict: str) -> CorrectionGiven:
    words = WORDS if verdict in ("edited", "added") else None
    if verdict == "added":
        return CorrectionGiven(verdict="added", step=position % 4 + 1, words=words)
    return CorrectionGiven.model_validate({"verdict": verdict, "position": position, "words": words})


def test_wrong_goes_edited_changes_and_added_comes_at_the_end_of_its_step() -> None:
    found: list[Correction] = []
    for position, verdict in ((1, "wrong"), (2, "edited"), (0, "right"), (0, "added")):
        found = _added(found, _judgement(position, verdict))
    now = corrected(SOUP, found)
    assert [(change.step, change.entity) for change in now.changes] == [
        (1, "leeks"),
        (1, "ladle"),
        (2, "ladle"),
        (2, "butter"),
        (3, "pot"),
        (4, "soup"),
    ]
    assert now.provenance.decoding["corrected"] == 4
    assert now.changes[2].confidence is None  # what the model thought of its own words


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["right", "wrong", "edited", "added", "withdrawn"]))))
def test_positions_never_move_and_the_latest_judgement_counts(given: list[tuple[int, str]]) -> None:
    corrections: list[Correction] = []
    for position, verdict in given:
        if position < len(judged(SOUP, corrections)) or verdict == "added":
            before = judged(SOUP, corrections)
            corrections = _added(corrections, _judgement(position, verdict))
            after = judged(SOUP, corrections)
            assert [one.change for one in after][: len(before)] == [one.change for one in before]
            last = after[corrections[-1].position]
            assert last.verdict == (None if verdict == "withdrawn" else verdict)
    kept = [one for one in judged(SOUP, corrections) if one.current is not None]
    assert len(corrected(SOUP, corrections).changes) == len(kept)
    assert [one.change for one in judged(SOUP, corrections)][: len(SOUP.changes)] == list(SOUP.changes)


def test_what_is_withdrawn_is_as_it_was_and_what_was_added_goes() -> None:
    found = _added([], _judgement(0, "added"))
    found = _added(found, _judgement(6, "withdrawn"))
    found = _added(found, _judgement(1, "wrong"))
    found = _added(found, _judgement(1, "withdrawn"))
    assert corrected(SOUP, found).changes == SOUP.changes


@pytest.mark.parametrize(
    "given", [CorrectionGiven(verdict="wrong", position=6), CorrectionGiven(verdict="added", step=5, words=WORDS)]
)
def test_what_is_not_there_cannot_be_judged(given: CorrectionGiven) -> None:
    with pytest.raises(InputError, match="has no"):
        placed(SOUP, [], given)


@pytest.mark.parametrize(
    "given",
    [
        {"verdict": "wrong"},
        {"verdict": "wrong", "position": 1, "step": 1},
        {"verdict": "edited", "position": 1},
        {"verdict": "added", "words": WORDS.model_dump()},
        {"verdict": "added", "position": 1, "step": 1, "words": WORDS.model_dump()},
        {"verdict": "right", "position": -1},
        {"verdict": "edited", "position": 1, "words": {**WORDS.model_dump(), "entity": " "}},
    ],
)
def test_a_judgement_says_what_it_is_about_and_no_more(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        CorrectionGiven.model_validate(given)
