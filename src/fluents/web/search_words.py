"""The words of a search: the stems that the store keeps of each text, and the condition that finds one of them."""

from __future__ import annotations

import string

from sqlalchemy import ColumnElement, SQLColumnExpression

from fluents.text.matchers import ARTICLES, words
from fluents.web.store import storable

_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "“”„‘’‚«»–—…•·→", " "))
_UNSPACED = "\u0e00"
"""From this letter on, scripts often write words without spaces between them: Thai, Chinese, Japanese."""


def stems(*texts: str) -> str:
    """What a search looks at: the stems of all words, each between two spaces, so that "hot" does not find "shot"."""
    return f" {' '.join(query_stems(' '.join(texts)))} "


def query_stems(text: str) -> tuple[str, ...]:
    """The stems of a text, as metrics compare words; but "pot/pan" are two of them."""
    return words(storable(text).translate(_PUNCTUATION), ARTICLES)


def has_stem(column: SQLColumnExpression[str], stem: str) -> ColumnElement[bool]:
    """Whether the stems in a column, as `stems` made them, have this one among them."""
    return column.like(_pattern(stem), escape="\\")


def _pattern(stem: str) -> str:
    escaped = stem.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%" if any(letter >= _UNSPACED for letter in stem) else f"% {escaped} %"
