"""fluents canonicalise"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from rich.console import RenderableType

from fluents.cli.models import ModelChoice, open_model
from fluents.cli.options import changed, with_options
from fluents.cli.output import messages, step_progress
from fluents.cli.resuming import Destination, TraceFile, each_trace
from fluents.cli.unread import Unread, telling_unread
from fluents.errors import InputError
from fluents.records import Trace
from fluents.report.terminal import plain

if TYPE_CHECKING:
    from fluents.canonicalisation.clusters import Method
    from fluents.canonicalisation.prompted_method import ShownClusters

Counter: TypeAlias = Callable[[int, int], None]
Make: TypeAlias = "Callable[[Counter], Method]"


@dataclass(frozen=True)
class Prompting:
    """How a language model is asked for clusters. Each field is an option."""

    runs: Annotated[int, typer.Option(min=1, max=100, help="Prompted: answers on entities, put to the vote.")] = 5
    attribute_runs: Annotated[int, typer.Option(min=1, max=100, help="Prompted: answers on attributes.")] = 3
    examples: Annotated[
        str | None,
        typer.Option(help="Prompted: a file or dataset with clusters to draw examples from, instead of three of ours."),
    ] = None
    shots: Annotated[int | None, typer.Option(min=1, max=20, help="Of --examples: so many; 3 if left out.")] = None

    def shown(self) -> ShownClusters | None:
        from fluents.canonicalisation.prompted_method import ShownClusters
        from fluents.cli.sources import Source

        if self.examples is None:
            if self.shots is not None:
                raise InputError("--shots without --examples", fix="name the file or dataset they are drawn from")
            return None
        return ShownClusters(Source(self.examples).traces(), self.shots or 3, source=self.examples)


@with_options
def canonicalise(
    file: TraceFile = "-",
    method: Annotated[
        Literal["offline", "prompted", "verified"],
        typer.Option(help="Built in; or a language model; or built in, and a model asked where it is unsure."),
    ] = "offline",
    pairs: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Verified: at most so many pairs are asked about; 20 if left out."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Make clusters anew where there are some already.")] = False,
    *,
    prompting: Prompting,
    to: Destination,
    choice: ModelChoice,
) -> None:
    """Find one name for each entity and each attribute; the words of the changes stay, and stand beside it.

    Ctrl-C keeps the procedures that are done; `--resume` goes on, and answers are kept in a cache.

    Example: `fluents track soup.md | fluents canonicalise -o named.jsonl`

    Example: `fluents canonicalise soup.jsonl --method prompted --base-url http://127.0.0.1:8080/v1 --model NAME`
    """
    of_models = [option for option in changed(choice) if option != "--base-url"]  # which the environment may give
    if method == "offline" and of_models:
        raise InputError(f"{of_models[0]} is for --method prompted or verified", fix="name the method, or leave it out")
    if method != "prompted" and (foreign := changed(prompting)):
        raise InputError(f"{foreign[0]} is for --method prompted", fix="name the method, or leave it out")
    if method != "verified" and pairs is not None:
        raise InputError("--pairs is for --method verified", fix="name the method, or leave it out")
    with _method(method, choice, prompting, pairs or 20) as make, telling_unread() as unread:
        each_trace(file, partial(_canonical, make=make, again=again, unread=unread), clusters_view, to)


def _canonical(trace: Trace, make: Make, again: bool, unread: Unread) -> Trace:
    from fluents.canonicalisation.clusters import REASON
    from fluents.canonicalisation.clusters import canonicalise as clustered

    if trace.clusters and not again:
        messages.print(plain(f"{trace.id} has clusters, which are kept (--again makes new ones)", "dim"))
        return trace
    with step_progress(trace.procedure.goal or trace.id, 0) as on_answer:
        done = clustered(trace, make(on_answer))
    unread.add(reject.reason for reject in done.rejects if reject.reason.startswith(REASON))
    return done


@contextmanager
def _method(name: str, choice: ModelChoice, prompting: Prompting, pairs: int) -> Iterator[Make]:
    """What makes the method, told whom to tell how far it is."""
    if name == "offline":
        from fluents.canonicalisation.feature_method import FeatureMethod

        offline = FeatureMethod()
        yield lambda _: offline
        return
    from fluents.canonicalisation.prompted_method import Asking, PromptedMethod
    from fluents.canonicalisation.verified_method import VerifiedMethod, Verifying

    called = choice.model or "recorded model"
    shown = prompting.shown()
    with open_model(choice) as model:

        def make(on_answer: Counter) -> Method:
            if name == "verified":
                return VerifiedMethod(Verifying(model, called, pairs, choice.workers, on_answer, choice.max_tokens))
            return PromptedMethod(
                Asking(
                    model,
                    called,
                    prompting.runs,
                    prompting.attribute_runs,
                    workers=choice.workers,
                    on_answer=on_answer,
                    shown=shown,
                    max_tokens=choice.max_tokens,
                )
            )

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
