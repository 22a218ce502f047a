"""How alike two answers are: exact match, BLEU-2, ROUGE-L, METEOR, and each of them on the states alone. How alike two
states are, and what changes add to the states that are known.

An `Answer` is normalised once and remembers what the matchers ask of it, so that comparing every prediction of a step
with every gold answer costs a few set operations a pair.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TypeAlias

from fluents.errors import UnknownNameError
from fluents.records import StateChange
from fluents.text.names import WORD, plain_name, porter_stem
from fluents.text.template import parse

TEMPLATE_WORDS = frozenset({"and", "was", "is", "before", "afterwards", "after", "of"})
"""What the published evaluator drops wherever it stands. It keeps "were" and the articles."""
ARTICLES = frozenset({"a", "an", "the"})

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
stem = lru_cache(maxsize=2**16)(porter_stem)


def words(text: str, dropped: frozenset[str]) -> tuple[str, ...]:
    """Lower-case stems without punctuation; words that are to be dropped, or leave no stem ("s"), are left out."""
    kept = (word for word in text.lower().translate(_NO_PUNCTUATION).split() if word not in dropped)
    return tuple(stemmed for word in kept if (stemmed := stem(word)))


class Answer:
    """One answer as matchers see it: its normalised words, whole (compat) or field by field (strict)."""

    def __init__(self, source: StateChange | str, fields: tuple[tuple[str, ...], ...], dropped: frozenset[str]) -> None:
        self.fields = fields
        self.tokens = fields[0] if len(fields) == 1 else tuple(token for field in fields for token in field)
        self._source = source
        self._dropped = dropped

    @classmethod
    def of_sentence(cls, source: StateChange | str, dropped: frozenset[str] = TEMPLATE_WORDS) -> Answer:
        """The whole sentence, as the published evaluator takes it."""
        sentence = source if isinstance(source, str) else source.sentence
        return cls(source, (words(sentence, dropped),), dropped)

    @classmethod
    def of_change(cls, change: StateChange) -> Answer:
        """The four fields, in the template's order. Inside a field only articles are dropped."""
        texts = (change.attribute, change.entity, change.before, change.after)
        return cls(change, tuple(words(text, ARTICLES) for text in texts), ARTICLES)

    @classmethod
    def of_text(cls, text: str) -> Answer:
        """A text that is no templated sentence: neither the template's words nor articles count."""
        return cls.of_sentence(text, TEMPLATE_WORDS | ARTICLES)

    @cached_property
    def states(self) -> tuple[Answer, Answer] | None:
        """The before and the after state as answers of their own; None if the sentence cannot be read."""
        change = parse(self._source, step=1) if isinstance(self._source, str) else self._source
        if not isinstance(change, StateChange):
            return None
        before, after = (Answer.of_sentence(text, self._dropped) for text in (change.before, change.after))
        return before, after

    @cached_property
    def unigrams(self) -> frozenset[Hashable]:
        return _occurrences(self.tokens)

    @cached_property
    def bigrams(self) -> frozenset[Hashable]:
        return _occurrences(tuple(pairwise(self.tokens)))

    @cached_property
    def places(self) -> dict[str, int]:
        """Token → a number whose bits are set where it stands."""
        found: dict[str, int] = {}
        for place, token in enumerate(self.tokens):
            found[token] = found.get(token, 0) | 1 << place
        return found


def _occurrences(items: Sequence[Hashable]) -> frozenset[Hashable]:
    """The items, repeated ones told apart by a number: the intersection of two such sets is the clipped count."""
    distinct = frozenset(items)
    if len(distinct) == len(items):
        return distinct
    count: Counter[Hashable] = Counter()
    found: set[Hashable] = set()
    for item in items:
        found.add((item, count[item]) if count[item] else item)
        count[item] += 1
    return frozenset(found)


Matcher: TypeAlias = Callable[[Answer, Answer], float]
"""(gold, predicted) → 0 to 1. Both empty is 1, one empty 0."""


def exact(gold: Answer, pred: Answer) -> float:
    """1 if the normalised answers are equal, in strict mode field by field."""
    return float(gold.fields == pred.fields)


def bleu(gold: Answer, pred: Answer) -> float:
    """BLEU-2 with the smoothing constants of the published evaluator (its name there is plain BLEU)."""
    length, reference = len(pred.tokens), len(gold.tokens)
    if not length or not reference:
        return float(length == reference)
    common = len(gold.unigrams & pred.unigrams)
    common_pairs = len(gold.bigrams & pred.bigrams) if common > 1 else 0
    precision = (common + 1e-15) / (length + 1e-9) * (common_pairs + 1e-15) / (length - 1 + 1e-9)
    ratio = (length + 1e-15) / (reference + 1e-9)
    return math.sqrt(precision) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1)


_ROUGE_BETA_SQUARED = 1.2**2


