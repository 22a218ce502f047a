"""How often a step takes up a state where an earlier step left it. Needs no gold: a trace is held against itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fluents.records import StateChange, Trace
from fluents.scoring.score import Ratio, Score, Signature, Statistics, StepRow
from fluents.text.matchers import ALIKE, same_state
from fluents.text.names import plain_name


def consistency(pred: Iterable[Trace]) -> Score:
    """Of the changes whose entity and attribute changed in an earlier step: how many begin where that ended.

    "exact" compares names and states without case, articles and plurals; "in other words" also takes a state that
    shares most of its words. Where a step says several things of one attribute, agreeing with one of them is enough.
    "carried" is the share of changes that have such an earlier step.
    """
    statistics = Statistics.collect(("changes", "carried", "exact", "alike"), _rows(pred))
    figures = {
        "exact": {"agreement": Ratio("exact", "carried")},
        "in other words": {"agreement": Ratio("alike", "carried")},
        "carried": {"share": Ratio("carried", "changes")},
    }
    return Score("consistency", statistics, figures, Signature.of("consistency", "strict", alike=ALIKE))


def _rows(traces: Iterable[Trace]) -> Iterator[StepRow]:
    for trace in traces:
        known: dict[tuple[str, str], list[str]] = {}
        for step, _, changes in trace.by_step():
            with_states = [change for change in changes if change.before or change.after]
            carried = [(change.before, known[_topic(change)]) for change in with_states if _topic(change) in known]
            exact = sum(plain_name(before) in map(plain_name, left) for before, left in carried)
            alike = sum(any(same_state(one, before) for one in left) for before, left in carried)
            yield trace.id, step, (len(with_states), len(carried), exact, alike)
            known.update(_left_by(with_states))


def _left_by(changes: Iterable[StateChange]) -> dict[tuple[str, str], list[str]]:
    """The states a step leaves things in."""
    left: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        left.setdefault(_topic(change), []).append(change.after)
    return left


def _topic(change: StateChange) -> tuple[str, str]:
    return plain_name(change.entity), plain_name(change.attribute)
