"""One scoring, from its sources to what is shown of it: what all commands of `fluents eval` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fluents.cli.output import messages, show, show_json
from fluents.cli.sources import Source, last_of_each_step
from fluents.errors import InputError
from fluents.report.terminal import plain

if TYPE_CHECKING:
    from fluents.report.published_results import Published
    from fluents.scoring.bootstrap import Intervals
    from fluents.scoring.score import Score

STEPWISE = ("topic", "seen", "position", "mentioned", "modality")
"""What a metric that goes step by step can be broken down by."""


@dataclass(frozen=True)
class Task:
    """What to score, how, and what to show of it."""

    metric: str
    gold: Source
    pred: Source
    mode: str
    options: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    """Of the published results."""
    by: str | None = None
    kinds: tuple[str, ...] = ()
    """What it can be broken down by."""
    worst: int = 0
    errors: bool = False
    as_json: bool = False

    @property
    def function(self) -> Callable[..., Score]:
        from fluents.metrics import load

        return partial(load(self.metric), mode=self.mode, **self.options)


def run(task: Task) -> None:
    """Score and show."""
    with messages.status(plain(f"scoring {task.pred.name}")):
        score = scored(task)
    show_score(task, score)


def scored(task: Task) -> Score:
    """Gold and predictions stream past each other; nothing of them is kept."""
    if task.by is not None and task.by not in task.kinds:
        raise InputError(f"{task.metric} cannot be shown by {task.by!r}", fix=f"one of: {', '.join(task.kinds)}")
    for source in (task.gold, task.pred):
        for option in ("--by", "--worst", "--errors"):
            if getattr(task, option[2:]):
                source.must_be_a_file(option)
    score = _scored(task)
    if not task.pred.kept:
        return score
    warnings = (*score.warnings, *task.gold.warnings(), *task.pred.warnings())
    return replace(score, signature=score.signature.with_entry("salience", task.pred.kept), warnings=warnings)


def _scored(task: Task) -> Score:
    from fluents.scoring.step_alignment import first_three

    if task.metric == "crepe":
        return task.function(task.gold.cases(), task.pred.cases())
    if task.metric not in ("original", "cluster"):
        return task.function(task.gold.traces(), task.pred.traces())
    predictions, repeated = last_of_each_step(task.pred)
    if not repeated:
        return task.function(task.gold.traces(), predictions)
    what = f"more than one prediction with the id {first_three(repeated)}"
    if task.mode != "compat" or task.pred.kept:
        raise InputError(what, where=task.pred.name, fix="keep one list for each step; compat mode takes the last")
    score = task.function(task.gold.traces(), predictions)
    return replace(score, warnings=(*score.warnings, f"{what}: the last is taken"))


def show_score(task: Task, score: Score, raters: Mapping[str, Score] | None = None) -> None:
    """The score with its intervals, beside the published ones and other raters', and what else was asked for."""
    from fluents.report.published_results import published
    from fluents.scoring.bootstrap import intervals

    warn(score.warnings, task.pred.name)
    known = [] if task.pred.kept else published(task.metric, task.gold.name, mode=task.mode, variant=task.variant)
    with messages.status("resampling"):
        between = intervals(score) if score.n_procedures > 1 else None
    more = _more(task, score) | ({"raters": raters} if raters else {})
    if task.as_json:
        _show_json(score, between, known, more)
    else:
        _show_tables(task, score, between, known, more)


def _more(task: Task, score: Score) -> dict[str, Any]:
    """What else was asked for: parts, errors, worst steps."""
    from fluents.metrics.error_types import error_types
    from fluents.scoring.bootstrap import part_intervals
    from fluents.scoring.breakdowns import breakdown
    from fluents.scoring.worst_steps import cases, worst_steps

    found: dict[str, Any] = {}
    gold, pred = task.gold.traces, task.pred.traces
    with messages.status("looking closer"):
        if task.by:
            found["by"] = breakdown(task.by, score, gold, pred, task.function)
            found["by intervals"] = part_intervals(found["by"])
        if task.errors:
            found["errors"] = error_types(gold(), pred(), mode=task.mode)  # type: ignore[arg-type]
        if task.worst:
            rows = [row for row in score.rows if not row.endswith("micro")]
            found["worst"] = cases(worst_steps(score, task.worst, rows[-1]), gold(), pred())
    return found


def _show_json(score: Score, between: Intervals | None, known: Iterable[Published], more: Mapping[str, Any]) -> None:
    from fluents.report.score_tables import as_json, finite_only

    values = as_json(score, between) | {"published": [asdict(one) for one in known]}
    if "by" in more:
        values["by"] = {name: as_json(part, more["by intervals"].get(name)) for name, part in more["by"].items()}
    if "raters" in more:
        values["raters"] = {name: as_json(other) for name, other in more["raters"].items()}
    if "errors" in more:
        values["errors"] = as_json(more["errors"])
    if "worst" in more:
        values["worst"] = [asdict(case) for case in more["worst"]]
    show_json(finite_only(values))


def _show_tables(
    task: Task, score: Score, between: Intervals | None, known: list[Published], more: Mapping[str, Any]
) -> None:
    from fluents.report import score_tables as tables

    show(tables.score_table(score, between))
    show(tables.notes(score, between))
    print(score.signature)  # on one line, however long: it is there to be copied
    if known:
        show("")
        show(tables.published_table(score, known, task.pred.name))
    if "raters" in more:
        from fluents.report.salience_tables import raters_table

        show("")
        show(raters_table({task.options.get("rater") or task.pred.name: score} | more["raters"]))
    if "by" in more:
        show("")
        show(tables.parts_table(more["by"], more["by intervals"], task.by or ""))
    if "errors" in more:
        show("")
        show(tables.errors_table(more["errors"]))
    if "worst" in more:
        show(tables.cases_view(more["worst"]))


def warn(warnings: Iterable[str], name: str) -> None:
    """Tell people, not the next program in the pipe."""
    for warning in warnings:
        messages.print(plain(f"warning: {name}: {warning}", "yellow"), soft_wrap=True)
