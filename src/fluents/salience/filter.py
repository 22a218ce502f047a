"""Filters: a trace without what has low salience, low support or low confidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from fluents.errors import InputError
from fluents.records import Provenance, Salience, StateChange, Trace
from fluents.salience.entities import canonical_names
from fluents.salience.feature_rater import RATER
from fluents.salience.rater import rate_salience
from fluents.scoring import Scope, check_type

EntityPlace: TypeAlias = tuple[str, int | None]
"""An entity, for a step or (None) for the goal."""

NOTE = "salience"
"""Where a trace's provenance says what was kept, in `decoding`; the least support and confidence stand there too."""


@dataclass(frozen=True)
class Keep:
    """What to keep: entities with at least this salience, no more than `top` of them, changes with this support
    and this confidence."""

    min_salience: float | None = None
    top: int | None = None
    rater: str | None = None
    """Whose ratings decide; may be left out where a trace has one rater's only."""
    scope: Scope = "global"
    """Salience for the goal, or for each step by itself."""
    min_support: float | None = None
    min_confidence: float | None = None
    rater_parameter: str = "salience_rater"
    """What callers know `rater` as, for errors."""

    @property
    def by_salience(self) -> bool:
        """Whether ratings decide at all."""
        return self.min_salience is not None or self.top is not None

    def decided_by(self, rating: Salience) -> bool:
        """Whether a rating is of the rater and the scope that decide."""
        return (rating.step is None) == (self.scope == "global") and self.rater in (None, rating.rater)

    def __str__(self) -> str:
        """For a score's signature."""
        said = (
            ("", "" if self.min_salience is None else f">={self.min_salience:g}"),
            ("top", "" if self.top is None else f"{self.top}"),
            ("by ", self.rater or ""),
            ("", "" if self.scope == "global" else self.scope),
            ("support>=", "" if self.min_support is None else f"{self.min_support:g}"),
            ("confidence>=", "" if self.min_confidence is None else f"{self.min_confidence:g}"),
        )
        return " ".join(f"{word}{value}" for word, value in said if value)


def keep(
    trace: Trace,
    *,
    top: int | None = None,
    min_salience: float | None = None,
    min_support: float | None = None,
    min_confidence: float | None = None,
    rater: str | None = None,
    scope: Scope = "global",
) -> Trace:
    """The trace with its `top` most salient entities, those rated at least `min_salience`, or both; and with changes
    of at least `min_support`, the share of samples that agree on a change, and `min_confidence`, how likely it is
    right.

    A trace that `rater` has not rated is rated by the offline method first. `scope` "local" decides step by step.

    >>> keep(trace, top=5)
    >>> keep(trace, min_salience=3, min_confidence=0.5)
    """
    check_type("trace", trace, Trace)
    if top is None and min_salience is None and min_support is None and min_confidence is None:
        raise InputError("no filter given", fix="give `top`, `min_salience`, `min_support` or `min_confidence`")
    if top is not None and top < 1:
        raise InputError(f"`top` must be at least 1, not {top}", fix="give a positive number")
    return keep_salient(trace, Keep(min_salience, top, rater, scope, min_support, min_confidence, "rater"))


def keep_salient(trace: Trace, wanted: Keep) -> Trace:
    """What is wanted of a trace; one that the rater has not rated is rated offline first."""
    if wanted.by_salience and not has_ratings(trace, wanted):
        trace, wanted = rate_salience(trace, scope=wanted.scope), replace(wanted, rater=RATER)
    return keep_rated(trace, wanted)


def has_ratings(trace: Trace, wanted: Keep) -> bool:
    return any(map(wanted.decided_by, trace.salience))


def keep_rated(trace: Trace, wanted: Keep) -> Trace:
    """The trace without the changes of entities that do not matter enough, nor their names and ratings.

    An entity that has no readable rating is not known to matter, and goes. Of equals beyond `top` those with more
    changes stay, then the first by name, so that no order of the file decides. The provenance says what was kept, so
    that nobody takes what is left for all there was. Applying it again changes nothing.
    """
    if wanted.min_support is not None:
        trace = _at_least(trace, "support", wanted.min_support)
    if wanted.min_confidence is not None:
        trace = _at_least(trace, "confidence", wanted.min_confidence)
    if not wanted.by_salience:
        return trace
    wanted = replace(wanted, rater=_deciding(trace, wanted))
    name_of = canonical_names(trace)
    counted = Counter(_place(change, wanted.scope, name_of) for change in trace.changes)
    kept = _best(counted, _ratings(trace, wanted), wanted)
    changes = tuple(change for change in trace.changes if _place(change, wanted.scope, name_of) in kept)
    return _with_changes(trace, changes, {place[0] for place in kept}).replace(
        provenance=_noted(trace.provenance, wanted) if trace.changes else trace.provenance
    )


