"""The offline method: its features, its model, and the rules that make ratings of labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windy_room import QUESTION, TRACE

from fluents.questions.feature_judge import LABELS, FeatureJudge, LinearModel, fit, shipped_models
from fluents.questions.features import content_words, features
from fluents.records import Procedure, StateChange, Trace
from fluents.task_records import CANNOT_TELL
from fluents.text.embedders import StaticEmbedder
from strategies import traces

EMBEDDER = StaticEmbedder()


def test_content_words_are_stems_without_what_any_question_has() -> None:
    assert content_words("Can I touch the pans without being burned?") == content_words("TOUCHING a pan being burns")
    assert content_words("Is it?") == frozenset()


@pytest.mark.parametrize("with_states", [False, True])
def test_the_shipped_model_has_a_weight_for_every_feature_and_no_other(with_states: bool) -> None:
    model = shipped_models().with_states if with_states else shipped_models().without_states
    assert model.features == tuple(features(TRACE, QUESTION, EMBEDDER, with_states=with_states))
    assert {len(row) for row in model.weights} == {len(model.features) + 1}
    assert len(model.weights) == len(model.odds) == len(LABELS)


def test_the_order_of_changes_does_not_matter() -> None:
    other = TRACE.replace(changes=TRACE.changes[::-1])
    first, second = (features(trace, QUESTION, EMBEDDER, with_states=True) for trace in (TRACE, other))
    assert all(np.allclose(first[name], second[name]) for name in first)


@settings(max_examples=25)
@given(traces(), st.text(min_size=1))
def test_any_trace_and_any_question_give_finite_features_and_ratings_on_the_scale(trace: Trace, event: str) -> None:
    for column in features(trace, event, EMBEDDER, with_states=True).values():
        assert column.shape == (len(trace.procedure.steps),)
        assert np.isfinite(column).all()
    said = FeatureJudge(EMBEDDER).judgements(trace, [event], with_states=True)
    assert [one.step for one in said] == list(range(len(trace.procedure.steps) + 1))
    for one in said:
        assert one.rating is None or 1 <= one.rating <= 5
        assert all(change.step == one.step for change in one.support)


def test_what_is_learnt_separates_what_can_be_separated() -> None:
    labels = np.array([0, 1, 2] * 20)
    columns = {"one": np.array([0.0, 1, 2] * 20), "constant": np.ones(60)}
    model = fit(columns, labels, penalty=0.01)
    assert model.labels(columns) == [LABELS[label] for label in labels]
    assert LinearModel.model_validate_json(model.model_dump_json()) == model


def test_odds_decide_between_close_labels() -> None:
    model = fit({"one": np.zeros(10)}, np.array([0] * 8 + [1, 2]), penalty=1)
    assert model.labels({"one": np.zeros(1)}) == ["no change"]
    assert model.replace(odds=(1.0, 1.0, 20.0)).labels({"one": np.zeros(1)}) == ["more likely"]


def test_ratings_stay_on_the_scale_and_a_judgement_that_rests_on_nothing_is_none() -> None:
    """A model that always says more likely, of six steps that name the pot and one that does not."""
    always = shipped_models().without_states.replace(odds=(0.0, 0.0, 1.0))
    steps = ("Look at the pot.",) * 5 + ("Wait.", "Take the pot.")
    trace = Trace(procedure=Procedure(steps=steps))
    said = FeatureJudge(EMBEDDER, always).judgements(trace, ["The pot is seen."], with_states=False)
    assert [one.rating for one in said] == [2, 3, 4, 5, 5, 5, 5, 5]
    assert [one.change for one in said].count(CANNOT_TELL) == 1
    assert said[6].change == CANNOT_TELL


def test_support_is_what_has_to_do_with_the_question_the_likest_first_and_not_everything() -> None:
    states = [("pot", "hot"), ("pan", "clean"), ("bank account", "empty"), ("pot", "full")]
    changes = tuple(StateChange(step=1, entity=e, attribute="state", before="other", after=a) for e, a in states)
    trace = Trace(procedure=Procedure(steps=("Do it.",)), changes=changes)
    *_, last = FeatureJudge(EMBEDDER).judgements(trace, ["The pot is hot."], with_states=True)
    assert last.support[0] == changes[0]
    assert changes[2] not in last.support
