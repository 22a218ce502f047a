"""Training examples: prompts and the lines the model should write, rendered anew in every epoch."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable
from dataclasses import dataclass

from fluents.prompts.local import Style, prompt, target
from fluents.records import Procedure, Trace

Fields = tuple[str, str, str, str]

_SORTED: dict[Style, Style] = {"plain": "sorted", "clean": "clean sorted"}


@dataclass(frozen=True)
class TrainingExample:
    """One step and its changes."""

    procedure: Procedure
    step: int
    changes: tuple[Fields, ...]
    style: Style = "plain"


def examples(traces: Iterable[Trace], style: Style = "plain") -> list[TrainingExample]:
    """An example for every step, except of procedures without a change, which were never annotated."""
    found = []
    for trace in traces:
        if trace.changes:
            for step, _, changes in trace.by_step():
                fields = tuple((c.entity, c.attribute, c.before, c.after) for c in changes)
                found.append(TrainingExample(trace.procedure, step, fields, style))
    return found


def style_of(dataset: str) -> Style:
    """The style a dataset teaches: OpenPI-C's annotation is cleaner, and the model can be asked for it."""
    return "clean" if dataset.partition(":")[0] == "openpi-c" else "plain"


def taught_styles(items: Iterable[TrainingExample], one_pass: float) -> tuple[Style, ...]:
    """The styles that a model learns from these examples where a share `one_pass` is rendered sorted."""
    styles = dict.fromkeys(example.style for example in items)
    return (*(style for style in styles if one_pass < 1), *(_SORTED[style] for style in styles if one_pass > 0))


def render(example: TrainingExample, rng: random.Random, *, unknown_count: float, one_pass: float) -> tuple[str, str]:
    """(prompt, target) for training.

    Sampling wants the changes in random order, so that no entity is favoured; a single pass wants them sorted, so that
    it does not repeat itself. A share of the examples (`one_pass`) teaches the second under a name of its own.
    """
    single = rng.random() < one_pass
    if single:
        changes = sorted(dict.fromkeys(example.changes), key=lambda fields: [field.lower() for field in fields])
    else:
        changes = rng.sample(example.changes, len(example.changes))
    count = None if rng.random() < unknown_count else len(changes)
    style = _SORTED[example.style] if single else example.style
    return prompt(example.procedure, example.step, style=style, count=count), target(changes)


def render_fixed(example: TrainingExample) -> tuple[str, str]:
    """(prompt, target) for measuring: in an order that stays the same, with the true count."""
    changes = random.Random(f"{example.procedure.id}||{example.step}").sample(example.changes, len(example.changes))
    return prompt(example.procedure, example.step, style=example.style, count=len(changes)), target(changes)


def digest(items: Iterable[TrainingExample]) -> str:
    """A hash of these examples in their order."""
    found = hashlib.sha256()
    for example in items:
        found.update(json.dumps(render_fixed(example)).encode() + b"\n")
    return found.hexdigest()
