"""Only what matters: a trace without the entities whose salience is low."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from fluents.errors import InputError
from fluents.records import Provenance, StateChange, Trace
from fluents.salience.entities import names
from fluents.salience.feature_rater import RATER, rate
from fluents.scoring import Scope

EntityPlace: TypeAlias = tuple[str, int | None]
"""An entity, for a step or (None) for the goal."""

NOTE = "salience"
"""Where a trace's provenance says what was kept, among how it was decoded."""


@dataclass(frozen=True)
class Keep:
    """What to keep: entities rated at least so high, and of these no more than so many."""

    least: float | None = None
    top: int | None = None
    rater: str | None = None
    """Whose ratings decide; may be left out where a trace has one rater's only."""
    scope: Scope = "global"
    """By what an entity means to the goal, or to each step for itself."""

    def __str__(self) -> str:
        """For a score's signature."""
        said = (
            ("", "" if self.least is None else f">={self.least:g}"),
            ("top", "" if self.top is None else f"{self.top}"),
            ("by ", self.rater or ""),
            ("", "" if self.scope == "global" else self.scope),
        )
        return " ".join(f"{word}{value}" for word, value in said if value)


def keep(trace: Trace, wanted: Keep) -> Trace:
    """The trace without the changes of entities that do not matter enough, nor their names and ratings.

    An entity that has no readable rating is not known to matter, and goes. Of equals beyond `top` those with more
    changes stay, then the first by name, so that no order of the file decides. The provenance says what was kept, so
    that nobody takes what is left for all there was. Applying it again changes nothing.
    """
    wanted = replace(wanted, rater=_deciding(trace, wanted))
    ratings = _ratings(trace, wanted)
    name_of = names(trace)
    counted = Counter(_place(change, wanted.scope, name_of) for change in trace.changes)
    kept = _best(counted, ratings, wanted)
    changes = tuple(change for change in trace.changes if _place(change, wanted.scope, name_of) in kept)
    left = {change.entity for change in changes} | {place[0] for place in kept}
    return trace.replace(
        changes=changes,
        clusters=tuple(cluster for cluster in trace.clusters if cluster.name in left),
        entities=tuple(entity for entity in trace.entities if entity.name in left),
        salience=tuple(rating for rating in trace.salience if rating.entity in left),
        provenance=_noted(trace.provenance, wanted) if trace.changes else trace.provenance,
    )


def keep_salient(trace: Trace, wanted: Keep) -> Trace:
    """The same for a trace whose rater has not rated it: the offline method does so, and decides."""
    if has_ratings(trace, wanted):
        return keep(trace, wanted)
    return keep(rate(trace, (wanted.scope,)), replace(wanted, rater=RATER))


def has_ratings(trace: Trace, wanted: Keep) -> bool:
    return any(
        (one.step is None) == (wanted.scope == "global") and wanted.rater in (None, one.rater) for one in trace.salience
    )


def _place(change: StateChange, scope: Scope, name_of: Mapping[str, str]) -> EntityPlace:
    return name_of.get(change.entity, change.entity), None if scope == "global" else change.step


def _deciding(trace: Trace, wanted: Keep) -> str | None:
    """Whose ratings decide: the rater that was named, or the only one there is."""
    raters = sorted({one.rater for one in trace.salience if (one.step is None) == (wanted.scope == "global")})
    if wanted.rater is None and len(raters) > 1:
        raise InputError("several have rated this procedure", where=trace.id, fix=f"name one of: {', '.join(raters)}")
    return wanted.rater or next(iter(raters), None)


def _noted(provenance: Provenance, wanted: Keep) -> Provenance:
    notes = provenance.decoding.get(NOTE)
    before = notes.split("; ") if isinstance(notes, str) else []
    return provenance.replace(decoding={**provenance.decoding, NOTE: "; ".join(dict.fromkeys([*before, str(wanted)]))})


def _ratings(trace: Trace, wanted: Keep) -> dict[EntityPlace, float]:
    """What the chosen rater said, of entities by their clusters' names; of two names in a cluster the higher counts."""
    mine = [one for one in trace.salience if (one.step is None) == (wanted.scope == "global")]
    name_of = names(trace)
    found: dict[EntityPlace, float] = {}
    for one in mine:
        if one.value is not None and one.rater == wanted.rater:
            place = name_of.get(one.entity, one.entity), one.step
            found[place] = max(found.get(place, one.value), one.value)
    return found


def _best(counted: Mapping[EntityPlace, int], ratings: Mapping[EntityPlace, float], wanted: Keep) -> set[EntityPlace]:
    """The places that are rated high enough, and among the highest: of the procedure, or of their step."""
    enough = [
        place for place in counted if place in ratings and (wanted.least is None or ratings[place] >= wanted.least)
    ]
    if wanted.top is None:
        return set(enough)
    kept: set[EntityPlace] = set()
    taken: Counter[int | None] = Counter()
    for place in sorted(enough, key=lambda place: (-ratings[place], -counted[place], place[0])):
        if taken[place[1]] < wanted.top:
            taken[place[1]] += 1
            kept.add(place)
    return kept
