"""Human judgements in OpenPI2.0: on the schemata two models predicted, and on paraphrases added to clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from fluents.data import file_catalogue
from fluents.errors import InputError, UnknownNameError
from fluents.jsonl import wrong_shape_is_input_error

MODELS = {"davinci": "davinci", "gpt-3.5": "chatgpt"}
"""Names of the models here → in the files."""

_VERDICTS = {"1": "correct", "2": "no change", "3": "nonsense", "": "unjudged", 100: "missing"}
_DONE = "annotated"


class SchemataJudgement(NamedTuple):
    procedure_id: str
    step: int
    entity: str
    attribute: str
    verdict: str
    """ "correct", "no change", "nonsense" or "unjudged" for a predicted pair; "missing" for one the judge added."""


class ExpansionJudgement(NamedTuple):
    procedure_id: str
    kind: str
    """ "entities" or "attributes"."""
    paraphrases: int
    """Number added to one cluster; `wrong` is the number of wrong ones among them."""
    wrong: int


def schemata_judgements(model: str) -> Iterator[SchemataJudgement]:
    """Judgements on each predicted (entity, attribute) of about twenty procedures, and on missing ones."""
    if model not in MODELS:
        raise UnknownNameError(f"no judgements on {model!r}", fix=f"one of: {', '.join(MODELS)}")
    document, where = file_catalogue.document("openpi2", f"v2.0/error_analysis/{MODELS[model]}_schema_analysis.json")
    with wrong_shape_is_input_error("not OpenPI2.0's error analysis", where):
        for procedure_id, steps in document.items():
            if steps[-1] != _DONE:
                raise InputError(f"the judgements on procedure {procedure_id!r} are incomplete", where=where)
            for number, step in enumerate(steps[:-1], start=1):
                yield from _step_judgements(procedure_id, number, step)


def _step_judgements(procedure_id: str, number: int, step: dict[str, Any]) -> Iterator[SchemataJudgement]:
    for entity, attributes in step.items():
        for attribute, code in attributes:
            name = attribute.strip()
            if name:  # a judge with nothing to add left an empty line
                yield SchemataJudgement(procedure_id, number, entity, name, _VERDICTS[code])


def expansion_judgements() -> Iterator[ExpansionJudgement]:
    """Judgements on the paraphrases of each entity and attribute cluster of twenty procedures."""
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
