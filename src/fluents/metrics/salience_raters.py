"""Who else rated: the gold's other raters and the votes, each held against the same reference as a system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fluents.errors import InputError
from fluents.metrics.base import Score
from fluents.metrics.salience import REFERENCE, salience
from fluents.metrics.steps import Mode
from fluents.records import Salience, Trace

VOTES = "votes"
"""The baseline: how often annotators' words speak of an entity (OpenPI2.0)."""
HIGHEST = 5


def others(gold: Sequence[Trace], *, mode: Mode = "compat", reference: str = REFERENCE) -> dict[str, Score]:
    """Rater → score, for everyone in the gold but the reference who rated what the reference did; votes come last."""
    rated = [trace for trace in gold if any(one.rater == reference for one in trace.salience)]
    with_votes = [trace.replace(salience=(*trace.salience, *votes(trace))) for trace in rated]
    raters = dict.fromkeys(one.rater for trace in with_votes for one in trace.salience if one.rater != reference)
    found: dict[str, Score] = {}
    for rater in raters:
        try:
            found[rater] = salience(with_votes, with_votes, mode=mode, reference=reference, rater=rater)
        except InputError:  # this one rated other things: there is nothing to hold against the reference
            continue
    return found


def votes(trace: Trace) -> Iterator[Salience]:
    """The votes as ratings, the most of the procedure being the highest. Fewer than none (there are −1) are none."""
    most = max((entity.votes or 0 for entity in trace.entities), default=0)
    most_in_step = max((count for entity in trace.entities for count in entity.step_votes), default=0)
    for entity in trace.entities:
        if entity.votes is not None:
            yield _rating(entity.name, None, entity.votes, most)
        for step, count in enumerate(entity.step_votes, start=1):
            yield _rating(entity.name, step, count, most_in_step)


def _rating(entity: str, step: int | None, count: int, most: int) -> Salience:
    value = HIGHEST * max(0, count) / max(1, most)
    return Salience(entity=entity, rater=VOTES, step=step, value=value)


def by_procedure(score: Score) -> dict[str, float | None]:
    """Procedure → its global correlation; None where it is not defined. Smoothed in compat, as it was published."""
    view = next(row for row in score.figures if row.startswith("global"))
    columns = (score.statistics.column(f"{view}.{name}") for name in ("r", "defined"))
    return {
        procedure: float(r) if defined else None
        for procedure, r, defined in zip(score.statistics.procedures, *columns, strict=True)
    }
