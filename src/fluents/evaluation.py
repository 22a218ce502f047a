"""One evaluation: a score with its intervals, and beside it parts, errors, worst steps and published results.

Gold and predictions are read once. They stream, unless something has to look at them a second time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from fluents import metrics
from fluents.data import openpi2_labels
from fluents.errors import InputError, UnknownNameError
from fluents.llm import Prices, Usage
from fluents.metrics import Metric
from fluents.metrics.clustering import LABELS
from fluents.metrics.error_types import error_types
from fluents.metrics.salience import REFERENCE, others
from fluents.records import Trace
from fluents.report.published_results import Published, published
from fluents.report.score_tables import as_json, finite_only
from fluents.salience.filter import Keep, has_ratings, keep_rated, keep_salient
from fluents.scoring import Level, Mode
from fluents.scoring.bootstrap import Intervals, part_intervals
from fluents.scoring.breakdowns import Kind, breakdown
from fluents.scoring.score import Score
from fluents.scoring.worst_steps import StepCase, cases, worst_steps
from fluents.task_records import CrepeCase
from fluents.text.embedders import load_embedder
from fluents.text.names import counted

PARTS: Mapping[str, tuple[Kind, ...]] = {
    "original": get_args(Kind),
    "cluster": get_args(Kind),
    "schemata": ("topic", "seen"),
    "states": ("topic", "seen", "position"),
    "complete": ("topic", "seen", "position"),
}
"""What a metric's score can be broken down by."""

STEPWISE = ("original", "cluster")
"""Metrics with an F1 for every step."""


@dataclass(frozen=True)
class Evaluation:
    """A score, and what stands beside it."""

    score: Score
    name: str
    """Of the predictions."""
    intervals: Intervals | None = None
    """None where there is a single procedure."""
    published: Sequence[Published] = ()
    by: Kind | None = None
    parts: Mapping[str, Score] = field(default_factory=dict)
    part_intervals: Mapping[str, Intervals] = field(default_factory=dict)
    """Of the parts with enough procedures."""
    errors: Score | None = None
    worst: Sequence[StepCase] = ()
    raters: Mapping[str, Score] = field(default_factory=dict)
    """Of salience: this one, every other rater of the gold, and the votes."""
    gold: Sequence[Trace] = ()
    """Where it was held in memory."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is not a number is null."""
        values = as_json(self.score, self.intervals) | {"published": [asdict(one) for one in self.published]}
        if self.by:
            values["by"] = {name: as_json(part, self.part_intervals.get(name)) for name, part in self.parts.items()}
        if self.raters:
            values["raters"] = {name: as_json(one) for name, one in self.raters.items() if one is not self.score}
        if self.errors:
            values["errors"] = as_json(self.errors)
        if self.worst:
            values["worst"] = [asdict(case) for case in self.worst]
        cleaned: dict[str, Any] = finite_only(values)
        return cleaned


