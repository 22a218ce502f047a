"""A request that does not fit is refused in plain sentences, each with a fix."""

from __future__ import annotations

import os
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from pydantic import BaseModel, ValidationError
from served import Client

from fluents.web.resources import JobGiven, StepsGiven, TextGiven
from fluents.web.trace_resources import CorrectionGiven, PlanGiven
from fluents.web.validation_errors import explained

NOWHERE = "0" * 16
BLANK = {"entity": " ", "attribute": "a", "before": "b", "after": "c"}
NOT_JSON = (
    "the body of the request is not a JSON object",
    "send a JSON object, with the header `Content-Type: application/json`",
)


@pytest.mark.parametrize(
    ("model", "given", "what", "where", "fix"),
    [
        (TextGiven, {}, "`text` is missing", "text", "add it to the request"),
        (TextGiven, {"text": 3}, "`text` must be a text", "text", "give a text in double quotes"),
        (
            CorrectionGiven,
            {"verdict": "edited", "position": 0, "words": BLANK},
            "`entity` is blank",
            "words.entity",
            "give at least one character other than spaces",
        ),
        (
            CorrectionGiven,
            {"verdict": "edited", "position": 0, "words": 1},
            "`words` must be a JSON object",
            "words",
            "give an object: {…}",
        ),
        (
            CorrectionGiven,
            {"verdict": "maybe"},
            "`verdict` has an unknown value",
            "verdict",
            "choose 'right', 'wrong', 'edited', 'added' or 'withdrawn'",
        ),
        (
            CorrectionGiven,
            {"verdict": "wrong"},
            "a correction with the verdict `wrong` must contain position, and nothing else",
            "",
            "see the reference of the API at /api",
        ),
        (TextGiven, {"text": "", "name": "n" * 301}, "`name` is too long", "name", "give at most 300 characters"),
        (StepsGiven, {"steps": []}, "`steps` is too short", "steps", "give at least 1 item"),
        (StepsGiven, {"steps": ["a"] * 1001}, "`steps` is too long", "steps", "give at most 1,000 items"),
        (StepsGiven, {"steps": "a"}, "`steps` must be a list", "steps", "give a list: […]"),
        (
            StepsGiven,
            {"steps": ["a", " "]},
            "item 2 of `steps` is blank",
            "steps.1",
            "give at least one character other than spaces",
        ),
        (JobGiven, {"samples": 0}, "`samples` is too small", "samples", "give a number of at least 1"),
        (JobGiven, {"samples": 1.5}, "`samples` must be a whole number", "samples", "give a whole number"),
        (
            JobGiven,
            {"min_confidence": 2},
            "`min_confidence` is too large",
            "min_confidence",
            "give a number of at most 1",
        ),
        (JobGiven, {"min_confidence": "x"}, "`min_confidence` must be a number", "min_confidence", "give a number"),
        (
            JobGiven,
            {"pot": 1},
            "unknown field: `pot`",
            "pot",
            "check the spelling, or remove it; see the reference of the API at /api",
        ),
        (PlanGiven, {"order": "maybe"}, "`order` must be true or false", "order", "give true or false"),
    ],
)
def test_an_error_says_what_is_wrong_and_how_to_fix_it(
    model: type[BaseModel], given: Any, what: str, where: str, fix: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(given)
    assert explained(caught.value.errors()[0]) == (what, where, fix)


def test_every_error_of_pydantic_can_be_explained() -> None:
    """Also one of a type that has no sentence of its own."""
    found = explained({"type": "url_parsing", "loc": ("body", "x"), "msg": "Input should be a valid URL"})
    assert found == ("Input should be a valid URL", "body.x", "see the reference of the API at /api")


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (b'{"text": "Boil water."}', "application/x-www-form-urlencoded", NOT_JSON),
        (b'{"text": "Boil water."}', "text/plain", NOT_JSON),
        (b"", "application/json", NOT_JSON),
        (b"[]", "application/json", NOT_JSON),
        (
            b'{"text": ',
            "application/json",
            ("the body of the request is not valid JSON: Expecting value", "correct the JSON"),
        ),
    ],
)
def test_a_body_that_is_no_json_object_is_refused_with_the_fix(
    client: Client, content: bytes, kind: str, expected: tuple[str, str]
) -> None:
    """As curl sends it, which calls every body a form unless told otherwise."""
    answer = client.post("/api/v1/documents", content=content, headers={"Content-Type": kind})
    assert answer.status_code == 422
    assert (answer.json()["error"], answer.json()["fix"]) == expected
    assert answer.json()["where"].startswith("body")


def test_an_id_that_is_none_is_explained(client: Client) -> None:
    found = client.call("GET", "/traces/soup", status=422)
    assert found == {
        "error": "`trace_id` is not an id",
        "where": "path.trace_id",
        "fix": "give 16 digits from 0 to 9 and a to f",
    }
