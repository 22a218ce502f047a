"""Few-shot examples: drawn from a dataset or a file of traces, never from the procedure that is tracked."""

from __future__ import annotations

import random
from collections.abc import Iterable

from fluents.prompts import llm as prompts
from fluents.prompts.llm import PromptExample, of_others
from fluents.records import Procedure, StateChange, Trace


class Shots:
    """Procedures to draw examples from, in an order that the seed decides, with a change chosen in each."""

    def __init__(self, traces: Iterable[Trace], count: int, seed: int, source: str = "") -> None:
        self.source = source
        self._count = count
        draw = random.Random(seed)
        usable = [(trace, whole) for trace in traces if (whole := _whole_changes(trace))]
        draw.shuffle(usable)
        self._drawn = [(trace, whole, draw.choice(whole)) for trace, whole in usable]

    def examples(self, procedure: Procedure, prompt: str, *, past: bool) -> list[PromptExample]:
        """So many examples as were asked for, in the form of one prompt, from other procedures than this."""
        drawn = ((one[0].procedure, one) for one in self._drawn)
        others = of_others(drawn, procedure, self._count, self.source)
        return [_example(prompt, trace.procedure, changes, chosen, past) for trace, changes, chosen in others]


def _whole_changes(trace: Trace) -> list[StateChange]:
    """The changes that can be shown: with both their states."""
    return [change for change in trace.changes if change.before.strip() and change.after.strip()]


def _example(
    prompt: str, procedure: Procedure, changes: list[StateChange], chosen: StateChange, past: bool
) -> PromptExample:
    if prompt == prompts.WHOLE:
        return PromptExample(prompts.whole_scene(procedure), prompts.whole_answer(procedure, changes))
    scene = prompts.scene(procedure, chosen.step, past=past)
    here = [change for change in changes if change.step == chosen.step]
    entity, attribute = prompts.quoted(chosen.entity), prompts.quoted(chosen.attribute)
    if prompt == prompts.SCHEMATA:
        return PromptExample(scene, prompts.schemata_answer(here))
    if prompt == prompts.COMPLETE:
        return PromptExample(scene, prompts.complete_answer(here))
    if prompt == prompts.CHANGES_OF:
        return PromptExample(scene, prompts.changes_of_answer(here, chosen.entity), entity)
    return PromptExample(scene, prompts.states_answer(chosen), entity, attribute)
