"""Questions and answers in tokens. A row is one question with its answer; a round is rows asked side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

from fluents.neural.inputs import (
    Key,
    NeuralSystem,
    StepQuestion,
    Style,
    about,
    entities,
    key,
    pieces,
    question,
    sentences,
)
from fluents.records import StateChange, Trace

MOST_TOKENS = 512
"""Of a question or an answer, where a model would take more."""


@dataclass(frozen=True)
class Span:
    """The tokens of an answer, counted from 0, that express the change of one (entity, attribute)."""

    key: Key
    start: int
    end: int


@dataclass(frozen=True)
class EncodedRow:
    """One question, and its answer where it is known."""

    owner: int
    """Which procedure of the batch it belongs to."""
    asked: tuple[int, ...]
    answered: tuple[int, ...] = ()
    spans: tuple[Span, ...] = ()


Round: TypeAlias = Sequence[EncodedRow]


class Codec:
    """Text to tokens and back, as a model takes them; too long a question loses its oldest steps."""

    def __init__(self, tokenizer: Any, config: Any) -> None:
        self.tokenizer = tokenizer
        self.causal = not config.is_encoder_decoder
        self.before, self.after = _frame(tokenizer)
        if tokenizer.eos_token_id not in self.after:
            self.end = [*self.after, tokenizer.eos_token_id]
        else:
            self.end = self.after
        room = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or MOST_TOKENS
        if self.causal:  # both stand in one sequence
            self.most_answered = min(room // 2, MOST_TOKENS)
            self.most_asked = min(room - self.most_answered, MOST_TOKENS)
        else:
            self.most_answered = self.most_asked = min(room, MOST_TOKENS)
        self._length = lru_cache(maxsize=8192)(lambda text: len(self.plain(text)))

    def plain(self, text: str) -> list[int]:
        """The tokens of a text, with nothing around them."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def asked(self, asking: StepQuestion) -> tuple[int, ...]:
        """A question in tokens: the oldest steps go first, then the beginning of what is left."""
        after = [] if self.causal else self.after
        room = self.most_asked - len(self.before) - len(after)
        left = room - self._length(asking.head) - self._length(asking.tail)
        kept = 0
        for text in reversed(asking.past):
            left -= self._length(text) + 1  # one more, as pieces may join differently than they stand alone
            if left < 0:
                break
            kept += 1
        ids = self.plain(asking.text(kept))
        return (*self.before, *ids[max(0, len(ids) - room) :], *after)

    def answered(self, changes: Sequence[StateChange]) -> tuple[tuple[int, ...], tuple[Span, ...]]:
        """The answer in tokens and where in it every change stands. Sentences that do not fit are left out."""
        keys = {sentence: key(change) for change in changes for sentence in sentences([change])}
        lines = sentences(changes)
        ids = [] if self.causal else list(self.before)
        spans = []
        for line, piece in zip(lines, pieces(lines), strict=True):
            tokens = self.plain(f" {piece}" if self.causal and line is lines[0] else piece)
            if len(ids) + len(tokens) + len(self.end) > self.most_answered:
                break
            if line in keys:
                spans.append(Span(keys[line], len(ids), len(ids) + len(tokens)))
            ids += tokens
        return (*ids, *self.end), tuple(spans)

    def text(self, ids: Sequence[int]) -> str:
        """What a model wrote."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)).strip()

    def row(self, owner: int, asking: StepQuestion, changes: Sequence[StateChange]) -> EncodedRow:
        """A question with its answer."""
        ids, spans = self.answered(changes)
        return EncodedRow(owner, self.asked(asking), ids, spans)


def _frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """What a tokenizer puts before and after a text."""
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    for start in range(len(whole) - len(plain) + 1):
        if whole[start : start + len(plain)] == plain:
            return whole[:start], whole[start + len(plain) :]
    return [], []


def taught(trace: Trace, system: NeuralSystem, style: Style, codec: Codec) -> list[list[EncodedRow]]:
    """A gold procedure's rows, a round for each of its annotated steps; history is gold as well."""
    rounds = []
    for step, _, changes in trace.by_step():
        states = [trace.at(earlier) for earlier in range(1, step)] if system.states else None
        whom: Iterable[str | None] = entities(changes) if system.entity else (None,)
        rows = []
        for entity in whom:
            asking = question(trace.procedure, step, style, states=states, entity=entity)
            rows.append(codec.row(0, asking, changes if entity is None else about(changes, entity)))
        rounds.append(rows)
    return rounds


def side_by_side(units: Sequence[Sequence[Round]]) -> list[list[EncodedRow]]:
    """Several procedures as one batch: the first rounds of all together, then the second, and so on."""
    most = max(map(len, units), default=0)
    return [
        [replace(row, owner=owner) for owner, rounds in enumerate(units) if turn < len(rounds) for row in rounds[turn]]
        for turn in range(most)
    ]
