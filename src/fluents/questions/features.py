"""Features of the offline method: numbers for every step of a procedure, given a question or an event.

Only the steps, the changes in them and the question count; all comparisons are between this step and the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from fluents.records import StateChange, Trace
from fluents.scoring.score import Floats
from fluents.text.embedders import Embedder
from fluents.text.names import name_words, porter_stem

Columns: TypeAlias = dict[str, Floats]
"""Name → a number for each step. What stands before the colon is the feature's group."""

_EMPTY_WORDS = frozenset(
    name_words(
        "i you he she it we they me my your his her its our their someone somebody person this that there what who "
        "which is are be am was were been do does did can could will would may might must should have has had get gets "
        "if so to of in on at with from for into by as up out off over and or not no without before after some all how"
    )
)
"""Words that any question may have, whatever it is about."""


def content_words(text: str) -> frozenset[str]:
    """The stems of the words that say what a text is about."""
    return frozenset(porter_stem(word) for word in name_words(text) if word not in _EMPTY_WORDS)


def features(trace: Trace, event: str, embedder: Embedder, *, with_states: bool) -> Columns:
    """Of every step; what the changes tell only where they may be used."""
    steps = trace.procedure.steps
    found = _of_text(steps, event, embedder)
    return found | _of_states(trace, event, embedder) if with_states else found


def _of_text(steps: Sequence[str], event: str, embedder: Embedder) -> Columns:
    count = len(steps)
    like: Floats = np.asarray(embedder(steps) @ embedder([event])[0], dtype=float)
    wanted = sorted(content_words(event))
    said = [sorted(content_words(step)) for step in steps]
    # A word that many steps share says less about each of them.
    rarity = {word: 1 / (1 + sum(word in words for words in said)) for word in wanted}
    shared = np.array([sum(rarity[word] for word in wanted if word in words) for words in said], dtype=float)
    shared /= sum(rarity.values()) or 1.0
    near = _nearness(wanted, said, embedder)
    earlier: set[str] = set()
    new = np.zeros(count)
    for step, words in enumerate(said):
        new[step] = len((set(words) - earlier) & set(wanted)) / max(1, len(wanted))
        earlier |= set(words)
    place = np.arange(count)
    return {
        "vectors: like the step": like - like.mean(),
        "vectors: the likest step": (like >= like.max()).astype(float),
        "vectors: like a later step": np.array([like[step + 1 :].max(initial=0) for step in place]),
        "words: near the step's": near - near.mean(),
        "words: shared": shared - shared.mean(),
        "words: new": new,
        "place: on the way": place / max(1, count - 1),
        "place: first": (place == 0).astype(float),
        "place: last": (place == count - 1).astype(float),
        "place: steps in all": np.full(count, np.log(count)),
    }


def _nearness(wanted: Sequence[str], said: Sequence[Sequence[str]], embedder: Embedder) -> Floats:
    """For every step, how near its nearest word is to each word of the event, on average."""
    vocabulary = sorted({word for words in said for word in words})
    if not wanted or not vocabulary:
        return np.zeros(len(said))
    likeness = embedder(vocabulary) @ embedder(wanted).T
    row = {word: place for place, word in enumerate(vocabulary)}
    return np.array([likeness[[row[word] for word in words]].max(axis=0).mean() if words else 0.0 for words in said])


def _of_states(trace: Trace, event: str, embedder: Embedder) -> Columns:
    count = len(trace.procedure.steps)
    towards, away, after, named, many = (np.zeros(count) for _ in range(5))
    wanted = content_words(event)
    for place in range(count):
        changes = trace.at(place + 1)
        if not changes:
            continue
        likeness = state_likeness(changes, event, embedder)
        gain = likeness[1] - likeness[0]
        towards[place] = gain[likeness.sum(axis=0).argmax()]
        away[place] = gain.min()
        after[place] = likeness[1].max()
        named[place] = any(wanted & content_words(change.entity) for change in changes)
        many[place] = np.log1p(len(changes))
    return {
        "states: towards the event": towards,
        "states: away from the event": away,
        "states: like the event": after - after.mean(),
        "states: entity named": named,
        "states: how many": many,
    }


def state_likeness(changes: Sequence[StateChange], event: str, embedder: Embedder) -> Floats:
    """How like the event each change's entity is in its state before (first row) and after (second row)."""
    vector = embedder([event])[0]
    sides = [
        [f"{change.entity} {change.before}" for change in changes],
        [f"{change.entity} {change.after}" for change in changes],
    ]
    return np.array([embedder(side) @ vector for side in sides], dtype=float)
