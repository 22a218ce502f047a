"""fluents eval crepe and plan: the tasks that build on states"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from fluents.cli.command import AsJson, messages, show, show_json, step_progress, with_options
from fluents.cli.plan import PlannerOptions
from fluents.cli.scoring import ModeOption, show_evaluation, warn


def crepe(
    pred: Annotated[
        list[str],
        typer.Option(
            "--pred",
            metavar="SOURCE",
            help="Predictions to score: a dataset split or a file. Repeat to compare several in one table.",
        ),
    ],
    gold: Annotated[
        str | None,
        typer.Option(
            "--gold",
            metavar="SOURCE",
            help="Gold to score against, such as crepe:dev. Default: the dataset named in the predictions.",
        ),
    ] = None,
    mode: ModeOption = "compat",
    price_in: Annotated[
        float,
        typer.Option(
            min=0, help="Price of a million input tokens, in any currency, to report the cost of the predictions."
        ),
    ] = 0.0,
    price_out: Annotated[
        float,
        typer.Option(
            min=0, help="Price of a million output tokens, in any currency, to report the cost of the predictions."
        ),
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Score answers on the dataset CREPE (2023): does a step make an event more likely, less likely, or neither?

    The score is the mean of three F1 scores, one for each kind of answer. To make a file of answers, use `fluents ask
    crepe:dev -o FILE`.

    Example: `fluents eval crepe --gold crepe:dev --pred crepe:codex-entities`

    Example: `fluents eval crepe --pred none.jsonl --pred all.jsonl --pred salient.jsonl`
    """
    from fluents.evaluation import evaluate_answers
    from fluents.llm import Prices
    from fluents.report.score_tables import answers_table, notes

    with messages.status("scoring"):
        found = evaluate_answers(gold, pred, mode=mode)
    if len(found) == 1 and not price_in + price_out:
        show_evaluation(found[0].evaluation, as_json)
        return
    for one in found:
        warn(one.evaluation.score.warnings, one.evaluation.name)
    runs = [one.to_dict(Prices(price_in, price_out)) for one in found]
    first = found[0].evaluation
    if as_json:
        show_json({"runs": runs, "published": [asdict(one) for one in first.published]})
        return
    show(answers_table(runs, first.published))
    show(notes(first.score, with_intervals=first.intervals is not None))
    print(first.score.signature)


@with_options
def plan(
    gold: Annotated[
        str,
        typer.Option("--gold", metavar="SOURCE", help="Planning tasks with gold domains: a dataset split or a file."),
    ] = "proc2pddl:all",
    pred: Annotated[
        str,
        typer.Option(
            "--pred", metavar="SOURCE", help="Planning tasks with predicted domains: a dataset split or a file."
        ),
    ] = "proc2pddl:all",
    as_json: AsJson = False,
    *,
    limits: PlannerOptions,
) -> None:
    """Score PDDL domains as in the paper Proc2PDDL (2024).

    The dataset of this paper contains planning tasks: texts with a PDDL domain and problems. To have a language model
    write the domains, use `fluents plan --method prompted`. Without --pred, `fluents eval plan` scores the gold domains
    of this dataset.

    Prints the F1 of the preconditions and effects of actions, the share of actions in which all of these are right, and
    the shares of problems that are “planned” and “solved”. A problem counts as planned if a planner finds a plan for it
    in the predicted domain, and as solved if this plan is also valid in the gold domain.

    Example: `fluents eval plan --pred mine.jsonl`
    """
    from fluents.data.file_formats import read
    from fluents.evaluation import Evaluation
    from fluents.planning.plan_scores import plan_score, planning_tasks
    from fluents.report.published_results import published

    sides = [list(planning_tasks(read(source), source)) for source in (gold, pred)]
    with step_progress(f"solving with {pred}", 0) as update:
        score = plan_score(*sides, **asdict(limits), on_problem=update)
    intervals = score.intervals() if score.n_procedures > 1 else None
    show_evaluation(Evaluation(score, pred, intervals, published("plan", gold)), as_json)
