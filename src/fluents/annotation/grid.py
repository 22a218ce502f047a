"""The state grid, entity × step, as people fill it in: states carried on, contradictions, names, what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from fluents.records import StateChange, Trace
from fluents.text.matchers import same_state
from fluents.text.names import bare_name

NameKind: TypeAlias = Literal["entity", "attribute"]

LIKELY = 0.1
"""How likely two names must mean one thing to be offered as the same. A wrong offer costs a glance: at this value, 61 %
of the offers for entities of OpenPI2.0's development set are right (72 % for attributes), and 47 % (27 %) of the names
that have an earlier name get an offer."""

SURELY = 0.3
"""From here on a name counts as mentioned: 78 % of such pairs of entities are in one cluster."""


class Contradiction(NamedTuple):
    """A change that begins with another state than the one in which an earlier step left the attribute."""

    step: int
    entity: str
    attribute: str
    before: str
    expected: str
    since: int
    """The earlier step."""


class SameName(NamedTuple):
    """An earlier name that may mean the same."""

    name: str
    score: float


class RecallPrompt(NamedTuple):
    """A change of a draft whose entity nobody mentioned."""

    entity: str
    attribute: str
    step: int


def carried_before(changes: Iterable[StateChange], step: int, entity: str, attribute: str) -> str | None:
    """The state in which the last change of an earlier step left this attribute of this entity; None if none did."""
    left = _left_before(changes, step, entity, attribute)
    return left[-1].after if left else None


def contradictions(changes: Sequence[StateChange]) -> list[Contradiction]:
    """The changes that begin with another state than an earlier step left; other words for the same state do not count.

    Where that step says several things of the attribute, agreeing with one of them is enough.
    """
    found = []
    for change in sorted(changes, key=lambda one: one.step):
        left = _left_before(changes, change.step, change.entity, change.attribute)
        if left and not any(same_state(one.after, change.before) for one in left):
            last = left[-1]
            found.append(
                Contradiction(change.step, change.entity, change.attribute, change.before, last.after, last.step)
            )
    return found


def _left_before(changes: Iterable[StateChange], step: int, entity: str, attribute: str) -> list[StateChange]:
    """The changes of this attribute in the last step before this one that has any."""
    topic = (bare_name(entity), bare_name(attribute))
    earlier = [one for one in changes if one.step < step and (bare_name(one.entity), bare_name(one.attribute)) == topic]
    last = max((one.step for one in earlier), default=0)
    return [one for one in earlier if one.step == last]


def same_as(name: str, known: Iterable[str], kind: NameKind = "entity", least: float = LIKELY) -> list[SameName]:
    """The known names that likely mean the same as this one, the likeliest first. The name itself is not among them."""
    others = [other for other in dict.fromkeys(known) if other.strip() and other != name]
    if not name.strip() or not others:
        return []
    wanted = bare_name(name)
    equal = [SameName(other, 1.0) for other in others if bare_name(other) == wanted]
    rest = [other for other in others if bare_name(other) != wanted]
    likely = zip(rest, _likelihoods(name, rest, kind), strict=True)
    near = sorted((SameName(other, score) for other, score in likely if score >= least), key=lambda one: -one.score)
    return equal + near


def _likelihoods(name: str, others: Sequence[str], kind: NameKind) -> list[float]:
    """By the weights of the offline method for canonical names, with the names alone as evidence."""
    from fluents.canonicalisation.name_facts import NameGroup
    from fluents.canonicalisation.pair_features import PairFeatures
    from fluents.canonicalisation.pair_scorer import shipped_scorer
    from fluents.text.embedders import StaticEmbedder

    if not others:
        return []
    scorer = shipped_scorer("entities" if kind == "entity" else "attributes")
    groups = [NameGroup((one,)) for one in (name, *others)]
    return [float(score) for score in scorer.likely(PairFeatures(groups, StaticEmbedder()))[0, 1:]]


def recall_prompts(draft: Trace, changes: Iterable[StateChange]) -> list[RecallPrompt]:
    """The entities of a draft that nobody mentioned, each with its first change; what the draft doubts is left out."""
    mentioned = list(dict.fromkeys(change.entity for change in changes))
    found: list[RecallPrompt] = []
    for change in sorted(draft.changes, key=lambda one: one.step):
        if change.is_unsure or change.entity in (prompt.entity for prompt in found):
            continue
        named = [*mentioned, *(prompt.entity for prompt in found)]
        if change.entity not in named and not same_as(change.entity, named, least=SURELY):
            found.append(RecallPrompt(change.entity, change.attribute, change.step))
    return found
