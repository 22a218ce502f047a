"""fluents eval salience | agreement | judgements"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from fluents.cli.command import AsJson, tell, with_options
from fluents.cli.scoring import Sides, run, show_evaluation
from fluents.errors import InputError
from fluents.scoring import Scope
from fluents.text.names import counted


@with_options
def salience(
    sides: Sides,
    reference: Annotated[
        str,
        typer.Option(metavar="NAME", help="Compare with the rater NAME in the gold. A1 is an annotator of OpenPI2.0."),
    ] = "A1",
    rater: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Score the ratings by the rater NAME in the predictions. offline-1 is the built-in method of "
            "`fluents salience`. Required if the predictions have several raters.",
        ),
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a plot of the correlations to FILE, as SVG.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Correlate salience ratings with those of an annotator, as in OpenPI2.0 (2024).

    The command prints Pearson's correlation, from -1 to 1, between the annotator (--reference) and every other rater:
    first the rater in the predictions, then the other raters in the gold. A rater is a person or a program. The rater
    “votes” rates an entity by how often annotators named it.

    The correlation is computed in several ways, for global ratings (for the goal) and for local ratings (for each
    step):

    - smoothed: the mean over procedures. As in the paper, the ratings of both raters get one more value, a 0, in each
      procedure.
    - raw: the mean over procedures, without the additional 0. The column “undefined” counts procedures without a
      correlation.
    - micro: one correlation over the ratings of all procedures
    - micro clamped: like micro, but ratings outside 0 to 5 count as 0

    With --mode strict, only raw and micro are computed, from the ratings in the range 0 to 5. The rows of raw are then
    called “global” and “local”.

    Example: `fluents eval salience --gold openpi2:dev --pred rated.jsonl`

    Example: `fluents eval salience --gold openpi2:dev --pred rated.jsonl --rater offline-1 --plot raters.svg`
    """
    found = run("salience", sides, as_json, reference=reference, rater=rater)
    if plot is not None:
        from fluents.jsonl import write_text
        from fluents.report.plots import raters_plot

        write_text(plot, raters_plot(found.gold, found.raters, reference))
        tell(f"wrote {plot}")


def agreement(
    gold: Annotated[
        str,
        typer.Option(
            "--gold",
            metavar="SOURCE",
            help="Ratings to compare: a dataset split such as openpi2:dev, or a file. With --stage: a history from"
            " `fluents annotate export --format history`.",
        ),
    ],
    pred: Annotated[
        str | None,
        typer.Option("--pred", metavar="FILE", help="Also compare the ratings in FILE, such as those of a model."),
    ] = None,
    raters: Annotated[
        str | None, typer.Option(metavar="LIST", help="Raters to compare, separated by commas. Default: all.")
    ] = None,
    level: Annotated[
        Literal["nominal", "ordinal", "interval"],
        typer.Option(
            help="What alpha compares: nominal (whether ratings are equal), ordinal (their order), or interval "
            "(how far they are apart). With --stage, this option affects only stages that ask for salience ratings."
        ),
    ] = "ordinal",
    scope: Annotated[
        Scope,
        typer.Option(
            help="Salience ratings to compare: global (for the goal) or local (for each step). With --stage, this "
            "option affects only stages that ask for salience ratings."
        ),
    ] = "global",
    stage: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Compare the answers in stage N of an annotation project; requires the history of the project as "
            "--gold.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well raters of salience, or the annotators of a project, agree.

    Prints how often all of them agree (as a share), and Krippendorff's alpha. Alpha is 1 for perfect agreement, and 0
    for agreement no better than chance. For projects, see `fluents annotate`.

    Example: `fluents eval agreement --gold openpi2:dev --raters A1,A2`

    Example: `fluents eval agreement --gold soups.history.jsonl --stage 2`
    """
    names = [name.strip() for name in raters.split(",")] if raters else []
    if stage is not None:
        from fluents.annotation.agreement import history_agreement

        if pred is not None:
            raise InputError("`pred` and `stage` cannot be combined", fix="leave out `pred` or `stage`")
        show_evaluation(history_agreement(gold, stage, raters=names, scope=scope, level=level), as_json)
        return
    from fluents.evaluation import evaluate

    show_evaluation(evaluate("agreement", gold, pred, raters=names, level=level, scope=scope), as_json)


def judgements(
    source: Annotated[
        str,
        typer.Argument(
            help="Judgements to score: a form that you filled in, or one of three published sets from OpenPI2.0. The "
            "sets davinci and gpt-3.5 judge the predictions of these two language models; the set expansions judges "
            "paraphrases of names. With --form, SOURCE is a file of predictions to judge."
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write a blank form to FILE, as CSV, with one line for each change in SOURCE."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute scores from human judgements: the judgements published with OpenPI2.0, or your own.

    To judge predictions yourself, write a blank form with --form. For each change, enter yes in the column
    “hallucinated” if the change is made up, and no otherwise. Then run the command again with the form as SOURCE.

    Example: `fluents eval judgements davinci`

    Example: `fluents eval judgements mine.jsonl --form form.csv`

    Example: `fluents eval judgements form.csv`
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
