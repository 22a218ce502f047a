"""Which procedures may be shown as examples: never the one that the question is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from fluents.errors import InputError
from fluents.records import Procedure
from fluents.text.names import one_line
from fluents.text.plurals import counted

T = TypeVar("T")


def of_others(drawn: Iterable[tuple[Procedure, T]], procedure: Procedure, count: int, source: str) -> list[T]:
    """The first `count` of other procedures than this; an InputError if there are fewer."""
    others = [one for shown, one in drawn if not is_same(shown, procedure)][:count]
    if len(others) < count:
        raise InputError(
            f"`shots` is {count}, but `examples` has {counted(len(others), 'other procedure')} to show",
            where=source or None,
            fix="set `shots` lower, or `examples` to a larger file or dataset",
        )
    return others


def is_same(one: Procedure, other: Procedure) -> bool:
    """One text has several ids in the datasets that were made from one another: goal or steps give it away."""
    if one.id == other.id or _plain(one.steps) == _plain(other.steps):
        return True
    return bool(one.goal.strip()) and _plain([one.goal]) == _plain([other.goal])


def _plain(texts: Iterable[str]) -> list[str]:
    return [one_line(text).casefold() for text in texts]
