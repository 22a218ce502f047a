"""fluents canonicalise | expand"""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.console import RenderableType

from fluents.cli.command import OutputOptions, TraceFile, each_trace, tell, with_options
from fluents.cli.model_options import AnswerProgress, ModelOptions, model_unless, report_parse_failures
from fluents.errors import InputError
from fluents.records import Trace
from fluents.report.terminal import plain


@with_options
def canonicalise(
    file: TraceFile = "-",
    method: Annotated[
        Literal["offline", "prompted", "verified"],
        typer.Option(
            help="How to cluster names. offline: with the built-in method, without a language model. prompted: "
            "with the language model given by --model. verified: with the built-in method, but the language model "
            "checks doubtful pairs of entity names."
        ),
    ] = "offline",
    pairs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="With --method verified: let the language model check at most N pairs of entity names per trace. "
            "Default: 20.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="With --method prompted: ask N times for the clusters of entities, and combine the answers by a vote. "
            "Default: 5.",
        ),
    ] = None,
    attribute_runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="With --method prompted: ask N times for the clusters of attributes, and combine the answers by a "
            "vote. Default: 3.",
        ),
    ] = None,
    examples: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="With --method prompted: take few-shot examples from SOURCE, a file of traces or a dataset split. "
            "Default: three examples that come with fluents.",
        ),
    ] = None,
    shots: Annotated[
        int | None,
        typer.Option(
            min=1, max=20, help="Number of few-shot examples in each prompt; requires --examples. Default: 3."
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="If a trace already has clusters, replace them. Default: keep them.")
    ] = False,
    *,
    to: OutputOptions,
    options: ModelOptions,
) -> None:
    """Find names for the same entity or attribute, join them into clusters, and choose one name for each cluster.

    For example, “pan” and “the frying pan” can be two names of one entity. The command adds the clusters to each trace.
    The changes keep their wording.

    Example: `fluents track soup.md | fluents canonicalise -o named.jsonl`

    Example: `fluents canonicalise soup.jsonl --method prompted --base-url http://127.0.0.1:8080/v1 --model NAME`
    """
    from fluents.canonicalisation import canonicalise as canonicalised
    from fluents.canonicalisation import open_method
    from fluents.canonicalisation.clusters import parse_failures

    progress = AnswerProgress()
    with (
        model_unless(method == "offline", options, progress, "with --method prompted or verified") as model,
        open_method(
            method, model=model, runs=runs, attribute_runs=attribute_runs, examples=examples, shots=shots, pairs=pairs
        ) as opened,
        report_parse_failures() as failures,
    ):

        def work(trace: Trace) -> Trace:
            if trace.clusters and not again:
                tell(f"{trace.id}: kept its existing clusters (--again replaces them)", "dim")
                return trace
            with progress.of(trace):
                done = canonicalised(trace, opened)
            failures.extend(parse_failures(done))
            return done

        settings = {"method": method, "model": options.model, "pairs": pairs, "again": again}
        settings |= {"runs": runs, "attribute_runs": attribute_runs, "examples": examples, "shots": shots}
        each_trace(file, work, clusters_view, to, settings)


@with_options
def expand(
    file: Annotated[
        str,
        typer.Argument(
            help="Traces, as written by `fluents canonicalise`: a file, a dataset split such as openpi2:dev, or - for "
            "standard input."
        ),
    ] = "-",
    vocabulary: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Take the paraphrases from the names in SOURCE (a file of traces or a dataset split), instead of "
            "from a language model.",
        ),
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="With --vocabulary: minimum similarity between a name and its paraphrase, from 0 to 1. Default: 0.5.",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, max=50, help="Maximum number of paraphrases per entity or attribute.")
    ] = 5,
    *,
    to: OutputOptions,
    options: ModelOptions,
) -> None:
    """Add paraphrases to traces: other names for their entities and attributes.

    If you add paraphrases to the gold, `fluents eval schemata` and `fluents eval complete` also accept predictions that
    use these paraphrases.

    Before you add paraphrases, run `fluents canonicalise` on the traces: it joins names for the same entity or
    attribute into clusters. The paraphrases come from a language model (--model), or from the names in a dataset
    (--vocabulary).

    Example: `fluents expand named.jsonl --vocabulary openpi:train -o expanded.jsonl`

    Example: `fluents expand named.jsonl --base-url http://127.0.0.1:8080/v1 --model NAME -o expanded.jsonl`
    """
    from fluents.canonicalisation import expand as expanded
    from fluents.canonicalisation import open_thesaurus
    from fluents.canonicalisation.expansion import parse_failures

    if vocabulary is None and options.model is None:
        raise InputError("a source of paraphrases is required", fix="give --vocabulary openpi:train, or --model NAME")
    progress = AnswerProgress()
    with (
        model_unless(vocabulary is not None, options, progress, "without --vocabulary") as model,
        open_thesaurus(vocabulary, near=near, model=model) as thesaurus,
        report_parse_failures() as failures,
    ):

        def work(trace: Trace) -> Trace:
            with progress.of(trace):
                done = expanded(trace, thesaurus, most)
            failures.extend(parse_failures(done))
            return done

        settings = {"vocabulary": vocabulary, "near": near, "most": most, "model": options.model}
        each_trace(file, work, clusters_view, to, settings)


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
