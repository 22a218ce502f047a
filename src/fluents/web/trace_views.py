"""Traces as the page shows them: filtered, with people's judgements, beside another one."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from fluents import jsonl
from fluents.canonicalisation import canonicalise
from fluents.data.change_tables import csv_text
from fluents.errors import InputError
from fluents.metrics import score
from fluents.metrics.readers import RIGHT, matched_pairs
from fluents.planning.compilation import compile_trace
from fluents.records import StateChange, Trace
from fluents.report.trace_page import to_html, trace_fragment
from fluents.salience import keep, rate_salience
from fluents.salience.entities import canonical_names
from fluents.salience.feature_rater import RATER
from fluents.text.names import one_line
from fluents.web.archive import KeptTrace
from fluents.web.corrections import JudgedChange, as_judged, judged
from fluents.web.trace_resources import ChangeView, Match, SideBySide, TraceView

DownloadFormat: TypeAlias = Literal["jsonl", "csv", "html", "pddl"]
MEDIA_TYPES: dict[DownloadFormat, str] = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "pddl": "text/plain; charset=utf-8",
}
MAX_COMPARED = 250_000
"""Pairs of changes; far more than any annotation has."""


@dataclass(frozen=True)
class Filters:
    """What of a trace is shown. None is everything."""

    min_confidence: float | None = None
    min_support: float | None = None
    min_salience: float | None = None
    top: int | None = None

    def __call__(self, trace: Trace) -> Trace:
        """What is left."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return keep(trace, rater=RATER, **given) if given and trace.changes else trace


NO_FILTERS = Filters()


def trace_view(kept: KeptTrace, filters: Filters = NO_FILTERS) -> TraceView:
    """A trace with people's judgements. Filters look at the model's words; what people added is always shown."""
    trace = rated(kept.trace)
    ratings = _ratings(trace)
    shown = [_change_view(one, ratings) for one in _left(judged(trace, kept.corrections), filters(trace))]
    return TraceView(
        **kept.summary.model_dump(),
        procedure=trace.procedure,
        covered=list(trace.covered_steps),
        shown=shown,
        rejects=list(trace.rejects),
        provenance=trace.provenance.model_dump(mode="json", exclude_defaults=True),
        has_confidence=any(change.confidence is not None for change in trace.changes),
        has_support=any(change.support is not None for change in trace.changes),
    )


def filtered(kept: KeptTrace, filters: Filters) -> Trace:
    """What filters leave of a trace as people left it: the same changes as in its view."""
    trace = filters(kept.trace)
    return as_judged(trace, _left(judged(kept.trace, kept.corrections), trace)) if kept.corrections else trace


def _left(changes: Sequence[JudgedChange], filtered: Trace) -> list[JudgedChange]:
    """Those that filters left in the model's trace, and what people added."""
    left = {id(change) for change in filtered.changes}
    return [one for one in changes if id(one.change) in left or (one.added and not one.is_taken_back)]


_rating = threading.Lock()
"""A page asks for a trace and its views at once: the second waits for the ratings of the first."""


def rated(trace: Trace) -> Trace:
    """The trace with the built-in ratings for the goal, where it has none."""
    if not trace.changes or any(one.rater == RATER and one.step is None for one in trace.salience):
        return trace
    with _rating:
        return _rated(jsonl.dumps(trace))


@lru_cache(maxsize=8)
def _rated(line: bytes) -> Trace:
    trace = jsonl.loads(line)
    assert isinstance(trace, Trace)
    return rate_salience(trace, scope="global")


@lru_cache(maxsize=8)
def drawn(trace: Trace) -> str:
    """The three views as HTML."""
    return trace_fragment(rated(trace))


def _ratings(trace: Trace) -> dict[str, float]:
    """Of entities by every name they have."""
    found = {
        one.entity: float(one.value)
        for one in trace.salience
        if one.rater == RATER and one.step is None and one.value is not None
    }
    return found | {name: found[entity] for name, entity in canonical_names(trace).items() if entity in found}


def _change_view(one: JudgedChange, ratings: dict[str, float]) -> ChangeView:
    change = one.change
    return ChangeView(
        position=one.position,
        step=change.step,
        entity=change.entity,
        attribute=change.attribute,
        before=change.before,
        after=change.after,
        confidence=change.confidence,
        support=change.support,
        mentioned=change.mentioned,
        salience=ratings.get(change.entity),
        verdict=one.verdict,
        corrected=one.words,
    )


def side_by_side(gold: KeptTrace, pred: KeptTrace, *, corrected: bool = False) -> SideBySide:
    """Two traces of the same steps: which changes match, and the score of the metric `readers`."""
    first, second = (_positioned(one, corrected) for one in (gold, pred))
    if list(map(one_line, gold.trace.procedure.steps)) != list(map(one_line, pred.trace.procedure.steps)):
        raise InputError("these two traces have different steps", fix="compare two traces of the same document")
    steps = sorted({*gold.trace.covered_steps, *pred.trace.covered_steps})
    by_step = [
        (step, [c for c in first if c[1].step == step], [c for c in second if c[1].step == step]) for step in steps
    ]
    if sum(len(one) * len(other) for _, one, other in by_step) > MAX_COMPARED:
        raise InputError(
            "these traces are too large to compare here", fix="compare the traces with `fluents eval readers`"
        )
    matches = [
        Match(
            step=step,
            gold=ours[pair.gold][0],
            pred=theirs[pair.pred][0],
            likeness=round(pair.likeness, 3),
            right=pair.likeness >= RIGHT,
        )
        for step, ours, theirs in by_step
        for pair in matched_pairs([change for _, change in ours], [change for _, change in theirs])
    ]
    expected = gold.trace.replace(changes=tuple(change for _, change in first))
    said = pred.trace.replace(procedure=expected.procedure, changes=tuple(change for _, change in second))
    found = score("readers", [expected], [said], mode="compat")
    return SideBySide(
        gold=trace_view(gold),
        pred=trace_view(pred),
        matches=matches,
        score={row: {name: _finite(value) for name, value in columns.items()} for row, columns in found.rows.items()},
        signature=str(found.signature),
        warnings=list(found.warnings),
    )


def _positioned(kept: KeptTrace, corrected: bool) -> list[tuple[int, StateChange]]:
    """Changes with their positions: the model's, or as people left them."""
    if not corrected:
        return list(enumerate(kept.trace.changes))
    return [(one.position, now) for one in judged(kept.trace, kept.corrections) if (now := one.current) is not None]


def _finite(value: float) -> float | None:
    return round(value, 2) if math.isfinite(value) else None


def download(trace: Trace, format: DownloadFormat) -> Iterator[bytes]:
    """The trace as a file."""
    if format == "jsonl":
        yield jsonl.dumps(trace) + b"\n"
    elif format == "csv":
        yield csv_text([trace]).encode()
    elif format == "html":
        yield to_html(trace).encode()
    else:
        made = compile_trace(trace if trace.clusters or not trace.changes else canonicalise(trace))
        yield f"{made.domain}\n\n{made.problem}\n".encode()
