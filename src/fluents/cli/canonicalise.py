"""fluents canonicalise"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from rich.console import RenderableType

from fluents.cli.models import ModelChoice, open_model
from fluents.cli.options import with_options
from fluents.cli.output import messages, step_progress
from fluents.cli.resuming import Destination, TraceFile, each_trace
from fluents.errors import InputError
from fluents.records import Trace
from fluents.report.terminal import plain

if TYPE_CHECKING:
    from fluents.canonicalise.clusters import Method

Counter: TypeAlias = Callable[[int, int], None]
Make: TypeAlias = "Callable[[Counter], Method]"


@with_options
def canonicalise(
    file: TraceFile = "-",
    method: Annotated[
        Literal["offline", "prompted", "verified"],
        typer.Option(help="Built in; or a language model; or built in, and a model asked where it is unsure."),
    ] = "offline",
    runs: Annotated[int, typer.Option(min=1, max=100, help="Prompted: answers on entities, put to the vote.")] = 5,
    attribute_runs: Annotated[int, typer.Option(min=1, max=100, help="Prompted: answers on attributes.")] = 3,
    pairs: Annotated[int, typer.Option(min=1, max=1000, help="Verified: at most so many pairs are asked about.")] = 20,
    again: Annotated[bool, typer.Option("--again", help="Make clusters anew where there are some already.")] = False,
    *,
    to: Destination,
    choice: ModelChoice,
) -> None:
    """Find one name for each entity and each attribute; the words of the changes stay, and stand beside it.

    Ctrl-C keeps the procedures that are done; `--resume` goes on, and answers are kept in a cache.

    Example: `fluents track soup.md | fluents canonicalise -o named.jsonl`
    """
    if method == "offline" and choice.model is not None:
        raise InputError("--model is for --method prompted or verified", fix="name the method, or leave --model out")
    with _method(method, choice, (runs, attribute_runs), pairs) as make:
        each_trace(file, partial(_canonical, make=make, again=again), clusters_view, to)


def _canonical(trace: Trace, make: Make, again: bool) -> Trace:
    from fluents.canonicalise.clusters import canonicalise as clustered

    if trace.clusters and not again:
        messages.print(plain(f"{trace.id} has clusters, which are kept (--again makes new ones)", "dim"))
        return trace
    with step_progress(trace.procedure.goal or trace.id, 0) as on_answer:
        return clustered(trace, make(on_answer))


@contextmanager
def _method(name: str, choice: ModelChoice, runs: tuple[int, int], pairs: int) -> Iterator[Make]:
    """What makes the method, told whom to tell how far it is."""
    if name == "offline":
        from fluents.canonicalise.offline import Offline

        offline = Offline()
        yield lambda _: offline
        return
    from fluents.canonicalise.prompted import Asking, Prompted
    from fluents.canonicalise.verified import Verified, Verifying

    called = choice.model or "recorded model"
    with open_model(choice) as model:

        def make(on_answer: Counter) -> Method:
            if name == "verified":
                return Verified(Verifying(model, called, pairs, choice.workers, on_answer))
            return Prompted(Asking(model, called, *runs, workers=choice.workers, on_answer=on_answer))

        yield make


def clusters_view(trace: Trace) -> RenderableType:
    """Every entity with its names and its attributes."""
    from rich.console import Group
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("entity", "also called", "attributes"):
        table.add_column(heading, overflow="fold")
    for cluster in trace.clusters:
        attributes = "; ".join(" = ".join((*one.mentions, *_marked(one.expansions))) for one in cluster.attributes)
        others = [name for name in cluster.mentions if name != cluster.name]
        table.add_row(plain(cluster.name), plain(", ".join([*others, *_marked(cluster.expansions)])), plain(attributes))
    return Group(plain(trace.procedure.goal or trace.id, "bold"), table)


def _marked(expansions: tuple[str, ...]) -> list[str]:
    return [f"({name})" for name in expansions]
