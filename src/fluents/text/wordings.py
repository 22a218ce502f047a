"""Whether two wordings say the same state."""

from __future__ import annotations

from fluents.text.matchers import Answer, rouge
from fluents.text.names import WORD, plain_name

ALIKE = 0.6
"""From this ROUGE-L on, two states are one in other words: "in bowl" and "in large bowl", not "hot water" and "cold
water"."""

_MINOR = frozenset({"a", "an", "the", "of", "and", "with", "is", "are", "was", "were", "be", "it", "its"}) | frozenset(
    {"in", "on", "at", "to", "into", "onto", "inside", "within", "from"}
)
"""Words that two states may share and still say different things: "in pan" is not "in oven"."""
_OPPOSING = frozenset(
    ("not", "no", "never", "without", "isn't", "aren't", "wasn't", "weren't", "non", "off", "out", "outside")
)
"""Words that turn what the others say into its contrary: "turned off" is not "turned on"."""


def same_state(one: str, other: str) -> bool:
    """Whether two states say the same, in the same words or in others that share most of what matters."""
    if plain_name(one) == plain_name(other):
        return True
    (ours, our_turn), (theirs, their_turn) = _content(one), _content(other)
    if not ours or not theirs or our_turn != their_turn:
        return False
    return rouge(Answer.of_text(ours), Answer.of_text(theirs)) >= ALIKE


def _content(state: str) -> tuple[str, bool]:
    """What is left of a state without minor and opposing words, and whether it had one of the latter."""
    words = [word.lower().replace("’", "'") for word in WORD.findall(state)]
    kept = [word for word in words if word not in _MINOR and word not in _OPPOSING]
    return " ".join(kept), not _OPPOSING.isdisjoint(words)