def rouge(gold: Answer, pred: Answer) -> float:
    """ROUGE-L with β = 1.2."""
    length, reference = len(pred.tokens), len(gold.tokens)
    if not length or not reference:
        return float(length == reference)
    common = longest_common_subsequence(gold, pred)
    if not common:
        return 0.0
    precision, recall = common / length, common / reference
    return (1 + _ROUGE_BETA_SQUARED) * precision * recall / (recall + _ROUGE_BETA_SQUARED * precision)


def longest_common_subsequence(gold: Answer, pred: Answer) -> int:
    """Its length, by Hyyrö's bit-parallel recurrence: a bit turns 0 where the subsequence grows by a gold token."""
    common = len(gold.unigrams & pred.unigrams)
    if common < 2:
        return common
    everything = (1 << len(gold.tokens)) - 1
    row = everything
    for token in pred.tokens:
        if places := gold.places.get(token):
            grown = row & places
            row = (row + grown) | (row - grown)
    return len(gold.tokens) - (row & everything).bit_count()


def meteor_stem(gold: Answer, pred: Answer) -> float:
    """METEOR (α = .9, β = 3, γ = .5) on stems and without WordNet's synonyms, aligned as NLTK aligns.

    As answers are stemmed before, METEOR's exact and stem stages are one.
    """
    length, reference = len(pred.tokens), len(gold.tokens)
    if not length or not reference:
        return float(length == reference)
    places = _aligned(gold, pred)
    matches = sum(place is not None for place in places)
    if not matches:
        return 0.0
    chunks = matches - sum(a is not None and b == a + 1 for a, b in pairwise(places))
    precision, recall = matches / length, matches / reference
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    return mean * (1 - 0.5 * (chunks / matches) ** 3)


def _aligned(gold: Answer, pred: Answer) -> list[int | None]:
    """For every predicted token the place of its gold token: from the end, the last equal one that is free."""
    free = dict(gold.places)
    places: list[int | None] = []
    for token in reversed(pred.tokens):
        last = free.get(token, 0).bit_length() - 1
        if last >= 0:
            free[token] ^= 1 << last
        places.append(last if last >= 0 else None)
    return places[::-1]


def on_states(match: Matcher) -> Matcher:
    """The formula printed in the 2020 paper: the mean of the overlaps of the before and of the after states.

    Entity and attribute do not enter it. Answers whose states cannot be read match only their like.
    """

    def match_states(gold: Answer, pred: Answer) -> float:
        if gold.states is None or pred.states is None:
            return float(gold.fields == pred.fields)
        (gold_before, gold_after), (pred_before, pred_after) = gold.states, pred.states
        return (match(gold_before, pred_before) + match(gold_after, pred_after)) / 2

    return match_states


_WHOLE: dict[str, Matcher] = {"exact": exact, "bleu": bleu, "rouge": rouge, "meteor-stem": meteor_stem}

MATCHERS: dict[str, Matcher] = _WHOLE | {f"{name}-states": on_states(match) for name, match in _WHOLE.items()}
"""The first three are the published ones; the names of the others say how they differ."""

PUBLISHED = ("exact", "bleu", "rouge")


def named(names: Iterable[str]) -> dict[str, Matcher]:
    """The matchers of these names, in their order."""
    wanted = list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in MATCHERS]
    if unknown or not wanted:
        what = f"unknown matcher {unknown[0]!r}" if unknown else "no matcher given"
        raise UnknownNameError(what, fix=f"choose one of: {', '.join(MATCHERS)}")
    return {name: MATCHERS[name] for name in wanted}


# Whether two wordings say the same state

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


class KnownStates:
    """What is known so far: how each entity is called, and the last state of each of its attributes."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._states: dict[tuple[str, str], str] = {}

    def enter(self, changes: Iterable[StateChange]) -> list[StateChange]:
        """The changes of the next step, entities called as before, and states beginning where they were left.

        Whatever a change says was before, it becomes the last known "after": the model sees one step at a time and does
        not know what it said of the earlier ones. A change into the state that is known already is none ("hot" again),
        and is dropped; so is a second one that says what an earlier of the step says.
        """
        entered: dict[tuple[str, str, str], StateChange] = {}
        for change in changes:
            change = change.replace(entity=self._names.setdefault(plain_name(change.entity), change.entity))
            known = self._states.get(_topic(change))
            if known is not None:
                if same_state(known, change.after):
                    continue
                change = change.replace(before=known)
            if plain_name(change.before) != plain_name(change.after):
                entered.setdefault((*_topic(change), plain_name(change.after)), change)
        for change in entered.values():
            self._states[_topic(change)] = change.after
        return list(entered.values())


def _topic(change: StateChange) -> tuple[str, str]:
    return plain_name(change.entity), plain_name(change.attribute)
