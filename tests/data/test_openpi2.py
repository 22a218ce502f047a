"""OpenPI2.0: every published variant is read, and comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from fluents.data import openpi2, openpi2_outputs
from fluents.data.datasets import load_traces
from fluents.data.file_formats import read
from fluents.data.openpi2_labels import CLUSTER_FOLDS, SALIENCE_FOLDS, held_out
from fluents.errors import InputError
from fluents.jsonl import dumps, loads
from fluents.records import AttributeCluster, Trace

V2 = "allenai/openpi-dataset/v2.0"
VARIANTS: dict[str, str | None] = {
    "dev-ranked": None,
    "dev-data-reformatted-v4": None,
    "dev-data-reformatted-v4_votes": None,
    "dev-data-reformatted-v4_votes_salience_1-20": "A1",
    "dev-data-reformatted-v4_votes_score_salience_1-20": "A1",
    **{f"dev-data-reformatted-v4_pred-salience-{model}": model for model in openpi2.MODELS_WITH_SALIENCE},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_comes_back_as_it_was(mirror: Path, name: str) -> None:
    published = json.loads((mirror / V2 / f"data/{name}.json").read_text())
    traces = [cast(Trace, loads(dumps(trace))) for trace in openpi2.traces(published, name, name, VARIANTS[name])]
    assert openpi2.document(traces) == published


def test_the_expanded_variant_comes_back_but_for_the_order_of_joined_lists(mirror: Path) -> None:
    published = json.loads((mirror / V2 / "data/dev-data-reformatted-v4-overgenerated-unique.json").read_text())
    again = openpi2.document(openpi2.traces(published, "x", "x"))

    def as_sets(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: set(v) if k.endswith("_combined") else as_sets(v) for k, v in value.items()}
        return [as_sets(item) for item in value] if isinstance(value, list) else value

    assert as_sets(again) == as_sets(published)


def test_dev_lays_the_variants_over_each_other(mirror: Path) -> None:  # noqa: ARG001
    traces = list(load_traces("openpi2:dev"))
    assert len(traces) == 55
    assert sum(len(trace.clusters) for trace in traces) == 356
    assert sum(len(trace.entities) for trace in traces) == 349
    assert sum(len(trace.changes) for trace in traces) == 1193
    raters = {rating.rater for trace in traces for rating in trace.salience}
    assert raters == {"A1", "A2", *openpi2.MODELS_WITH_SALIENCE}
    first = traces[0]
    assert first.changes[0].votes == 7
    assert first.changes[0].alternatives.before == ("at store", "in store")
    people = {trace.id for trace in traces if any(rating.rater == "A2" for rating in trace.salience)}
    assert people == {str(number) for number in range(1, 21)}


def test_an_unreadable_rating_is_not_a_silent_one(mirror: Path) -> None:  # noqa: ARG001
    ratings = [r for trace in load_traces("openpi2:dev") for r in trace.salience if r.rater == "gpt-4"]
    unread = [rating for rating in ratings if rating.value is None]
    assert len(unread) == 16
    assert all(rating.explanation == "" for rating in unread)


@pytest.mark.parametrize(("split", "units"), [("ranked-dev", 1324), ("ranked-test", 3128)])
def test_ranked(mirror: Path, split: str, units: int) -> None:  # noqa: ARG001
    traces = list(load_traces(f"openpi2:{split}"))
    assert sum(len(trace.changes) for trace in traces) == units
    assert sum(len(trace.rejects) for trace in traces) == (split == "ranked-test"), "one unit has no entity"


def test_edited_clusters_are_written_back(mirror: Path) -> None:  # noqa: ARG001
    """What annotation needs: load, give a cluster another name, write, read again."""
    trace = next(iter(load_traces("openpi2:dev")))
    cluster = trace.clusters[0]
    edited = cluster.replace(
        mentions=(*cluster.mentions, "duster"),
        attributes=(*cluster.attributes, AttributeCluster(name="weight", mentions=("weight",), expansions=("mass",))),
    )
    document = openpi2.document([trace.replace(clusters=(edited, *trace.clusters[1:]))])
    (again,) = openpi2.traces(document, "x", "x")
    assert again.clusters[0] == edited


@pytest.mark.parametrize(
    ("split", "read", "unread"),
    [("davinci-schemata", 1193, 0), ("davinci-states", 1324, 0), ("davinci-sentences", 1067, 11),
     ("gpt-3.5-schemata", 1309, 0), ("gpt-3.5-states", 1324, 0), ("gpt-3.5-sentences", 1353, 165)],
)  # fmt: skip
def test_released_outputs_are_replayed(mirror: Path, split: str, read: int, unread: int) -> None:  # noqa: ARG001
    traces = list(load_traces(f"openpi2-outputs:{split}"))
    assert sum(len(trace.changes) for trace in traces) == read
    assert sum(len(trace.rejects) for trace in traces) == unread


def test_an_entity_without_attributes_is_kept_as_a_reject() -> None:
    changes, rejects = openpi2_outputs._schemata({"pan": ["heat"], "hob": []}, step=1)
    assert [change.entity for change in changes] == ["pan"]
    assert [(reject.text, reject.position) for reject in rejects] == [("hob | ", 1)]


@pytest.mark.parametrize("name", ["trial_in", "trial_in_20", "trial_out", "one_shot"])
def test_the_api_s_files_are_read(mirror: Path, name: str) -> None:
    assert list(read(mirror / V2 / f"api/{name}.json"))


@pytest.mark.parametrize(
    "value",
    [{"goal": "Tea"}, {"goal": "Tea", "steps": ["Boil."], "states": [{}]},
     {"goal": "Tea", "steps": [""], "states": []}, 3],
)  # fmt: skip
def test_a_broken_document_is_an_input_error(value: Any) -> None:
    with pytest.raises(InputError):
        list(openpi2.traces({"1": value}, "x", "file.json"))


def test_the_folds_are_the_labelled_procedures_each_once(mirror: Path) -> None:
    labelled = json.loads(
        (mirror / V2 / "source/cluster/archived/comparison_data/dev_data_mini_annotated_entity.json").read_text()
    )
    assert sorted(p for fold in CLUSTER_FOLDS for p in fold) == sorted(labelled)
    assert sorted((p for fold in SALIENCE_FOLDS for p in fold), key=int) == [str(n) for n in range(1, 21)]


def test_a_fold_is_never_scored_on_what_it_was_chosen_on() -> None:
    for folds in (CLUSTER_FOLDS, SALIENCE_FOLDS):
        everything = {p for fold in folds for p in fold}
        for learn, score in held_out(folds):
            assert not set(learn) & set(score)
            assert set(learn) | set(score) == everything
