"""Options that belong together as a frozen dataclass, spelled out one by one on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field in the place of each parameter that is a dataclass."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    options = {name: _options(group) for name, group in groups.items()}
    keyword = inspect.Parameter.KEYWORD_ONLY  # so that what has no default may come after what has one
    shown = [
        option
        for name, parameter in signature.parameters.items()
        for option in options.get(name, [parameter.replace(kind=keyword)])
    ]

    def run(**given: Any) -> None:
        choices = {
            name: group(**{option.name: given.pop(option.name) for option in options[name]})
            for name, group in groups.items()
        }
        command(**given, **choices)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    setattr(run, "__signature__", signature.replace(parameters=shown))  # noqa: B010 - mypy knows no such attribute
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def conventional(command: Any, parent: Any = None) -> Any:
    """The command, with help that names values as most tools do (FILE, N, a|b), where typer shows Python's types."""
    context = typer.Context(command, parent=parent, **command.context_settings)
    for inner in getattr(command, "commands", {}).values():
        conventional(inner, context)
    for parameter in command.get_params(context):  # --help is one of them
        if hasattr(parameter, "display_type"):
            _name_value(parameter, context)
    return command


_VALUES = {"bool": "", "str": "TEXT", "int": "N", "float": "X", "path": "PATH", "file": "FILE", "directory": "FOLDER"}


def _name_value(parameter: Any, context: Any) -> None:
    if parameter.param_type_name == "argument":
        parameter.metavar = parameter.metavar or parameter.name.upper()
        parameter.display_type_rich = lambda **_: None
    elif parameter.metavar is None:
        kind = parameter.display_type(context).strip("<>").removeprefix("list[").removesuffix("]")
        parameter.metavar = _VALUES.get(kind.removesuffix(" range"), kind)


def changed(choice: Any) -> list[str]:
    """The options of a group that were not left as they are, as the command line spells them."""
    return [
        "--" + field.name.replace("_", "-") for field in fields(choice) if getattr(choice, field.name) != field.default
    ]
