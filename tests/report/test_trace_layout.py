"""How a trace is laid out: rows, columns, order, names, and what matches gold."""

from __future__ import annotations

from hypothesis import given

from fluents.records import UNKNOWN_STEP, EntityCluster, Procedure, Salience, StateChange, Trace
from fluents.report.trace_layout import finite, matrix_of
from strategies import traces


def change(step: int, entity: str, after: str = "done", mentioned: bool | None = None) -> StateChange:
    return StateChange(step=step, entity=entity, attribute="state", before="raw", after=after, mentioned=mentioned)


def trace(*changes: StateChange, steps: int = 3, **fields: object) -> Trace:
    procedure = Procedure(id="p", steps=tuple(f"Do {n}." for n in range(1, steps + 1)))
    return Trace.model_validate({"procedure": procedure, "changes": changes} | fields)


@given(traces())
def test_every_change_stands_once_in_its_own_column(given_trace: Trace) -> None:
    for gold in (None, given_trace):
        matrix = matrix_of(given_trace, gold)
        sides = 1 if gold is None else 2
        for row in matrix.rows:
            assert sum(cell.span for cell in row.cells) == len(given_trace.procedure.steps) * sides
            assert row.entries == tuple(entry for cell in row.cells for entry in cell.entries)
            for cell in row.cells:
                columns = {sides * (entry.change.step - 1) + entry.is_gold for entry in cell.entries}
                assert columns <= {cell.column}
        shown = sorted(str(entry.change) for entry in matrix.entries)
        assert shown == sorted(str(change) for change in given_trace.changes * sides)


@given(traces())
def test_a_trace_matches_itself_everywhere(given_trace: Trace) -> None:
    matrix = matrix_of(given_trace, given_trace)
    assert matrix.matched == len(given_trace.changes)
    assert all(entry.matched for entry in matrix.entries)
    assert not matrix.steps_differ


def test_an_exact_match_is_all_four_fields_in_any_case_at_the_same_step() -> None:
    predicted = trace(change(1, "Egg"), change(2, "egg"), change(3, "egg", after="burnt"))
    matrix = matrix_of(predicted, trace(change(1, "egg"), change(3, "egg")))
    assert [(e.change.step, e.is_gold, e.matched) for e in matrix.entries] == [
        (1, False, True),
        (1, True, True),
        (2, False, False),
        (3, False, False),
        (3, True, False),
    ]
    assert matrix.matched == 1


def test_rows_are_canonical_names_and_keep_the_raw_words() -> None:
    clusters = (EntityCluster(name="stove", mentions=("burner", "the heat")), EntityCluster(name="pan", mentions=()))
    rows = matrix_of(
        trace(change(1, "burner"), change(2, "The Heat"), change(2, "Pan"), change(3, "pan"), clusters=clusters)
    ).rows
    assert [(row.name, row.wordings) for row in rows] == [("stove", ("burner", "The Heat")), ("pan", ("Pan",))]


def test_gold_s_clusters_join_its_words_to_the_prediction_s() -> None:
    gold = trace(change(1, "oil"), clusters=(EntityCluster(name="olive oil", mentions=("oil",)),))
    rows = matrix_of(trace(change(1, "olive oil")), gold).rows
    assert [(row.name, len(row.entries)) for row in rows] == [("olive oil", 2)]


def test_a_name_that_another_cluster_mentions_still_makes_one_row() -> None:
    clusters = (EntityCluster(name="c", mentions=("a",)), EntityCluster(name="a", mentions=("b",)))
    rows = matrix_of(trace(change(1, "a"), change(1, "b"), change(1, "c"), clusters=clusters)).rows
    assert [(row.name, len(row.entries)) for row in rows] == [("a", 2), ("c", 1)]


def test_the_most_salient_come_first_by_the_mean_over_raters() -> None:
    ratings = [("b", "A1", 2), ("b", "A2", 4), ("c", "A1", 5), ("C", "A2", None), ("d", "A1", 10**400)]
    salience = tuple(Salience(entity=entity, rater=rater, value=value) for entity, rater, value in ratings)
    local = Salience(entity="a", rater="A1", value=5, step=1)
    rows = matrix_of(trace(*(change(1, name) for name in "abcd"), salience=(*salience, local))).rows
    assert [(row.name, row.salience) for row in rows] == [("c", 5.0), ("b", 3.0), ("a", None), ("d", None)]


def test_an_entity_is_unmentioned_only_if_no_step_has_mentioned_it() -> None:
    changes = (
        change(1, "a", mentioned=False),
        change(2, "a", mentioned=True),
        change(1, "b", mentioned=False),
        change(1, "c"),
    )
    assert [row.unmentioned for row in matrix_of(trace(*changes)).rows] == [False, True, False]


def test_a_step_without_an_answer_is_not_a_step_without_changes() -> None:
    steps = matrix_of(trace(change(1, "a"), covered=(1, 2))).steps
    assert [step.predicted for step in steps] == [1, 0, None]


def test_gold_lends_its_text_to_answers_that_come_without_and_says_when_the_steps_differ() -> None:
    bare = Trace(procedure=Procedure(id="p", steps=(UNKNOWN_STEP, UNKNOWN_STEP, UNKNOWN_STEP)))
    matrix = matrix_of(bare, trace())
    assert [step.text for step in matrix.steps] == ["Do 1.", "Do 2.", "Do 3."]
    assert not matrix.steps_differ
    longer = matrix_of(trace(steps=2), trace(steps=3))
    assert [step.text for step in longer.steps] == ["Do 1.", "Do 2.", "Do 3."]
    assert longer.steps_differ
    assert matrix_of(trace(steps=1), Trace(procedure=Procedure(id="p", steps=("Other.",)))).steps_differ


def test_the_layout_stays_as_long_as_the_trace() -> None:
    """Two thousand entities in two thousand steps would make four million cells."""
    matrix = matrix_of(trace(*(change(n, f"entity {n}") for n in range(1, 2001)), steps=2000))
    assert sum(len(row.cells) for row in matrix.rows) <= 5 * 2000
    assert max(cell.span for row in matrix.rows for cell in row.cells) <= 1000


def test_only_numbers_that_can_be_shown_are() -> None:
    assert [finite(value) for value in (None, float("nan"), float("inf"), 10**400, 3, 0.5)] == [
        None,
        None,
        None,
        None,
        3,
        0.5,
    ]
