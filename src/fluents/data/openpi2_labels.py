"""What people labelled by hand in OpenPI2.0: clusters of names in ten procedures, and folds of the small labelled sets.

Beside the clusters by hand stand those of a language model. All are {(procedure id, entity): clusters of the entity's
attributes}; the entity "" has the clusters of the procedure's entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from fluents.data import file_catalogue
from fluents.data.openpi2 import BAR
from fluents.jsonl import wrong_shape_is_input_error

Groupings: TypeAlias = dict[tuple[str, str], list[list[str]]]

_FOLDER = "v2.0/source/cluster"
_LABELS = f"{_FOLDER}/archived/comparison_data/dev_data_mini_annotated"
ENTITY_RUNS = (1, 2, 3, 4, 5)
ATTRIBUTE_RUNS = (1, 2, 3)


def entity_labels() -> Groupings:
    """The entities as a person clustered them."""
    return _read(f"{_LABELS}_entity.json", lambda value: {"": value["entities"]})


def attribute_labels() -> Groupings:
    """Every entity's attributes as a person clustered them."""
    return _read(
        f"{_LABELS}_attr.json",
        lambda value: {
            entity: [names.split(BAR) for names in clusters] for entity, clusters in value["entity_attr_dict"].items()
        },
    )


def entity_run(run: int) -> Groupings:
    """The entities as gpt-3.5-turbo clustered them in one run, which joins the clusters of five samples."""
    path = f"{_FOLDER}/ent_code/ent_cluster/results/entity_chat_result_5_run{run}.json"
    return _read(path, lambda value: {"": list(value.values())})


def attribute_run(run: int = 3) -> Groupings:
    """Every entity's attributes as gpt-3.5-turbo clustered them in one run: a name, and those it stands for."""
    path = f"{_FOLDER}/attr_code/attr_cluster/results/attr_chat_result_{run}.json"
    return _read(
        path,
        lambda value: {
            entity: [[name, *others] for name, others in clusters.items()] for entity, clusters in value.items()
        },
    )


def _read(path: str, clusters_by_entity: Callable[[Any], dict[str, list[list[str]]]]) -> Groupings:
    document, where = file_catalogue.document("openpi2", path)
    found: Groupings = {}
    with wrong_shape_is_input_error("this file does not contain the cluster labels of OpenPI2.0", where):
        for procedure_id, value in document.items():
            for entity, clusters in clusters_by_entity(value).items():
                found[procedure_id, entity] = clusters
    return found


# Fixed folds for cross-validation: tune on the other folds, score on the one held out, and report over all. Drawn once
# with random.Random(2024).shuffle and written out, so that they never change. Do not edit them.

CLUSTER_FOLDS: tuple[tuple[str, ...], ...] = (("22", "24"), ("1", "4"), ("18", "55"), ("7", "47"), ("14", "28"))
"""The 10 procedures with hand-made entity and attribute clusters."""

SALIENCE_FOLDS: tuple[tuple[str, ...], ...] = (
    ("1", "9", "14", "20"),
    ("3", "5", "7", "18"),
    ("10", "15", "17", "19"),
    ("2", "6", "8", "12"),
    ("4", "11", "13", "16"),
)
"""The 20 procedures whose salience people rated."""


def held_out(folds: tuple[tuple[str, ...], ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(procedures to tune on, procedures to score) for each fold."""
    for fold in folds:
        yield tuple(sorted((p for other in folds if other is not fold for p in other), key=int)), fold
