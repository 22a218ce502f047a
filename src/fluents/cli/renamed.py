"""Commands that have another name now: the old one says so."""

from __future__ import annotations

import typer

from fluents.errors import UnknownNameError


def renamed(app: typer.Typer, old: str, new: str) -> None:
    """Make the command `old` of `app` an error that names the command `new`."""

    def refuse() -> None:
        raise UnknownNameError(f"this command is now `{new}`", fix=f"{new} --help")

    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(old, hidden=True, context_settings=anything)(refuse)
