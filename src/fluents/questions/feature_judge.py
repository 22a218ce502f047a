"""Questions answered without a language model: a linear model over the steps, their changes and the question.

The weights are those of a multinomial logistic regression, in weights.json; `benchmarks/crepe.py --write` makes that
file from CREPE's development split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fluents.llm import Usage
from fluents.questions.features import Columns, content_words, features, state_likeness
from fluents.records import Record, StateChange, Trace
from fluents.scoring.score import Floats
from fluents.task_records import CANNOT_TELL, NO_CHANGE, Likelihood
from fluents.text.embedders import Embedder, StaticEmbedder
from fluents.text.names import WORD, name_words

NAME = "offline-2"
"""Named with its version in every answer: other weights get another number."""
WEIGHTS = Path(__file__).parent / "weights.json"

LABELS = (NO_CHANGE, "less likely", "more likely")
LIKE = 0.4
"""Similarity from which a change has to do with a question."""
MOST_SUPPORT = 3
"""Changes that are named as support of a judgement."""
NEGATIONS = frozenset({"not", "no", "never", "without", "cannot", "can't", "isn't", "aren't", "don't", "doesn't"})
LOW, HIGH = 2, 4
"""Where a rating begins that first rises, or first falls: the method sees changes, and no absolute likelihood."""


class LinearModel(Record):
    """Multinomial logistic regression over standardised features."""

    features: tuple[str, ...]
    means: tuple[float, ...]
    spreads: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    """A row for each label, with a number for each feature and the intercept last."""
    odds: tuple[float, ...]
    """What the probability of each label is multiplied with before the highest wins: rare labels count for more."""

    def probabilities(self, columns: Columns) -> Floats:
        """A row for each step, with a number for each label."""
        rows = np.column_stack([columns[name] for name in self.features])
        rows = (rows - np.array(self.means)) / np.array(self.spreads)
        return _softmax(_with_intercept(rows) @ np.array(self.weights).T)

    def labels(self, columns: Columns) -> list[str]:
        """One for each step."""
        return [LABELS[best] for best in (self.probabilities(columns) * np.array(self.odds)).argmax(axis=1)]


class ShippedModels(Record):
    """The models in weights.json, for judgements without and with states."""

    without_states: LinearModel
    with_states: LinearModel


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=float)


def _with_intercept(rows: Floats) -> Floats:
    return np.hstack([rows, np.ones((len(rows), 1))])


def fit(columns: Columns, labels: NDArray[np.intp], penalty: float) -> LinearModel:
    """The model learnt from labelled steps, with equal odds; a larger penalty keeps its weights smaller."""
    rows = np.column_stack(list(columns.values()))
    means, spreads = rows.mean(axis=0), rows.std(axis=0)
    spreads = np.where(spreads > 1e-9, spreads, 1.0)
    inputs, wanted = _with_intercept((rows - means) / spreads), np.eye(len(LABELS))[labels]
    free = np.ones(inputs.shape[1])
    free[-1] = 0  # an intercept is not held down: it says how often a label comes

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(len(LABELS), -1)
        likely = _softmax(inputs @ weights.T)
        value = -np.log(likely[wanted > 0] + 1e-12).sum() + penalty / 2 * (free * weights**2).sum()
        return float(value), ((likely - wanted).T @ inputs + penalty * free * weights).ravel()

    best = minimize(loss, np.zeros(len(LABELS) * inputs.shape[1]), jac=True, method="L-BFGS-B").x
    return LinearModel(
        features=tuple(columns),
        means=_short(means),
        spreads=_short(spreads),
        weights=tuple(map(_short, best.reshape(len(LABELS), -1))),
        odds=(1.0,) * len(LABELS),
    )


def _short(numbers: Floats) -> tuple[float, ...]:
    """To four digits: more would be noise in a file."""
    return tuple(float(f"{number:.4g}") for number in numbers)


@lru_cache(maxsize=1)
def shipped_models() -> ShippedModels:
    """The models that come with fluents."""
    return ShippedModels.model_validate_json(WEIGHTS.read_bytes())


class Evidence(NamedTuple):
    """What in a step has to do with a question."""

    words: tuple[str, ...]
    """Of the question, as the step's text has them."""
    changes: tuple[StateChange, ...]
    """The likest first; those that settle the question before all others."""
    settled: str | None
    """The label, where a state is what the question asks about, in its own words."""


