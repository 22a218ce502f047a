"""Options that belong together are one value in the code and single options on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from fluents.cli.command import changed, with_options


@dataclass(frozen=True)
class Oven:
    heat: Annotated[int, typer.Option(min=0, help="Degrees.")] = 180
    fan_on: Annotated[bool, typer.Option("--fan/--no-fan")] = False


SEEN: list[tuple[str, Oven]] = []


@with_options
def bake(dish: str, *, oven: Oven) -> None:
    """Bake something."""
    SEEN.append((dish, oven))


def run(*arguments: str, command: Callable[..., None] = bake) -> int:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, arguments).exit_code


def test_fields_become_options_and_come_back_as_one_value() -> None:
    assert run("cake", "--heat", "200", "--fan") == 0
    assert run("cake") == 0
    assert SEEN[-2:] == [("cake", Oven(200, True)), ("cake", Oven())]
    assert run("cake", "--heat", "-1") == 2, "the limits of a field hold"


@dataclass(frozen=True)
class Guests:
    count: Annotated[int, typer.Option()]
    late: Annotated[bool, typer.Option("--late")] = False


@with_options
def invite(guests: Guests, day: str = "today", *, oven: Oven) -> None:
    """Ask people over."""
    SEEN.append((f"{guests.count} {day}", oven))


def test_a_group_stands_where_it_is_named_and_a_field_without_default_is_required() -> None:
    assert list(inspect.signature(invite).parameters) == ["count", "late", "day", "heat", "fan_on"]
    assert run("--day", "monday", command=invite) == 2
    assert run("--day", "monday", "--count", "3", command=invite) == 0
    assert SEEN[-1] == ("3 monday", Oven())


def test_what_was_changed_is_known_by_its_option() -> None:
    assert changed(Oven()) == []
    assert changed(Oven(heat=1, fan_on=True)) == ["--heat", "--fan-on"]
