"""fluents eval salience | agreement | judgements"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from fluents.cli.command import AsJson, tell, with_options
from fluents.cli.scoring import Gold, Sides, run, show_evaluation
from fluents.errors import InputError
from fluents.scoring import Scope
from fluents.text.names import counted


@with_options
def salience(
    sides: Sides,
    reference: Annotated[str, typer.Option(metavar="NAME", help="Rater in the gold to compare with.")] = "A1",
    rater: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Rater in the predictions. Required if the predictions have several raters."),
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a plot of the correlations to FILE, as SVG.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Correlate salience ratings with those of an annotator, as OpenPI2.0 does (2024).

    Also shows this correlation for all other raters in the gold.

    Example: `fluents eval salience --gold openpi2:dev --pred rated.jsonl --rater offline-1 --plot raters.svg`
    """
    found = run("salience", sides, as_json, reference=reference, rater=rater)
    if plot is not None:
        from fluents.jsonl import write_text
        from fluents.report.plots import raters_plot

        write_text(plot, raters_plot(found.gold, found.raters, reference))
        tell(f"wrote {plot}")


def agreement(
    gold: Gold,
    pred: Annotated[
        str | None,
        typer.Option("--pred", metavar="FILE", help="Also compare the raters in FILE, such as a language model."),
    ] = None,
    raters: Annotated[
        str | None, typer.Option(metavar="LIST", help="Raters to compare, separated by commas. Default: all.")
    ] = None,
    level: Annotated[
        Literal["nominal", "ordinal", "interval"],
        typer.Option(help="Level of measurement for Krippendorff's alpha: nominal, ordinal or interval."),
    ] = "ordinal",
    scope: Annotated[
        Scope, typer.Option(help="Ratings to compare: global (for the goal) or local (for each step).")
    ] = "global",
    stage: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="--gold is the history of an annotation project: compare the answers in its stage N.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well salience raters or annotators agree: the share of equal answers, and Krippendorff's alpha.

    Example: `fluents eval agreement --gold openpi2:dev --raters A1,A2`

    Example: `fluents eval agreement --gold soups.history.jsonl --stage 2`
    """
    names = [name.strip() for name in raters.split(",")] if raters else []
    if stage is not None:
        from fluents.annotation.agreement import history_agreement

        if pred is not None:
            raise InputError("`pred` works only without `stage`", fix="leave out `pred` or `stage`")
        show_evaluation(history_agreement(gold, stage, raters=names, scope=scope, level=level), as_json)
        return
    from fluents.evaluation import evaluate

    show_evaluation(evaluate("agreement", gold, pred, raters=names, level=level, scope=scope), as_json)


def judgements(
    source: Annotated[
        str,
        typer.Argument(
            help="Judgements to score: davinci, gpt-3.5 or expansions (from OpenPI2.0), or a form that you filled in. "
            "With --form: the predictions to judge."
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a blank form for the predictions in SOURCE to FILE, as CSV."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute scores from human judgements: those that OpenPI2.0 released, or your own.

    To judge predictions yourself, write a form, mark the hallucinated changes in it, and then score the form.

    Example: `fluents eval judgements davinci`

    Example: `fluents eval judgements mine.jsonl --form form.csv` writes a blank form.

    Example: `fluents eval judgements form.csv` scores the form when you have filled it in.
    """
    from fluents.data.file_formats import read_traces
    from fluents.evaluation import Evaluation
    from fluents.metrics.judgements import judgements as score_judgements
    from fluents.metrics.judgements import write_form

    if form is not None:
        count = write_form(read_traces(source), form)
        tell(f"wrote {counted(count, 'change')} to {form}")
        return
    score = score_judgements(source)
    show_evaluation(Evaluation(score, source, score.intervals() if score.n_procedures > 1 else None), as_json)
