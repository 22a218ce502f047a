"""Ambiguous labels of list items: "a.", "iv.", "1.2", and "3" before a sentence.

Lines may also begin with "e. coli", "2.5 Liters" or "2 eggs". So these labels count only next to another in sequence,
on lines with the same indent.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from itertools import pairwise
from typing import NamedTuple

from fluents.segmentation.sentences import ends_sentence

_LABEL = re.compile(r"(\s*)(?:([a-z]|[ivx]{2,4})\.|(\d{1,6}(?:\.\d{1,3}){0,4}))\s+(\S.*)")
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_NEXT_LETTER = {*pairwise("abcdefghijklmnopqrstuvwxyz"), *pairwise(_ROMAN)}


class _Labelled(NamedTuple):
    indent: int
    label: str
    usual: str
    """The line with its label in the usual form."""


def with_usual_labels(lines: Sequence[str], literal: Container[int] = ()) -> list[str]:
    """The lines, with labels in sequence in their usual form: "a)", "1.2.". Lines with an index in `literal` stay."""
    usual = list(lines)
    last: dict[int, tuple[int, _Labelled]] = {}  # by indent
    for index, line in enumerate(lines):
        labelled = None if index in literal else _labelled(line)
        if labelled is None:
            continue
        place, before = last.get(labelled.indent, (index, labelled))
        if _follows(labelled.label, before.label):
            usual[place], usual[index] = before.usual, labelled.usual
        last[labelled.indent] = index, labelled
    return usual


def _labelled(line: str) -> _Labelled | None:
    match = _LABEL.fullmatch(line)
    if match is None:
        return None
    indent, letter, number, text = match.groups()
    if letter:
        return _Labelled(len(indent), letter, f"{indent}{letter}) {text}")
    return _Labelled(len(indent), number, f"{indent}{number}. {text}") if _is_instruction(number, text) else None


def _is_instruction(number: str, text: str) -> bool:
    """Whether the text after a number can be a step, rather than an amount: "2 eggs", "0.5 M NaCl"."""
    return text[0].isupper() and text[1:2].islower() and ("." in number or ends_sentence(text))


def _follows(label: str, before: str) -> bool:
    if label.isalpha() or before.isalpha():
        return (before, label) in _NEXT_LETTER
    *group, number = map(int, before.split("."))
    following = [[*group, number + 1]]
    if group:
        following.append([*group[:-1], group[-1] + 1, 1])
    return list(map(int, label.split("."))) in following
