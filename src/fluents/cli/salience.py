"""fluents salience, and --min-salience and --top of every command that shows or scores traces"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fluents.cli.model_options import AnswerProgress, ModelOptions, model_unless, report_parse_failures
from fluents.cli.options import with_options
from fluents.cli.output import OutputOptions, TraceFile, each_trace, tell
from fluents.errors import InputError
from fluents.records import Trace
from fluents.report.terminal import counted

if TYPE_CHECKING:
    from fluents.salience.filter import Keep


@dataclass(frozen=True)
class Salient:
    """Each field is an option."""

    min_salience: Annotated[
        float | None, typer.Option(metavar="X", min=0, max=5, help="Minimum salience of an entity.")
    ] = None
    top: Annotated[int | None, typer.Option(metavar="N", min=1, help="Keep the N most salient entities.")] = None

    @property
    def keep(self) -> Keep | None:
        """What to keep; None for everything."""
        from fluents.salience.filter import Keep

        return None if self.min_salience is None and self.top is None else Keep(self.min_salience, self.top)

    def only(self, trace: Trace, *, report: bool = False) -> Trace:
        """The trace with its salient entities only; can report where nothing is left."""
        wanted = self.keep
        if wanted is None:
            return trace
        from fluents.salience.filter import keep_salient

        left = keep_salient(trace, wanted)
        if report and trace.changes and not left.changes:
            lost = counted(len(trace.changes), "change")
            tell(f"{trace.id}: no entity is salient enough; left out {lost}")
        return left


@dataclass(frozen=True)
class ScoredSalient(Salient):
    """Likewise, for a score, where gold and predictions may have different raters."""

    salience_rater: Annotated[
        str | None, typer.Option(help="Rater whose ratings decide, such as A1; the built-in rater rates the rest.")
    ] = None

    @property
    def keep(self) -> Keep | None:
        wanted = super().keep
        if wanted is None and self.salience_rater is not None:
            raise InputError("`salience_rater` needs `min_salience` or `top`", fix="add one of them")
        return None if wanted is None else replace(wanted, rater=self.salience_rater)


@with_options
def salience(
    file: TraceFile = "-",
    scope: Annotated[
        Literal["global", "local", "both"], typer.Option(help="Rate for the goal, for each step, or both.")
    ] = "both",
    method: Annotated[Literal["offline", "prompted"], typer.Option(help="Built-in model, or a language model.")] = (
        "offline"
    ),
    form: Annotated[
        Literal["paper", "likert"] | None,
        typer.Option(help="Prompted: OpenPI2.0's short question (default), or its annotators' criteria."),
    ] = None,
    *,
    to: OutputOptions,
    options: ModelOptions,
) -> None:
    """Rate how much each entity matters, to the goal and in each step: 1 to 5, and 0 for irrelevant.

    Ctrl-C keeps finished procedures; `--resume` continues, and answers are cached.

    Example: `fluents track soup.md | fluents salience -o rated.jsonl`

    Example: `fluents salience soup.jsonl --method prompted --base-url http://127.0.0.1:8080/v1 --model NAME`
    """
    from fluents.report.terminal import salience_view
    from fluents.salience import open_rater, rate_salience
    from fluents.salience.rater import parse_failures

    progress = AnswerProgress()
    with (
        model_unless(method == "offline", options, progress, "--method prompted") as model,
        open_rater(method, form=form, model=model) as rater,
        report_parse_failures("ratings without a value") as failures,
    ):

        def work(trace: Trace) -> Trace:
            with progress.of(trace):
                done = rate_salience(trace, rater, scope=scope)
            failures.extend(parse_failures(done, rater.name))
            return done

        settings = {"scope": scope, "method": method, "form": form, "model": options.model}
        each_trace(file, work, partial(salience_view, rater=rater.name), to, settings)
