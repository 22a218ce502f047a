"""fluents expand"""

from __future__ import annotations

from typing import Annotated

import typer

from fluents.cli.canonicalise import clusters_view, model_unless
from fluents.cli.model_options import AnswerProgress, ModelOptions
from fluents.cli.options import with_options
from fluents.cli.output import OutputOptions, TraceFile, each_trace
from fluents.cli.parse_failures import report_parse_failures
from fluents.errors import InputError
from fluents.records import Trace


@with_options
def expand(
    file: TraceFile = "-",
    vocabulary: Annotated[
        str | None, typer.Option(help="Offline: take names near in meaning from this file or dataset.")
    ] = None,
    near: Annotated[
        float | None, typer.Option(min=0, max=1, help="Offline: minimum similarity of a name. Default: 0.5.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of new names per cluster.")] = 5,
    *,
    to: OutputOptions,
    options: ModelOptions,
) -> None:
    """Add other names for each entity and attribute, marked as expansions, so that evaluation is fair to paraphrases.

    From a language model, or offline from the words of a dataset you have.

    Example: `fluents expand named.jsonl --vocabulary openpi:train -o expanded.jsonl`

    Example: `fluents expand named.jsonl --base-url http://127.0.0.1:8080/v1 --model NAME -o expanded.jsonl`
    """
    from fluents.canonicalisation import expand as expanded
    from fluents.canonicalisation import open_thesaurus
    from fluents.canonicalisation.expansion import parse_failures

    if vocabulary is None and options.model is None:
        raise InputError("no source of names", fix="give --vocabulary openpi:train, or --model NAME")
    progress = AnswerProgress()
    with (
        model_unless(vocabulary is not None, options, progress, "names from a model, not from --vocabulary") as model,
        open_thesaurus(vocabulary, near=near, model=model) as thesaurus,
        report_parse_failures() as failures,
    ):

        def work(trace: Trace) -> Trace:
            with progress.of(trace):
                done = expanded(trace, thesaurus, most)
            failures.add(parse_failures(done))
            return done

        settings = {"vocabulary": vocabulary, "near": near, "most": most, "model": options.model}
        each_trace(file, work, clusters_view, to, settings)
