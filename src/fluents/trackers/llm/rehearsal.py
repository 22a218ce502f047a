"""A run without a model: what would be asked, and about how many tokens that is."""

from __future__ import annotations

import json
import threading

from fluents.llm import NoAnswerError, Question
from fluents.prompts.llm import SCHEMATA

BYTES_PER_TOKEN = 4
"""English mostly has about so many; other languages and scripts fewer, which means more tokens."""

STAND_IN = json.dumps({"entities": [{"entity": "(a thing found)", "attributes": ["(an attribute found)"]}]})
"""Questions that follow from answers are shown with this in the place of what a model would find."""


class Rehearsal:
    """Notes questions instead of answering them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: list[Question] = []

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        with self._lock:
            self._asked.append(question)
        if question.name != SCHEMATA:
            raise NoAnswerError("nobody was asked")
        return [STAND_IN] * samples

    def taken(self) -> list[Question]:
        """The questions since the last call."""
        with self._lock:
            asked, self._asked = self._asked, []
        return asked


def about_tokens(question: Question) -> int:
    """How many tokens the question has, estimated by its bytes."""
    return -(-len((question.system + question.prompt).encode()) // BYTES_PER_TOKEN)
