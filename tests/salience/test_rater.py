"""Raters by name: what opens them, and parameters that would be ignored."""

from __future__ import annotations

from typing import Any

import pytest

from faulty_server import FaultyServer
from fluents.errors import InputError, UnknownNameError
from fluents.llm import LanguageModel
from fluents.records import Procedure, StateChange, Trace
from fluents.salience import open_rater, rate_salience
from scripted import Script

TRACE = Trace(
    procedure=Procedure(id="tea", goal="Make tea", steps=("Boil water.",)),
    changes=(StateChange(step=1, entity="water", attribute="heat", before="cold", after="hot"),),
)


def test_a_model_by_its_name_and_address_rates_in_one_line() -> None:
    with FaultyServer(lambda body: "4") as server:  # noqa: ARG005
        rated = rate_salience(TRACE, "prompted", form="likert", model="parrot", base_url=server.base_url)
    assert {(one.rater, one.value) for one in rated.salience} == {("parrot, likert", 4)}


def test_an_open_model_and_an_open_rater_are_used_as_they_are() -> None:
    model = LanguageModel(Script(lambda _: "3"), "script")
    with open_rater("prompted", model=model) as rater:
        rated = rate_salience(TRACE, rater, scope="global")
    assert rated == rate_salience(TRACE, "prompted", model=model, scope="global")
    assert [one.rater for one in rated.salience] == ["script"]


@pytest.mark.parametrize(
    ("given", "error", "what"),
    [
        ({"model": "x"}, InputError, "`model` works only with `method` prompted"),
        ({"form": "likert"}, InputError, "`form` works only with `method` prompted"),
        ({"method": "prompted"}, InputError, "no language model given"),
        ({"method": "oracle"}, UnknownNameError, "one of: offline, prompted"),
        ({"scope": "some"}, UnknownNameError, "one of: global, local, both"),
    ],
)
def test_what_is_wrong_is_an_error_that_names_the_parameter(given: Any, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        rate_salience(TRACE, **given)


def test_a_form_that_is_none_is_told() -> None:
    poem: Any = "poem"
    with pytest.raises(UnknownNameError, match="one of: paper, likert"):
        rate_salience(TRACE, "prompted", form=poem, model=LanguageModel(Script(str), "script"))
