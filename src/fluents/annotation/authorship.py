"""Who wrote which change: nobody is to judge their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from fluents.annotation.design import StageKind
from fluents.annotation.forms import same_words
from fluents.annotation.items import Decision, FormAnswer, Item, latest

WRITING_KINDS: frozenset[StageKind] = frozenset({"author", "audit", "correct"})
"""Stages in which people write changes."""
JUDGING_KINDS: frozenset[StageKind] = frozenset({"vet", "clean-changes"})
"""Stages in which people judge changes one by one."""

ChangeKey: TypeAlias = tuple[str, ...]
"""The procedure and the words of a change. Its step does not count: cleaning may have numbered the steps anew."""


def authors(items: Iterable[Item], decisions: Iterable[Decision]) -> dict[ChangeKey, set[str]]:
    """The authors of the changes that people wrote in a stage. An adjudicator is the author of what only they wrote."""
    by_id = {item.id: item for item in items}
    made = [one for one in latest(decisions) if one.item in by_id and not one.checks]
    found: dict[ChangeKey, set[str]] = {}
    for decision in sorted(made, key=lambda one: one.adjudicates):
        item = by_id[decision.item]
        for change in _written(item, decision.answer):
            key = _key(item, change)
            if not decision.adjudicates or key not in found:
                found.setdefault(key, set()).add(decision.author)
    return found


def change_key(item: Item) -> ChangeKey:
    """Which change an item asks about."""
    return _key(item, item.payload["change"])


def _key(item: Item, change: Mapping[str, Any]) -> ChangeKey:
    _, *words = same_words(change)
    return (item.procedure, *words)


def _written(item: Item, answer: FormAnswer) -> Iterator[Mapping[str, Any]]:
    """The changes in an answer that were not in the item's draft, and those of a blind pass."""
    if item.kind not in WRITING_KINDS:
        return
    draft = {_key(item, change) for change in item.payload.get("changes", ())}
    yield from (one for one in answer.get("changes", ()) if _key(item, one) not in draft)
    yield from answer.get("missing", ())
    yield from answer.get("blind") or ()
