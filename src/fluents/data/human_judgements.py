"""What people judged of OpenPI2.0: two models' predicted schemata, and the paraphrases added to the clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from fluents.data import file_catalogue
from fluents.errors import InputError, UnknownNameError
from fluents.jsonl import wrong_shape_is_input_error

MODELS = {"davinci": "davinci", "gpt-3.5": "chatgpt"}
"""The names the released outputs have here, and in the files."""

_VERDICTS = {"1": "correct", "2": "no change", "3": "nonsense", "": "unjudged", 100: "missing"}
_DONE = "annotated"


class SchemataJudgement(NamedTuple):
    procedure_id: str
    step: int
    entity: str
    attribute: str
    verdict: str
    """On a predicted pair "correct", "no change", "nonsense" or "unjudged"; "missing" on one the judge added."""


class ExpansionJudgement(NamedTuple):
    procedure_id: str
    kind: str
    """ "entities" or "attributes"."""
    paraphrases: int
    """How many were added to one cluster; `wrong`: how many of them should not have been."""
    wrong: int


def schemata_judgements(model: str) -> Iterator[SchemataJudgement]:
    """Every predicted (entity, attribute) of about twenty procedures, judged, and those that were missing."""
    if model not in MODELS:
        raise UnknownNameError(f"no judgements on {model!r}", fix=f"one of: {', '.join(MODELS)}")
    document, where = file_catalogue.document("openpi2", f"v2.0/error_analysis/{MODELS[model]}_schema_analysis.json")
    with wrong_shape_is_input_error("not OpenPI2.0's error analysis", where):
        for procedure_id, steps in document.items():
            if steps[-1] != _DONE:
                raise InputError(f"procedure {procedure_id!r} is not judged to the end", where=where)
            for number, step in enumerate(steps[:-1], start=1):
                yield from _step_judgements(procedure_id, number, step)


def _step_judgements(procedure_id: str, number: int, step: dict[str, Any]) -> Iterator[SchemataJudgement]:
    for entity, attributes in step.items():
        for attribute, code in attributes:
            name = attribute.strip()
            if name:  # a judge with nothing to add left an empty line
                yield SchemataJudgement(procedure_id, number, entity, name, _VERDICTS[code])


def expansion_judgements() -> Iterator[ExpansionJudgement]:
    """The paraphrases of every entity and attribute cluster of twenty procedures, judged."""
    folder = "v2.0/data/over_generate_relevance_annotation"
    document, where = file_catalogue.document("openpi2", f"{folder}/v4-entity-annotation.json")
    with wrong_shape_is_input_error("not OpenPI2.0's judgements on expansions", where):
        for procedure_id, value in document.items():
            for cluster in value["annotation"].values():
                added = cluster["overgenerate_cluster"]
                yield ExpansionJudgement(procedure_id, "entities", len(added), len(cluster["bad_overgenerate"]))
    document, where = file_catalogue.document("openpi2", f"{folder}/v4-attribute-annotation.json")
    with wrong_shape_is_input_error("not OpenPI2.0's judgements on expansions", where):
        for procedure_id, value in document.items():
            for entity in value["annotation"].values():
                for cluster in entity["attribute_annotation"]:
                    added = cluster["attribute_overgenerate"]
                    yield ExpansionJudgement(procedure_id, "attributes", len(added), len(cluster["bad_overgenerate"]))
