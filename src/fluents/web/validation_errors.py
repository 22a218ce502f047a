"""What is wrong with a request, in sentences for people: pydantic's own are for programmers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fluents.text.names import counted

_REFERENCE = "see the reference of the API at /api"
_WHOLE = ("{name} must be a whole number", "give a whole number")
_NUMBER = ("{name} must be a number", "give a number")
_SWITCH = ("{name} must be true or false", "give true or false")
_OBJECT = ("{name} must be a JSON object", "give an object: {{…}}")
_LONG, _SHORT = "{name} is too long", "{name} is too short"
_LARGE, _SMALL = "{name} is too large", "{name} is too small"
_SENTENCES: Mapping[str, tuple[str, str]] = {
    "missing": ("{name} is missing", "add it to the request"),
    "extra_forbidden": ("unknown field: {name}", f"check the spelling, or remove it; {_REFERENCE}"),
    "string_type": ("{name} must be a text", "give a text in double quotes"),
    "string_too_long": (_LONG, "give at most {characters}"),
    "string_too_short": (_SHORT, "give at least {characters}"),
    "too_long": (_LONG, "give at most {items}"),
    "too_short": (_SHORT, "give at least {items}"),
    "list_type": ("{name} must be a list", "give a list: […]"),
    "greater_than_equal": (_SMALL, "give a number of at least {ge:,}"),
    "greater_than": (_SMALL, "give a number above {gt:,}"),
    "less_than_equal": (_LARGE, "give a number of at most {le:,}"),
    "less_than": (_LARGE, "give a number below {lt:,}"),
    "literal_error": ("{name} has an unknown value", "choose {expected}"),
    "enum": ("{name} has an unknown value", "choose {expected}"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), _SWITCH),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _OBJECT),
}
"""By pydantic's type of the error: what is wrong, and the fix."""
_BODY = ("missing", "dict_type", "model_type", "model_attributes_type")
"""Types that say, of the whole body, that it is no JSON object."""


class Explained(NamedTuple):
    """A validation error, for people."""

    what: str
    where: str
    fix: str


def explained(error: Mapping[str, Any]) -> Explained:
    """One of pydantic's errors."""
    place: Sequence[str | int] = error["loc"]
    what, fix = _sentences(error, place)
    return Explained(what[:500], ".".join(map(str, place))[:200], fix[:500])


def _sentences(error: Mapping[str, Any], place: Sequence[str | int]) -> tuple[str, str]:
    kind, context = error["type"], _context(error.get("ctx", {}))
    if kind == "json_invalid":
        return f"the body of the request is not valid JSON: {context['error']}", "correct the JSON"
    if list(place) == ["body"] and kind in _BODY:
        header = "with the header `Content-Type: application/json`"
        return "the body of the request is not a JSON object", f"send a JSON object, {header}"
    name = _name(place)
    if kind == "string_pattern_mismatch":
        return _of_pattern(name, str(context["pattern"]))
    if kind in _SENTENCES:
        what, fix = _SENTENCES[kind]
        return what.format(name=name, **context), fix.format(name=name, **context)
    return str(error["msg"]).removeprefix("Value error, "), _REFERENCE


def _of_pattern(name: str, pattern: str) -> tuple[str, str]:
    if pattern == r"\S":
        return f"{name} is blank", "give at least one character other than spaces"
    if digits := re.fullmatch(r"\^\[0-9a-f\]\{(\d+)\}\$", pattern):
        return f"{name} is not an id", f"give {digits[1]} digits from 0 to 9 and a to f"
    return f"{name} has the wrong form", f"give a text that matches the regular expression {pattern}"


def _name(place: Sequence[str | int]) -> str:
    """The field as the client calls it; of a list the item, counted from 1."""
    field = next((part for part in reversed(place) if isinstance(part, str)), "body")
    return f"item {place[-1] + 1} of `{field}`" if place and isinstance(place[-1], int) else f"`{field}`"


def _context(given: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that the sentences name: 5 and not 5.0, and a length with its unit."""
    found = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in given.items()
    }
    length = found.get("max_length", found.get("min_length"))
    units = {} if length is None else {f"{unit}s": counted(length, unit) for unit in ("character", "item")}
    return found | units
