"""The released judgements: what their codes mean, and errors on other files."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fluents.data import file_catalogue
from fluents.data.human_judgements import (
    ExpansionJudgement,
    SchemataJudgement,
    expansion_judgements,
    schemata_judgements,
)
from fluents.errors import InputError, UnknownNameError


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stands in for the published files, one after the other."""

    def serve(*values: object) -> None:
        given = iter(values)
        monkeypatch.setattr(file_catalogue, "document", lambda *_: (next(given), "judgements.json"))

    return serve


def test_codes_become_verdicts(document: Any) -> None:
    """Lines a judge left empty under "missing" are nothing; a prediction left without a verdict is told of."""
    cup = [["heat", "1"], ["size", "2"], ["mood", "3"], ["age", ""], [" place", 100], ["", 100]]
    document({"7": [{"cup": cup}, {}, "annotated"]})
    assert list(schemata_judgements("davinci")) == [
        SchemataJudgement("7", 1, "cup", "heat", "correct"),
        SchemataJudgement("7", 1, "cup", "size", "no change"),
        SchemataJudgement("7", 1, "cup", "mood", "nonsense"),
        SchemataJudgement("7", 1, "cup", "age", "unjudged"),
        SchemataJudgement("7", 1, "cup", "place", "missing"),
    ]


def test_expansions_are_counted_by_cluster(document: Any) -> None:
    entity = {"overgenerate_cluster": ["mug", "bowl"], "bad_overgenerate": ["bowl"]}
    attribute = {"attribute_overgenerate": ["warmth"], "bad_overgenerate": []}
    document(
        {"7": {"annotation": {"cup": entity}}}, {"7": {"annotation": {"cup": {"attribute_annotation": [attribute]}}}}
    )
    assert list(expansion_judgements()) == [
        ExpansionJudgement("7", "entities", 2, 1),
        ExpansionJudgement("7", "attributes", 1, 0),
    ]


@pytest.mark.parametrize(
    "value", [[], {"7": []}, {"7": [{"cup": [["heat", "9"]]}, "annotated"]}, {"7": [{"cup": "heat"}, "annotated"]}]
)
def test_another_shape_is_an_input_error(document: Any, value: object) -> None:
    document(value)
    with pytest.raises(InputError):
        list(schemata_judgements("davinci"))


def test_a_procedure_not_judged_to_the_end_is_refused(document: Any) -> None:
    document({"7": [{"cup": [["heat", "1"]]}]})
    with pytest.raises(InputError, match="'7' are incomplete"):
        list(schemata_judgements("gpt-3.5"))


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"davinci, gpt-3\.5"):
        list(schemata_judgements("gpt-9"))


@pytest.mark.usefixtures("mirror")
def test_every_released_judgement_is_read() -> None:
    for model, procedures, judged in (("davinci", 20, 439), ("gpt-3.5", 22, 506)):
        read = list(schemata_judgements(model))
        verdicts = Counter(judgement.verdict for judgement in read)
        assert len({judgement.procedure_id for judgement in read}) == procedures
        assert len(read) - verdicts["missing"] == judged
    read_expansions = list(expansion_judgements())
    assert Counter(one.kind for one in read_expansions) == {"entities": 104, "attributes": 250}
