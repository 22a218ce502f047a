"""A run without a model: what would be asked, and about how many tokens that is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fluents.llm import LanguageModel, Question
from fluents.prompts import llm as prompts
from fluents.records import Procedure, StateChange

if TYPE_CHECKING:
    from fluents.trackers.llm.tracker import LlmTracker

BYTES_PER_TOKEN = 4
"""English mostly has about so many; other languages and scripts fewer, which means more tokens."""

STAND_IN = StateChange(
    step=1, entity="(a thing found)", attribute="(an attribute found)", before="(one state)", after="(another state)"
)
"""Questions that follow from answers are shown with this in the place of what a model would find."""


class DryRun:
    """Notes the questions about a procedure, and answers them as if the stand-in were all that changes in each step."""

    def __init__(self, procedure: Procedure) -> None:
        self.asked: list[Question] = []
        self._lock = threading.Lock()
        every_step = [STAND_IN.replace(step=step) for step in range(1, len(procedure.steps) + 1)]
        self._answers = {
            prompts.SCHEMATA: prompts.schemata_answer([STAND_IN]),
            prompts.STATES: prompts.states_answer(STAND_IN),
            prompts.CHANGES_OF: prompts.changes_of_answer([STAND_IN], STAND_IN.entity),
            prompts.COMPLETE: prompts.complete_answer([STAND_IN]),
            prompts.WHOLE: prompts.whole_answer(procedure, every_step),
            prompts.VERIFY: json.dumps({"changes": True}),
        }

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        with self._lock:
            self.asked.append(question)
        return [self._answers[question.name]] * samples


def questions(tracker: LlmTracker, procedures: Iterable[Procedure]) -> Iterator[tuple[Procedure, Question]]:
    """All questions a tracker would ask that do not depend on answers, and one of each kind that does for each step."""
    for procedure in procedures:
        rehearsal = DryRun(procedure)
        tracker.model = LanguageModel(rehearsal, "", workers=1)
        tracker.track(procedure)
        for question in rehearsal.asked:
            yield procedure, question


def about_tokens(question: Question) -> int:
    """How many tokens the question has, estimated by its bytes."""
    return -(-len((question.system + question.prompt).encode()) // BYTES_PER_TOKEN)