def evaluate(
    metric: Metric,
    gold: Any,
    pred: Any,
    *,
    mode: Mode = "compat",
    by: Kind | None = None,
    errors: bool = False,
    worst: int = 0,
    keep: Keep | None = None,
    **options: Any,
) -> Evaluation:
    """Score predictions as `fluents.metrics.score` does, and add what is asked for.

    `by` breaks the score down; `errors` sorts wrong predictions by type; `worst` shows so many of the steps with the
    lowest F1; `keep` scores salient entities only. For clustering, `pred` may also be a method to compare with:
    "offline", "same-words", "single" or "openpi2-outputs:votes".
    """
    if by is not None and by not in PARTS.get(metric, ()):
        known = ", ".join(PARTS.get(metric, ()))
        raise UnknownNameError(
            f"the metric {metric} does not support `by` {by!r}",
            fix=f"set `by` to one of: {known}" if known else "leave out `by`",
        )
    if (errors or worst) and metric not in STEPWISE:
        raise InputError(
            "`errors` and `worst` work only with metrics that score each step",
            fix=f"use the metric {' or '.join(STEPWISE)}",
        )
    level = options.get("level", "entities")
    gold_side, pred_side = metrics.read_sides(metric, gold, _baseline(metric, gold, pred, level), level=level)
    filters = [] if keep is None else [SalientTraces(gold_side, keep, is_gold=True), SalientTraces(pred_side, keep)]
    if filters:
        gold_side, pred_side = filters
    if errors or worst or metric == "salience" or by not in (None, "position"):
        gold_side, pred_side = metrics.held(gold_side), metrics.held(pred_side)
    score = _with_filter(metrics.score(metric, gold_side, pred_side, mode=mode, **options), keep, filters)
    variant = level if metric == "clustering" else ""
    found = Evaluation(
        score,
        next((str(side) for side in (pred, gold) if isinstance(side, str | Path)), "predictions"),
        intervals=score.intervals() if score.n_procedures > 1 else None,
        published=() if keep else published(metric, str(gold), mode=mode, variant=variant),
        gold=gold_side if isinstance(gold_side, Sequence) else (),
    )
    if by:
        again = partial(metrics.score, metric, mode=mode, **options)
        parts = breakdown(by, score, gold_side, pred_side, again)
        found = replace(found, by=by, parts=parts, part_intervals=part_intervals(parts))
    if errors:
        found = replace(found, errors=error_types(gold_side, pred_side, mode=mode))
    if worst:
        rows = [row for row in score.rows if not row.endswith("micro")]
        found = replace(found, worst=cases(worst_steps(score, worst, rows[-1]), gold_side, pred_side))
    if metric == "salience":
        raters = others(gold_side, mode=mode, reference=options.get("reference", REFERENCE))
        raters.pop(options.get("rater") or "", None)
        found = replace(found, raters={options.get("rater") or found.name: score, **raters})
    return found


@dataclass(frozen=True)
class AnswersEvaluation:
    """The evaluation of a file of answers to CREPE's questions, and what they took."""

    evaluation: Evaluation
    model: str
    states: str
    """The setting: none, all, or salient with the least salience."""
    entities: float
    """A step, on average, whose states were shown; not a number where nothing says."""
    usage: Usage
    """Tokens in and out."""

    def to_dict(self, prices: Prices) -> dict[str, Any]:
        """Plain values for JSON and for tables."""
        intervals = self.evaluation.intervals
        values: dict[str, Any] = {
            "predictions": self.evaluation.name,
            "model": self.model,
            "states": self.states,
            "entities_per_step": self.entities,
            "tokens_in": self.usage.tokens_in,
            "tokens_out": self.usage.tokens_out,
            "cost": self.usage.cost(prices),
            "macro_f1": self.evaluation.score["macro"]["f1"],
            "interval": intervals["macro"]["f1"] if intervals else None,
            "signature": str(self.evaluation.score.signature),
        }
        cleaned: dict[str, Any] = finite_only(values)
        return cleaned


def evaluate_answers(gold: str | None, preds: Sequence[str], *, mode: Mode = "compat") -> list[AnswersEvaluation]:
    """CREPE's score of each file of answers; the gold is what the answers say they answer, where it is not given."""
    found = []
    for pred in preds:
        answers = metrics.held(metrics.read_sides("crepe", (), pred)[1])
        named = gold or next((case.provenance.dataset for case in answers if case.provenance.dataset), None)
        if named is None:
            raise InputError(
                "the predictions do not say which dataset they belong to", where=pred, fix="give the dataset as `gold`"
            )
        evaluation = evaluate("crepe", answers if named == pred else named, answers, mode=mode)
        found.append(_with_costs(replace(evaluation, name=pred), answers))
    return found


def _with_costs(evaluation: Evaluation, answers: Sequence[CrepeCase]) -> AnswersEvaluation:
    noted: list[Mapping[str, Any]] = [case.provenance.decoding for case in answers]
    tokens_in, tokens_out = (sum(int(note.get(name, 0)) for note in noted) for name in ("tokens_in", "tokens_out"))
    steps = sum(len(case.procedure.steps) for case in answers)
    shown = [note["entities"] for note in noted if "entities" in note]
    first = noted[0] if noted else {}
    least = f" ≥ {first['min_salience']:g}" if "min_salience" in first else ""
    return AnswersEvaluation(
        evaluation,
        next((case.provenance.model for case in answers if case.provenance.model), ""),
        f"{first.get('states', '')}{least}",
        sum(shown) / steps if shown and steps else math.nan,
        Usage(tokens_in=tokens_in, tokens_out=tokens_out),
    )


