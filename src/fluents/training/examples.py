"""Training examples: what the model reads and what it should write, in one of two forms of prompt."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fluents.prompts import local, transcript
from fluents.prompts.local import Style
from fluents.records import Procedure, Trace

PromptForm = Literal["transcript", "steps"]
"""One transcript of a whole procedure, or one prompt for each step."""

VERSIONS: dict[PromptForm, str] = {"transcript": transcript.VERSION, "steps": local.VERSION}


class Piece(NamedTuple):
    """A part of what the model reads. It learns to write the pieces that are `taught`, each with the end token."""

    text: str
    taught: bool


Fields = tuple[str, str, str, str]

_SORTED: dict[Style, Style] = {"plain": "sorted", "clean": "clean sorted", "complete": "sorted complete"}


@dataclass(frozen=True)
class StepExample:
    """One step and its changes."""

    procedure: Procedure
    step: int
    changes: tuple[Fields, ...]
    style: Style = "plain"

    def pieces(self) -> tuple[Piece, ...]:
        """For measuring: in an order that stays the same, with the true count."""
        rng = random.Random(f"{self.procedure.id}||{self.step}")
        return self._render(rng.sample(self.changes, len(self.changes)), self.style, count=len(self.changes))

    def drawn(self, rng: random.Random, *, unknown_count: float, one_pass: float) -> tuple[Piece, ...]:
        """For training.

        Sampling wants the changes in random order, so that no entity is favoured; a single pass wants them sorted, so
        that it does not repeat itself. A share of the examples (`one_pass`) teaches the second under its own name.
        """
        single = rng.random() < one_pass
        if single:
            changes = sorted(dict.fromkeys(self.changes), key=lambda fields: [field.lower() for field in fields])
        else:
            changes = rng.sample(self.changes, len(self.changes))
        count = None if rng.random() < unknown_count else len(changes)
        return self._render(changes, _SORTED[self.style] if single else self.style, count)

    def _render(self, changes: Sequence[Fields], style: Style, count: int | None) -> tuple[Piece, ...]:
        prompt = local.prompt(self.procedure, self.step, style=style, count=count)
        return Piece(prompt, taught=False), Piece(local.target(changes), taught=True)


@dataclass(frozen=True)
class TranscriptExample:
    """A procedure and the changes of all its steps, most important first. It is rendered in one way only."""

    trace: Trace
    style: Style = "plain"

    def pieces(self) -> tuple[Piece, ...]:
        """Steps and answers in turn, as far as a transcript holds them."""
        found: list[Piece] = []
        read = ""
        growing = transcript.Transcript(self.trace.procedure)
        for _, _, changes in self.trace.by_step():
            prompt = growing.prompt
            if growing.dropped:
                break
            answer = transcript.write_answer((c.entity, c.attribute, c.before, c.after) for c in changes)
            found += Piece(prompt.removeprefix(read), taught=False), Piece(answer, taught=True)
            read = prompt + answer + transcript.END
            growing.answer(changes)
        return tuple(found)


TrainingExample = StepExample | TranscriptExample


def drawn(example: TrainingExample, rng: random.Random, *, unknown_count: float, one_pass: float) -> tuple[Piece, ...]:
    """What the model is shown of an example in an epoch."""
    if isinstance(example, TranscriptExample):
        return example.pieces()
    return example.drawn(rng, unknown_count=unknown_count, one_pass=one_pass)


def examples(traces: Iterable[Trace], form: PromptForm, style: Style = "plain") -> list[TrainingExample]:
    """The examples of traces, except of procedures without a change, which were never annotated."""
    found: list[TrainingExample] = []
    for trace in traces:
        if not trace.changes:
            continue
        if form == "transcript":
            found.append(TranscriptExample(trace, style))
            continue
        for step, _, changes in trace.by_step():
            fields = tuple((c.entity, c.attribute, c.before, c.after) for c in changes)
            found.append(StepExample(trace.procedure, step, fields, style))
    return found


def style_of(dataset: str) -> Style:
    """The style a dataset teaches: OpenPI-C's annotation is cleaner, our own more complete; the model can be asked for
    either."""
    styles: dict[str, Style] = {"openpi-c": "clean", "fluents": "complete"}
    return styles.get(dataset.partition(":")[0], "plain")


def taught_styles(items: Iterable[TrainingExample], one_pass: float) -> tuple[Style, ...]:
    """The styles that a model learns from these examples where a share `one_pass` is rendered sorted."""
    styles = dict.fromkeys(example.style for example in items if isinstance(example, StepExample))
    if not styles:
        return ("plain",)
    return (*(style for style in styles if one_pass < 1), *(_SORTED[style] for style in styles if one_pass > 0))


def digest(items: Iterable[TrainingExample]) -> str:
    """A hash of these examples in their order."""
    found = hashlib.sha256()
    for example in items:
        found.update(json.dumps([piece.text for piece in example.pieces()]).encode() + b"\n")
    return found.hexdigest()
