"""Procedures through a tracker, with a progress bar: one by one, or several underway at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import typer

from fluents.cli.output import step_progress
from fluents.records import Procedure, Trace
from fluents.trackers import Tracker

Run: TypeAlias = Callable[[Iterable[Procedure]], Iterator[Trace]]
"""What a tracker's options make: procedures in, their traces out, in order and as they are done."""


@dataclass(frozen=True)
class SamplingOptions:
    """How answers are drawn, whichever tracker draws them. Each field is an option."""

    max_changes: Annotated[int | None, typer.Option(min=1, help="At most so many changes a step: fewer are surer.")] = (
        None
    )
    samples: Annotated[
        int | None, typer.Option(min=1, help="Answers drawn and agreed on: more are better, slower.")
    ] = None
    seed: Annotated[int, typer.Option(help="The same seed gives the same answer.")] = 1


def one_by_one(tracker: Tracker, wanted: Iterable[Procedure]) -> Iterator[Trace]:
    for procedure in wanted:
        with step_progress(procedure.goal or procedure.id, len(procedure.steps)) as on_step:
            trace = tracker.track(procedure, on_step)
        yield trace


def at_once(tracker: Tracker, count: int, wanted: Iterable[Procedure]) -> Iterator[Trace]:
    from fluents.trackers.concurrent import side_by_side

    for underway in side_by_side(tracker, wanted, count):
        procedure = underway.procedure
        with step_progress(procedure.goal or procedure.id, len(procedure.steps)) as on_step:
            trace = underway.trace(on_step)
        yield trace