def _with_filter(score: Score, keep: Keep | None, filters: Sequence[SalientTraces]) -> Score:
    if keep is None:
        return score
    warnings = (*score.warnings, *(warning for one in filters for warning in one.warnings()))
    return replace(score, signature=score.signature.with_entry("salience", str(keep)), warnings=warnings)


class SalientTraces:
    """Traces of which only the salient entities are kept, and what is to be said of that once they have been read.

    Predictions without ratings by the rater are rated by the offline method; gold without them stays whole.
    """

    def __init__(self, traces: Iterable[Trace], keep: Keep, *, is_gold: bool = False) -> None:
        self._traces, self._keep, self._is_gold = traces, keep, is_gold
        self._whole = self._emptied = 0

    def __iter__(self) -> Iterator[Trace]:
        self._whole = self._emptied = 0
        seen: set[str] = set()
        for trace in self._traces:
            if trace.id in seen:
                raise InputError(f"two traces have the same id, {trace.id!r}", fix="give every procedure a unique id")
            seen.add(trace.id)
            left = self._kept(trace)
            self._emptied += bool(trace.changes and not left.changes)
            yield left

    def _kept(self, trace: Trace) -> Trace:
        if not self._is_gold:
            return keep_salient(trace, self._keep)
        if has_ratings(trace, self._keep):
            return keep_rated(trace, self._keep)
        self._whole += 1
        return trace

    def warnings(self) -> Iterator[str]:
        if self._whole:
            whose = f" by {self._keep.rater}" if self._keep.rater else ""
            yield f"{counted(self._whole, 'gold procedure')} without salience ratings{whose}: scored with all entities"
        if self._emptied:
            side = "gold" if self._is_gold else "predicted"
            yield f"{counted(self._emptied, f'{side} procedure')} without a salient entity: scored as empty"


def traces_of(
    source: str | Path, keep: Keep | None, *, is_gold: bool = False
) -> tuple[list[Trace], list[tuple[str, str]]]:
    """The traces of a dataset or a file, or what is salient in them; and warnings, each with the name."""
    traces, _ = metrics.read_sides("original", source, ())
    if keep is None:
        return list(traces), []
    kept = SalientTraces(traces, keep, is_gold=is_gold)
    return list(kept), [(str(source), warning) for warning in kept.warnings()]


VOTES = "openpi2-outputs:votes"
"""The released runs of clustering put to the vote, as `fluents canonicalise --method prompted` does."""


def _baseline(metric: str, gold: Any, pred: Any, level: Level) -> Any:
    """The clusters of a method named as `pred`; all else stays as it is."""
    if metric != "clustering" or not isinstance(pred, str) or Path(pred).exists():
        return pred
    if pred == VOTES:
        return _votes(level)
    from fluents.canonicalisation.training import PREDICTIONS, load_training_data, predict_as

    if pred not in PREDICTIONS:
        return pred
    if gold != LABELS:
        raise InputError(
            f"the method {pred} can be scored only against {LABELS}", where=gold, fix=f"use {LABELS} as `gold`"
        )
    return predict_as(pred, load_training_data(level, load_embedder()), level)


def _votes(level: Level) -> dict[tuple[str, str], list[list[str]]]:
    from fluents.canonicalisation.prompted_method import elected

    if level == "entities":
        asked = openpi2_labels.entity_labels()
        runs = [openpi2_labels.entity_run(run) for run in openpi2_labels.ENTITY_RUNS]
    else:
        asked = openpi2_labels.attribute_labels()
        runs = [openpi2_labels.attribute_run(run) for run in openpi2_labels.ATTRIBUTE_RUNS]
    names = {key: [name for cluster in clusters for name in cluster] for key, clusters in asked.items()}
    return {key: elected([run[key] for run in runs if key in run], listed) for key, listed in names.items()}
