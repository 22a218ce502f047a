"""Every help screen explains the terms that it uses, and no others."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from fluents.cli import app
from fluents.cli.command import conventional
from fluents.cli.terms import TERMS, glossary


def test_only_terms_that_occur_are_explained() -> None:
    told = glossary("Terms:", "Download the model from an endpoint.")
    assert told.startswith("Terms:\n\n- **Endpoint**: ")
    assert told.count("**") == 2


def test_terms_in_an_explanation_are_explained_too() -> None:
    told = glossary("Terms:", "A trace.")
    assert [term.name for term in TERMS if f"**{term.name}**" in told] == ["Procedure", "Change", "Trace"]


def test_a_text_without_terms_gets_no_heading() -> None:
    assert glossary("Terms:", "Print the version.") == ""


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
