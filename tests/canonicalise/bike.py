"""Somebody to ask in tests, and a procedure to ask about."""

from __future__ import annotations

from collections.abc import Callable

from fluents.llm import Question
from fluents.records import Procedure, StateChange, Trace


class Script:
    """Answers by a function of the question, and remembers the questions."""

    def __init__(self, answer: Callable[[Question], str]) -> None:
        self._answer = answer
        self.asked: list[Question] = []

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        self.asked.append(question)
        return [self._answer(question)] * samples


def change(
    step: int, entity: str, attribute: str = "location", before: str = "here", after: str = "there"
) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


BIKE = Trace(
    procedure=Procedure(id="bike", goal="Clean a bike", steps=("Wet the bike.", "Rub it with a towel.", "Hang it up.")),
    changes=(
        change(1, "bike", "wetness", "dry", "wet"),
        change(1, "the bicycle", "moisture", "dry", "wet"),
        change(1, "a bike", "cleanness", "dirty", "clean"),
        change(2, "towel", "wetness", "dry", "damp"),
        change(2, "kitchen towel", "wetness", "dry", "damp"),
        change(3, "hook", "fullness", "empty", "full"),
    ),
)
"""The bike goes by three names, and so does its wetness by two."""
