"""The state-change template, both ways: printed by StateChange.sentence, parsed here.

A tracker's output is free text, so parsing never raises: what cannot be read comes back as a Reject.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from fluents.records import Reject, StateChange

NO_CHANGE_SENTENCE = "there will be no change"


@dataclass(frozen=True)
class NoChange:
    """What the no-change sentence means: the step was answered, and the answer is nothing."""


Parsed: TypeAlias = StateChange | NoChange | Reject

# Each marker is looked for on its own, left to right: one long regular expression would backtrack for minutes on a
# hostile line. A marker takes one white-space character on either side; more belongs to a field and is stripped there.
_OF = re.compile(r"\sof\s", re.IGNORECASE)
_PAST = re.compile(r"\s(?:was|were)\s", re.IGNORECASE)
_PRESENT = re.compile(r"\s(?:is|are)\s", re.IGNORECASE)
_MIDDLE = re.compile(r"\sbefore ?,?\sand\s", re.IGNORECASE)
_END = re.compile(r"\safter(?:wards?)?$", re.IGNORECASE)
_BOUNDARY = re.compile(r"(?<=\bafterwards)\.?[,;] ?(?=\S)|(?<=\bafterwards\.) (?=\S)|[\r\n]+")
_BULLET = re.compile(r"^(?:[-*•] |\d{1,3}[.)] )")


def parse(text: str, step: int, position: int | None = None) -> Parsed:
    """Read one answer: a templated sentence, the no-change sentence, or "entity | attribute | before | after"."""
    words = _BULLET.sub("", text.strip())
    if not words:
        return Reject(step=step, text=text, reason="the answer is empty", position=position)
    if words.lower().startswith(NO_CHANGE_SENTENCE):
        return NoChange()
    fields = _from_pipes(words) if "|" in words and not _END.search(words.rstrip(".!")) else _from_sentence(words)
    if isinstance(fields, str):
        return Reject(step=step, text=text, reason=fields, position=position)
    entity, attribute, before, after = fields
    change = StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)
    return change if change.templated == text else change.replace(raw=text)


def _from_pipes(words: str) -> tuple[str, str, str, str] | str:
    fields = words.strip(" |").split("|")
    if len(fields) != 4:
        return f'expected 4 fields separated by "|", found {len(fields)}'
    return _complete(*fields)


def _from_sentence(words: str) -> tuple[str, str, str, str] | str:
    words = words.rstrip(" .!;,")
    end = _END.search(words)
    if end is None:
        return 'the sentence does not end in "afterwards"'
    of = _OF.search(words)
    if of is None or of.start() == 0:
        return 'the sentence has no "attribute of entity"'
    middle = _MIDDLE.search(words, of.end())
    if middle is None:
        return 'the sentence has no "before and"'
    names_end = middle.start() + 1  # the verb's white space may be the one before "before"
    verb = _PAST.search(words, of.end(), names_end) or _PRESENT.search(words, of.end(), names_end)
    if verb is None:
        return 'the sentence has no verb ("was") after the entity'
    return _complete(
        words[of.end() : verb.start()],
        words[: of.start()],
        words[verb.end() : middle.start()],
        words[middle.end() : end.start()],
    )


def _complete(*fields: str) -> tuple[str, str, str, str] | str:
    entity, attribute, before, after = (field.strip() for field in fields)
    for name, field in (("entity", entity), ("attribute", attribute), ("before", before), ("after", after)):
        if not field:
            return f"no {name}"
    return entity, attribute, before, after


def parse_all(texts: Iterable[str], step: int) -> tuple[list[StateChange], list[Reject]]:
    """Read all answers of a step: (changes, rejects)."""
    said = list(texts)
    parsed = [parse_among(text, step, position, len(said)) for position, text in enumerate(said)]
    return [one for one in parsed if isinstance(one, StateChange)], [one for one in parsed if isinstance(one, Reject)]


def parse_among(text: str, step: int, position: int, count: int) -> StateChange | Reject | None:
    """Read one of `count` answers. The no-change sentence is nothing (None) where it is the only answer.

    Among others it is a reject: the published evaluator of OpenPI counts it like any other answer.
    """
    if count == 1 and is_no_change(text):
        return None
    parsed = parse(text, step, position)
    if isinstance(parsed, NoChange):
        return Reject(
            step=step,
            text=text,
            reason="this answer says that nothing changes, but the step also has other answers",
            position=position,
        )
    return parsed


def is_no_change(text: str) -> bool:
    """Whether a text is the no-change sentence, as the published evaluator of OpenPI tells it."""
    return text.lower().strip().startswith(NO_CHANGE_SENTENCE)


def split_answers(text: str) -> list[str]:
    """Part a generation that runs sentences together; a comma inside a value is no boundary."""
    return [part.strip() for part in _BOUNDARY.split(text) if part.strip()]
