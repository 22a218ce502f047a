"""What the metrics share: alignment of gold and predictions, statistics, scores, resampling."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from fluents.errors import InputError, UnknownNameError

Mode: TypeAlias = Literal["compat", "strict"]
"""compat gives the published evaluator's number, its mistakes included; strict is the same idea done right."""

Level: TypeAlias = Literal["entities", "attributes"]
"""Whose names are clustered."""

Scope: TypeAlias = Literal["global", "local"]
"""Over the whole procedure, or in each step."""


_MAKERS = {"Trace": "`fl.track` or `fl.load`", "Score": "`fl.score`"}


def check_type(name: str, value: object, wanted: type[Any]) -> None:
    """Refuse an argument of another type, such as the name of a file in place of a trace."""
    if not isinstance(value, wanted):
        kind = wanted.__name__
        raise InputError(
            f"`{name}` must be a {kind}, not {type(value).__name__}", fix=f"give a {kind} from {_MAKERS[kind]}"
        )


def check_choice(name: str, value: object, choices: Any) -> None:
    """Refuse a value that is none of a Literal's, naming those there are."""
    known = get_args(choices)
    if value not in known:
        raise UnknownNameError(f"unknown `{name}` {value!r}", fix=f"choose one of: {', '.join(known)}")
