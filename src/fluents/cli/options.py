"""Options that belong together as a frozen dataclass, spelled out one by one on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a dataclass replaced by an option for each of its fields."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    own = [parameter for name, parameter in signature.parameters.items() if name not in groups]
    options = {name: _options(group) for name, group in groups.items()}
    shown = [*own, *(option for group in options.values() for option in group)]

    def run(**given: Any) -> None:
        choices = {
            name: group(**{option.name: given.pop(option.name) for option in options[name]})
            for name, group in groups.items()
        }
        command(**given, **choices)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(field.name, keyword, default=field.default, annotation=hints[field.name])
        for field in fields(group)
    ]


def changed(choice: Any) -> list[str]:
    """The options of a group that were not left as they are, as the command line spells them."""
    return [
        "--" + field.name.replace("_", "-") for field in fields(choice) if getattr(choice, field.name) != field.default
    ]
