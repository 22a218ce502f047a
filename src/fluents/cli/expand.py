"""fluents expand"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from fluents.cli.canonicalise import Counter, clusters_view
from fluents.cli.models import ModelChoice, open_model
from fluents.cli.options import with_options
from fluents.cli.output import emit, messages, step_progress
from fluents.errors import InputError
from fluents.records import Trace
from fluents.report.terminal import plain

if TYPE_CHECKING:
    from fluents.canonicalise.expansion import Thesaurus

Make: TypeAlias = "Callable[[Counter], Thesaurus]"


@with_options
def expand(
    file: Annotated[str, typer.Argument(help="Traces with clusters: a file, a dataset's split, or -.")],
    choice: ModelChoice,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write JSONL here.")] = None,
    vocabulary: Annotated[
        str | None, typer.Option(help="Offline: take names near in meaning from this dataset's split or file.")
    ] = None,
    near: Annotated[
        float | None, typer.Option(min=0, max=1, help="Offline: how alike a name must be; 0.5 if left out.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, max=50, help="New names for a cluster, at most.")] = 5,
    as_json: Annotated[bool | None, typer.Option("--json/--table", help="JSONL or tables.")] = None,
) -> None:
    """Add other names for each entity and attribute, marked as expansions, so that evaluation is fair to paraphrases.

    From a language model, or offline from the words of a dataset you have.

    Example: `fluents expand named.jsonl --vocabulary openpi:train -o expanded.jsonl`
    """
    from fluents.cli.sources import Source

    if (vocabulary is None) == (choice.model is None and choice.from_record is None):
        raise InputError(
            "names come either from a vocabulary or from a model",
            fix="give --vocabulary openpi:train, or --model NAME",
        )
    if near is not None and vocabulary is None:
        raise InputError("--near is for --vocabulary", fix="leave it out")
    with _thesaurus(vocabulary, near, choice) as make:
        done = (_expanded(trace, make, most) for trace in Source(file).traces())
        emit(done, clusters_view, output, as_json)


def _expanded(trace: Trace, make: Make, most: int) -> Trace:
    from fluents.canonicalise.expansion import expand as with_expansions

    with step_progress(trace.procedure.goal or trace.id, 0) as on_answer:
        return with_expansions(trace, make(on_answer), most)


@contextmanager
def _thesaurus(vocabulary: str | None, near: float | None, choice: ModelChoice) -> Iterator[Make]:
    """What makes the thesaurus, told whom to tell how far it is."""
    from fluents.canonicalise.thesauri import NEAR, AskedNames, Neighbours
    from fluents.cli.sources import Source

    if vocabulary is not None:
        with messages.status(plain(f"reading the words of {vocabulary}")):
            neighbours = Neighbours(Source(vocabulary).traces(), vocabulary, NEAR if near is None else near)
        yield lambda _: neighbours
        return
    with open_model(choice) as model:
        yield lambda on_answer: AskedNames(model, choice.model or "recorded model", choice.workers, on_answer)
