"""fluents expand"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from fluents.cli.canonicalise import Counter, clusters_view
from fluents.cli.models import ModelChoice, open_model
from fluents.cli.options import changed, with_options
from fluents.cli.output import messages, step_progress
from fluents.cli.resuming import Destination, TraceFile, each_trace
from fluents.cli.unread import Unread, telling_unread
from fluents.errors import InputError
from fluents.records import Trace
from fluents.report.terminal import plain

if TYPE_CHECKING:
    from fluents.canonicalisation.expansion import Thesaurus

Make: TypeAlias = "Callable[[Counter], Thesaurus]"


@with_options
def expand(
    file: TraceFile = "-",
    vocabulary: Annotated[
        str | None, typer.Option(help="Offline: take names near in meaning from this dataset's split or file.")
    ] = None,
    near: Annotated[
        float | None, typer.Option(min=0, max=1, help="Offline: how alike a name must be; 0.5 if left out.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, max=50, help="New names for a cluster, at most.")] = 5,
    *,
    to: Destination,
    choice: ModelChoice,
) -> None:
    """Add other names for each entity and attribute, marked as expansions, so that evaluation is fair to paraphrases.

    From a language model, or offline from the words of a dataset you have.

    Example: `fluents expand named.jsonl --vocabulary openpi:train -o expanded.jsonl`

    Example: `fluents expand named.jsonl --base-url http://127.0.0.1:8080/v1 --model NAME -o expanded.jsonl`
    """
    if (vocabulary is None) == (choice.model is None and choice.from_record is None):
        raise InputError(
            "names come either from a vocabulary or from a model",
            fix="give --vocabulary openpi:train, or --model NAME",
        )
    foreign = [option for option in changed(choice) if option != "--base-url"]  # which may come from the environment
    if vocabulary is not None and foreign:
        raise InputError(f"{foreign[0]} is for names from a model", fix="leave it out, or --vocabulary")
    if near is not None and vocabulary is None:
        raise InputError("--near is for --vocabulary", fix="leave it out")
    with _thesaurus(vocabulary, near, choice) as make, telling_unread() as unread:
        each_trace(file, partial(_expanded, make=make, most=most, unread=unread), clusters_view, to)


def _expanded(trace: Trace, make: Make, most: int, unread: Unread) -> Trace:
    from fluents.canonicalisation.expansion import REASON
    from fluents.canonicalisation.expansion import expand as with_expansions

    with step_progress(trace.procedure.goal or trace.id, 0) as on_answer:
        done = with_expansions(trace, make(on_answer), most)
    unread.add(reject.reason for reject in done.rejects if reject.reason.startswith(REASON))
    return done


@contextmanager
def _thesaurus(vocabulary: str | None, near: float | None, choice: ModelChoice) -> Iterator[Make]:
    """What makes the thesaurus, told whom to tell how far it is."""
    from fluents.canonicalisation.expansion import NEAR, AskedNames, Neighbours
    from fluents.cli.sources import Source

    if vocabulary is not None:
        with messages.status(plain(f"reading the words of {vocabulary}")):
            neighbours = Neighbours(Source(vocabulary).traces(), vocabulary, NEAR if near is None else near)
        yield lambda _: neighbours
        return
    with open_model(choice) as model:
        called = choice.model or "recorded model"
        yield lambda on_answer: AskedNames(model, called, choice.workers, on_answer, choice.max_tokens)