_SOURCES = {
    "support": "track the procedure again with several `samples`",
    "confidence": "track the procedure again with an embedded model (tiny, small or base)",
}
"""Where a share comes from."""


def _at_least(trace: Trace, share: Literal["support", "confidence"], least: float) -> Trace:
    """The changes with enough support or confidence; one without it is not known to have enough, and goes."""
    if not trace.changes:
        return trace
    name = f"min_{share}"
    noted = trace.provenance.decoding.get(name)
    found: list[float | None] = [getattr(change, share) for change in trace.changes]
    if not noted and all(value is None for value in found):
        raise InputError(
            f"`{name}` needs a {share} value for each change, but this trace has none",
            where=trace.id,
            fix=f"{_SOURCES[share]}, or leave out `{name}`",
        )
    enough = zip(trace.changes, found, strict=True)
    changes = tuple(change for change, value in enough if value is not None and value >= least)
    name_of = canonical_names(trace)
    note = max(least, noted) if isinstance(noted, int | float) else least
    return _with_changes(trace, changes, {name_of.get(change.entity, change.entity) for change in changes}).replace(
        provenance=trace.provenance.replace(decoding={**trace.provenance.decoding, name: note})
    )


def _with_changes(trace: Trace, changes: tuple[StateChange, ...], names: set[str]) -> Trace:
    """The trace with these changes, and with the clusters, entities and ratings of these names and no others."""
    left = {change.entity for change in changes} | names
    return trace.replace(
        changes=changes,
        clusters=tuple(cluster for cluster in trace.clusters if cluster.name in left),
        entities=tuple(entity for entity in trace.entities if entity.name in left),
        salience=tuple(rating for rating in trace.salience if rating.entity in left),
    )


def _place(change: StateChange, scope: Scope, name_of: Mapping[str, str]) -> EntityPlace:
    return name_of.get(change.entity, change.entity), None if scope == "global" else change.step


def _deciding(trace: Trace, wanted: Keep) -> str | None:
    """Whose ratings decide: the rater that was named, or the only one there is."""
    raters = sorted({one.rater for one in filter(wanted.decided_by, trace.salience)})
    if wanted.rater is None and len(raters) > 1:
        raise InputError(
            "this procedure has salience ratings by several raters",
            where=trace.id,
            fix=f"set `{wanted.rater_parameter}` to one of: {', '.join(raters)}",
        )
    return wanted.rater or next(iter(raters), None)


def _noted(provenance: Provenance, wanted: Keep) -> Provenance:
    notes = provenance.decoding.get(NOTE)
    before = notes.split("; ") if isinstance(notes, str) else []
    said = str(replace(wanted, min_support=None, min_confidence=None))
    return provenance.replace(decoding={**provenance.decoding, NOTE: "; ".join(dict.fromkeys([*before, said]))})


def _ratings(trace: Trace, wanted: Keep) -> dict[EntityPlace, float]:
    """What the chosen rater said, of entities by their clusters' names; of two names in a cluster the higher counts."""
    name_of = canonical_names(trace)
    found: dict[EntityPlace, float] = {}
    for one in filter(wanted.decided_by, trace.salience):
        if one.value is not None:
            place = name_of.get(one.entity, one.entity), one.step
            found[place] = max(found.get(place, one.value), one.value)
    return found


def _best(counted: Mapping[EntityPlace, int], ratings: Mapping[EntityPlace, float], wanted: Keep) -> set[EntityPlace]:
    """The places that are rated high enough, and among the highest: of the procedure, or of their step."""
    least = wanted.min_salience
    enough = [place for place in counted if place in ratings and (least is None or ratings[place] >= least)]
    if wanted.top is None:
        return set(enough)
    kept: set[EntityPlace] = set()
    taken: Counter[int | None] = Counter()
    for place in sorted(enough, key=lambda place: (-ratings[place], -counted[place], place[0])):
        if taken[place[1]] < wanted.top:
            taken[place[1]] += 1
            kept.add(place)
    return kept
