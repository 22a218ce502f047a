"""Every help screen names the terms that it uses, and the screen of `fluents` explains them."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from fluents.cli import app, conventional
from fluents.cli.terms import TERMS, glossary, pointer


def test_the_screen_of_fluents_explains_every_term() -> None:
    told = glossary("Terms:")
    assert told.startswith("Terms:\n\n- **")
    assert told.count("**") == 2 * len(TERMS)


def test_a_screen_names_the_terms_that_it_uses_and_no_others() -> None:
    told = pointer("Download the model from an endpoint. Write traces.")
    assert told == "Explained in `fluents --help`: Trace; Endpoint."


def test_a_text_without_terms_points_nowhere() -> None:
    assert pointer("Print the version.") == ""


def _screens(command: Any, path: str) -> dict[str, Any]:
    found = {path: command}
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            found |= _screens(inner, f"{path} {name}")
    return found


SCREENS = _screens(conventional(typer.main.get_command(app)), "fluents")


@pytest.mark.parametrize("path", SCREENS)
def test_help_of_options_is_a_sentence(path: str) -> None:
    command = SCREENS[path]
    assert command.help
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            assert parameter.help.endswith((".", ")")), parameter.name


def test_usage_shows_arguments_without_braces() -> None:
    command = SCREENS["fluents track"]
    assert "FILES..." in command.get_usage(typer.Context(command, info_name="track"))
    assert "{" not in command.get_usage(typer.Context(command, info_name="track"))
