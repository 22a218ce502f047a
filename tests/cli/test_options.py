"""Options that belong together are one value in the code and single options on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from fluents.cli.options import changed, with_options


@dataclass(frozen=True)
class Oven:
    heat: Annotated[int, typer.Option(min=0, help="Degrees.")] = 180
    fan_on: Annotated[bool, typer.Option("--fan/--no-fan")] = False


SEEN: list[tuple[str, Oven]] = []


@with_options
def bake(dish: str, *, oven: Oven) -> None:
    """Bake something."""
    SEEN.append((dish, oven))


def run(*arguments: str) -> int:
    app = typer.Typer()
    app.command()(bake)
    return CliRunner().invoke(app, arguments).exit_code


def test_fields_become_options_and_come_back_as_one_value() -> None:
    assert run("cake", "--heat", "200", "--fan") == 0
    assert run("cake") == 0
    assert SEEN[-2:] == [("cake", Oven(200, True)), ("cake", Oven())]
    assert run("cake", "--heat", "-1") == 2, "the limits of a field hold"


def test_what_was_changed_is_known_by_its_option() -> None:
    assert changed(Oven()) == []
    assert changed(Oven(heat=1, fan_on=True)) == ["--heat", "--fan-on"]
