"""fluents salience"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from fluents.cli.command import OutputOptions, TraceFile, each_trace, with_options
from fluents.cli.model_options import AnswerProgress, ModelOptions, model_unless, report_parse_failures
from fluents.records import Trace


@with_options
def salience(
    file: TraceFile = "-",
    scope: Annotated[
        Literal["global", "local", "both"],
        typer.Option(
            help="What to rate: global (how much an entity matters to the goal), local (how much it matters in each "
            "step), or both."
        ),
    ] = "both",
    method: Annotated[
        Literal["offline", "prompted"],
        typer.Option(
            help="offline: use the built-in method, without a language model. prompted: use the language model given "
            "by --model."
        ),
    ] = ("offline"),
    form: Annotated[
        Literal["paper", "likert"] | None,
        typer.Option(
            help="With --method prompted: the prompt to use. paper: a short prompt, like that of OpenPI2.0. "
            "likert: a prompt with the criteria that the annotators of OpenPI2.0 followed. Default: paper."
        ),
    ] = None,
    *,
    to: OutputOptions,
    options: ModelOptions,
) -> None:
    """Rate the salience of each entity: how much it matters to the goal and in each step, from 0 (not at all) to 5.

    Example: `fluents track soup.md | fluents salience -o rated.jsonl`

    Example: `fluents salience soup.jsonl --method prompted --base-url http://127.0.0.1:8080/v1 --model NAME`
    """
    from fluents.report.terminal import salience_view
    from fluents.salience import open_rater, rate_salience
    from fluents.salience.rater import parse_failures

    progress = AnswerProgress()
    with (
        model_unless(method == "offline", options, progress, "with --method prompted") as model,
        open_rater(method, form=form, model=model) as rater,
        report_parse_failures("these ratings have no value in the output") as failures,
    ):

        def work(trace: Trace) -> Trace:
            with progress.of(trace):
                done = rate_salience(trace, rater, scope=scope)
            failures.extend(parse_failures(done, rater.name))
            return done

        settings = {"scope": scope, "method": method, "form": form, "model": options.model}
        each_trace(file, work, partial(salience_view, rater=rater.name), to, settings)
