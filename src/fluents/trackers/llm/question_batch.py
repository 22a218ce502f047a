"""The questions about one procedure: asked side by side, several times each where samples are wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from fluents.llm import LanguageModel, Question
from fluents.llm.answers import Unreadable, UnreadableAnswer, ask_all
from fluents.prompts import llm as prompts
from fluents.records import Reject
from fluents.trackers.llm.settings import LlmSettings

T = TypeVar("T")

MAX_REJECTED = 4000
"""Characters of an unreadable answer that are kept."""
MAX_TOKENS = 1024
TOKENS_PER_STEP = 384
MAX_WHOLE_TOKENS = 8192
"""Maximum length of an answer about a step, and about a whole procedure, unless the model has its own."""


@dataclass(frozen=True)
class AskedQuestion:
    """A prompt, and the step it is about; None for a whole procedure."""

    step: int | None
    name: str
    prompt: str


class QuestionBatch:
    """Asks, and keeps what could not be read."""

    def __init__(self, model: LanguageModel, settings: LlmSettings, on_answer: Callable[[float], None]) -> None:
        self._model, self._settings, self._on_answer = replace(model, on_answer=self._tell), settings, on_answer
        self._rounds = 0
        self.rejects: list[Reject] = []
        self.used: dict[str, None] = {}
        """Names of the prompts, in the order of their first use."""

    def ask(
        self,
        asked: Sequence[AskedQuestion],
        read: Callable[[str], T],
        salvage: Callable[[str], T] | None = None,
        steps: int = 1,
    ) -> list[list[T]]:
        """The readable answers to each question: as many as samples are wanted, or fewer, or none.

        `salvage` reads what it can of an answer that `read` refuses twice.
        """
        samples = self._settings.samples
        questions = [self._question(one, sample, steps) for one in asked for sample in range(samples)]
        self.used |= dict.fromkeys(one.name for one in asked)
        answers = ask_all(self._model, questions, read)
        self._rounds += 1
        found: list[list[T]] = []
        for place, one in enumerate(asked):
            mine = answers[place * samples : (place + 1) * samples]
            found.append([good for answer in mine for good in self._readable(answer, one, salvage)])
        return found

    def _readable(self, answer: T | Unreadable, asked: AskedQuestion, salvage: Callable[[str], T] | None) -> list[T]:
        if not isinstance(answer, Unreadable):
            return [answer]
        if salvage:
            try:
                return [salvage(answer.text)]
            except UnreadableAnswer:
                pass
        text = answer.text[:MAX_REJECTED].encode(errors="replace").decode()
        self.rejects.append(Reject(step=asked.step, text=text, reason=f"{asked.name}: {answer.reason}"))
        return []

    def _question(self, asked: AskedQuestion, sample: int, steps: int) -> Question:
        room = MAX_TOKENS
        if asked.name == prompts.WHOLE:
            room = max(room, min(MAX_WHOLE_TOKENS, TOKENS_PER_STEP * (steps + 1)))
        return Question(
            prompt=asked.prompt,
            system=prompts.system(),
            schema=prompts.schema(asked.name, steps),
            name=asked.name,
            max_tokens=room,
            temperature=self._settings.drawn_at,
            seed=self._settings.seed * 1_009 + sample,
        )

    def _tell(self, answers: int, questions: int) -> None:
        """Progress in rounds of questions: how many a round has depends on the answers of the last."""
        self._on_answer(self._rounds + answers / questions)
