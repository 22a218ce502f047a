"""Whether the text has named an entity: as a span of its words, in this step or an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fluents.records import Procedure
from fluents.text.names import name_words


def mentioned(procedure: Procedure, step: int, entity: str) -> bool:
    """Whether the entity's words stand in a row in one of the steps 1 to `step`.

    Case, articles and the ends of regular plurals do not count; words are whole ("pan" is not in "company").
    """
    return any(named_in(text, entity) for text in procedure.steps[: max(0, step)])


def named_in(text: str, entity: str) -> bool:
    """Whether the entity's words stand in a row in a text, by the same rule."""
    wanted = name_words(entity)
    return bool(wanted) and _contains(name_words(text), wanted)


def _contains(words: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(words[start : start + len(wanted)] == wanted for start in _starts(words, wanted[0]))


def _starts(words: Sequence[str], first: str) -> Iterator[int]:
    return (place for place, word in enumerate(words) if word == first)