class FeatureJudge:
    """Judges by the weights that come with fluents. What rests on nothing in a step or its changes, it cannot tell.

    Where states settle a question in its own words, they decide alone: "Is the soup smooth?" is answered by the soup
    that goes from chunky to smooth.
    """

    name = NAME
    prompt = None
    usage = Usage()

    def __init__(self, embedder: Embedder | None = None, model: LinearModel | None = None) -> None:
        self._embedder, self._model = embedder or StaticEmbedder(), model

    def judgements(self, trace: Trace, events: Sequence[str], *, with_states: bool) -> list[Likelihood]:
        """Of every event, before step 1 and after each step."""
        model = self._model or (shipped_models().with_states if with_states else shipped_models().without_states)
        found: list[Likelihood] = []
        for event in events:
            seen = [self._evidence(trace, step, event, with_states) for step in range(len(trace.procedure.steps))]
            settled = any(one.settled for one in seen)
            if settled:
                labels = [one.settled or NO_CHANGE for one in seen]
            else:
                labels = model.labels(features(trace, event, self._embedder, with_states=with_states))
            found += _judged(event, labels, seen, (1, 5) if settled else (LOW, HIGH))
        return found

    def _evidence(self, trace: Trace, place: int, event: str, with_states: bool) -> Evidence:
        wanted = content_words(event)
        words = (word for word in WORD.findall(trace.procedure.steps[place]) if content_words(word) & wanted)
        changes = trace.at(place + 1) if with_states else ()
        settling = {change: label for change in changes if (label := _settled(change, wanted))}
        related = [*settling, *(change for change in self._related(changes, event, wanted) if change not in settling)]
        label = next(iter(settling.values()), None)
        if label and NEGATIONS & set(name_words(event)):
            label = LABELS[1] if label == LABELS[2] else LABELS[2]
        return Evidence(tuple(dict.fromkeys(words)), tuple(related[:MOST_SUPPORT]), label)

    def _related(self, changes: Sequence[StateChange], event: str, wanted: frozenset[str]) -> list[StateChange]:
        if not changes:
            return []
        likeness = state_likeness(changes, event, self._embedder).max(axis=0)
        related = [
            (like, change)
            for like, change in zip(likeness, changes, strict=True)
            if like >= LIKE or wanted & content_words(f"{change.entity} {change.after} {change.before}")
        ]
        return [change for _, change in sorted(related, key=lambda one: -one[0])]


def _settled(change: StateChange, wanted: frozenset[str]) -> str | None:
    """The label of a change that leads to, or away from, the state that the question names and nothing else."""
    entity = content_words(change.entity)
    asked = wanted - entity - content_words(change.attribute)
    if not asked or not entity & wanted:
        return None
    is_so = [asked <= content_words(state) for state in (change.before, change.after)]
    return {(False, True): LABELS[2], (True, False): LABELS[1]}.get((is_so[0], is_so[1]))


def _judged(
    event: str, labels: Sequence[str], evidence: Sequence[Evidence], ends: tuple[int, int]
) -> Iterator[Likelihood]:
    """Ratings from labels: every change is a step on the scale, or, where states settle it, the whole way."""
    told = [label if seen.words or seen.changes else CANNOT_TELL for label, seen in zip(labels, evidence, strict=True)]
    moves = [(step, label) for step, label in enumerate(told, start=1) if label in LABELS[1:]]
    low, high = ends
    rating: int | None = None
    reason = "no step makes it more or less likely"
    if moves:
        step, label = moves[0]
        rating = low if label == "more likely" else high
        reason = f"step {step} is the first that matters, and makes it {label}"
    change = NO_CHANGE if moves else CANNOT_TELL
    yield Likelihood(step=0, change=change, event=event, predicted=True, rating=rating, reason=reason)
    for step, (label, seen) in enumerate(zip(told, evidence, strict=True), start=1):
        if rating is not None and label in LABELS[1:]:
            size = 4 if seen.settled else 1
            rating = min(5, rating + size) if label == "more likely" else max(1, rating - size)
        yield Likelihood(
            step=step,
            change=label,
            event=event,
            predicted=True,
            rating=rating,
            reason=_reason(seen, guessed=label in LABELS[1:] and not seen.settled),
            support=seen.changes,
        )


def _reason(seen: Evidence, *, guessed: bool) -> str:
    if not seen.words and not seen.changes:
        return "nothing in the step or its states is relevant"
    said = [f"the step mentions {', '.join(seen.words)}"] if seen.words else []
    said += [
        f"{one.attribute} of {one.entity} goes from {one.before or '?'} to {one.after or '?'}" for one in seen.changes
    ]
    return ("a guess from similarity: " if guessed else "") + "; ".join(said)
