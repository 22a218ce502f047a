"""The language of a text, and a warning where a model does not know it."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from functools import cache
from typing import Any

from fluents.errors import FluentsWarning
from fluents.records import Procedure

_NAMES = (
    "ar Arabic, bn Bengali, cs Czech, da Danish, de German, el Greek, en English, es Spanish, fa Persian, "
    "fi Finnish, fr French, he Hebrew, hi Hindi, hu Hungarian, id Indonesian, it Italian, ja Japanese, "
    "ko Korean, nl Dutch, no Norwegian, pl Polish, pt Portuguese, ro Romanian, ru Russian, sv Swedish, ta Tamil, "
    "th Thai, tr Turkish, uk Ukrainian, ur Urdu, vi Vietnamese, zh Chinese"
)
LANGUAGES: dict[str, str] = dict(name.split() for name in _NAMES.split(", "))
"""The languages told apart: ISO 639-1 code → English name."""

MAX_CHARACTERS = 5000
"""More text makes nothing surer."""
MARGIN = 20
"""By how much, in log probability, another language must be likelier than English. None of the 837 English procedures
of OpenPI and Proc2PDDL, and none of their 4,510 steps taken alone, comes near it."""


def language(text: str) -> str | None:
    """The ISO 639-1 code of the language of a text, or None where it cannot be told.

    >>> language("Die Zwiebeln schälen und in Butter anschwitzen.")
    'de'
    """
    if not any(character.isalpha() for character in text):
        return None
    ranked: list[tuple[str, float]] = _identifier().rank(text[:MAX_CHARACTERS])
    code, score = ranked[0]
    if code == "en" or score - dict(ranked)["en"] >= MARGIN:
        return code
    return None


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def warn_of_language(procedure: Procedure, known: Collection[str]) -> None:
    """Issue a FluentsWarning if a procedure is in a language other than those a model knows."""
    code = language(" ".join([procedure.goal, *procedure.steps]))
    if code is None or code in known:
        return
    names = " or ".join(LANGUAGES[name] for name in known)
    warnings.warn(
        f"the text seems to be in {LANGUAGES[code]}, but the embedded model knows {names} only: expect wrong changes. "
        f"A language model that knows {LANGUAGES[code]} can track it: give `model` and `base_url`",
        FluentsWarning,
        stacklevel=3,
    )
