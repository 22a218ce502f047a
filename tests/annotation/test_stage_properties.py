"""What holds of any decisions on a stage's items."""

from __future__ import annotations

from typing import Any

from decided import BARE, TEA_TRACE, Notebook, change, one_stage, shown
from hypothesis import given
from hypothesis import strategies as st

from fluents.annotation import Decision, Item, items, outcome
from fluents.annotation.design import ProjectDesign
from fluents.annotation.forms import same_words
from fluents.annotation.items import latest, standing

WORDS = st.sampled_from(["water", "cup", "bag", "kettle", "spoon"])
STATES = st.sampled_from(["hot", "cold", "full", "empty"])
written = st.builds(
    lambda step, entity, before, after: shown(change(step, entity, "state", before, after)),
    st.integers(1, 4),
    WORDS,
    STATES,
    STATES,
).filter(lambda one: one["before"] != one["after"])


def answers_for(item: Item) -> st.SearchStrategy[dict[str, Any]]:
    """Any answer that the item's form takes, for stages that write or take away."""
    steps = len(item.payload["procedure"]["steps"])
    taken: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "author": st.fixed_dictionaries({"changes": st.lists(written, max_size=5)}),
        "vet": st.fixed_dictionaries({"valid": st.booleans()}),
        "clean-procedures": st.fixed_dictionaries({"procedure": st.booleans()}),
        "clean-steps": st.fixed_dictionaries({"valid": st.lists(st.booleans(), min_size=steps, max_size=steps)}),
        "clean-changes": st.fixed_dictionaries({"verdict": st.sampled_from(["certain", "uncertain", "impossible"])}),
    }
    return taken[item.kind]


@st.composite
def decided(draw: st.DrawFn, kind: str) -> tuple[ProjectDesign, list[Item], list[Decision]]:
    """A stage with any decisions on its items, undone ones, rulings and missing ones among them."""
    design = one_stage(kind, judges=draw(st.integers(1, 4)))
    made = list(items(design, 1, [TEA_TRACE]))
    notebook = Notebook()
    for item in made:
        for author in draw(st.lists(st.sampled_from("ABCD"), max_size=6)):
            ruled = draw(st.integers(0, 9)) == 0
            last = notebook.note(item, author, draw(answers_for(item)), adjudicates=ruled)
            if draw(st.integers(0, 4)) == 0:
                notebook.note(item, author, {}, undoes=last.id)
    return design, made, notebook.decisions


TAKING = st.sampled_from(["vet", "clean-procedures", "clean-steps", "clean-changes"])


@given(st.data(), TAKING)
def test_a_stage_that_takes_away_invents_nothing_and_accounts_for_everything(data: st.DataObject, kind: str) -> None:
    design, made, decisions = data.draw(decided(kind))
    found = outcome(design, 1, [TEA_TRACE], made, decisions)
    kept = [one for trace in found.traces for one in trace.changes]
    assert {(one.entity, one.after) for one in kept} <= {(one.entity, one.after) for one in TEA_TRACE.changes}
    for noun, before, after in zip(("procedure", "step", "change"), found.before, found.after, strict=True):
        assert before - after == sum(one.what == noun for one in found.removed)


@given(st.data())
def test_authoring_keeps_exactly_what_was_written(data: st.DataObject) -> None:
    design, made, decisions = data.draw(decided("author"))
    found = outcome(design, 1, [BARE], made, decisions)
    said = {
        same_words(value) for one in standing(made, decisions) for answer in one.answers for value in answer["changes"]
    }
    assert {same_words(one.model_dump()) for one in found.traces[0].changes} == said


@given(st.data(), TAKING | st.just("author"))
def test_the_order_in_which_people_decide_does_not_matter(data: st.DataObject, kind: str) -> None:
    """Decisions of each author stay in order; those of different authors are shuffled."""
    design, made, decisions = data.draw(decided(kind))
    by_author: dict[str, list[Decision]] = {}
    for decision in decisions:
        by_author.setdefault(decision.author, []).append(decision)
    order = data.draw(st.permutations([one.author for one in decisions]))
    queues = {author: iter(found) for author, found in by_author.items()}
    shuffled = [next(queues[author]) for author in order]
    one, other = (outcome(design, 1, [TEA_TRACE], made, given) for given in (decisions, shuffled))
    assert (one.traces, one.removed, one.tallies) == (other.traces, other.removed, other.tallies)


@given(st.data(), TAKING | st.just("author"))
def test_undoing_restores_what_was_before(data: st.DataObject, kind: str) -> None:
    design, made, decisions = data.draw(decided(kind))
    before = outcome(design, 1, [TEA_TRACE], made, decisions)
    notebook = Notebook()
    notebook.decisions = list(decisions)
    item = data.draw(st.sampled_from(made))
    last = notebook.note(item, "A", data.draw(answers_for(item)))
    notebook.note(item, "A", {}, undoes=last.id)
    after = outcome(design, 1, [TEA_TRACE], made, notebook.decisions)
    assert (before.traces, before.removed, before.tallies) == (after.traces, after.removed, after.tallies)
    assert latest(decisions) == [one for one in latest(notebook.decisions) if one.id != last.id]
