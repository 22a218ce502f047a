"""Salience rated by a language model: a separate question for every entity, so that no order matters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from fluents.llm import LanguageModel, Question
from fluents.llm.answers import THOUGHT_ENDS, Unreadable, UnreadableAnswer, ask_all
from fluents.prompts.llm import quoted_name, render, scene, system, whole_scene
from fluents.records import Salience, Trace
from fluents.salience.entities import rated_entities
from fluents.salience.ridge import LEAST, MOST
from fluents.scoring import Scope, check_choice

Form: TypeAlias = Literal["paper", "likert"]
FORMS: tuple[Form, ...] = get_args(Form)
"""paper: 1 to 5, in a few words, as OpenPI2.0 asked its models. likert: with the criteria its annotators followed."""

MAX_TOKENS = 256
"""Enough for a number and a sentence."""

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
_SCALE = re.compile(r"\b[01]\b[^\d.\n]{0,40}?(?:-|–|—|\bto|\band|\bthrough)\s*5\b", re.IGNORECASE)
"""The scale said again: "on a scale of 1-5", "from 1, hardly at all, to 5"."""
_STEP = re.compile(r"\bsteps?\s+\d+", re.IGNORECASE)
_MARKER = re.compile(r"^[ \t>#*_]*(\d+)[.)](?=[\s*_])", re.MULTILINE)
"""What a line of a numbered list begins with; but "4. It is needed." is a rating and its reason."""
_LABELLED = re.compile(r"\b(?:rating|score)\b(?:\s+(?:is|of))?[\s:=*_]*\d|\d\s*(?:/|out of)\s*5\b", re.IGNORECASE)


class RatingAnswer(NamedTuple):
    value: int | float
    explanation: str


class RatingQuestion(NamedTuple):
    """A question, and what it is about."""

    entity: str
    step: int | None
    question: Question


@dataclass(frozen=True)
class PromptedRater:
    """Rates by asking a language model. An answer that cannot be read is a rating without a value."""

    model: LanguageModel
    form: Form = "paper"

    def __post_init__(self) -> None:
        check_choice("form", self.form, Form)

    @property
    def name(self) -> str:
        return self.model.name if self.form == "paper" else f"{self.model.name}, {self.form}"

    def ratings(self, trace: Trace, scopes: Sequence[Scope]) -> list[Salience]:
        asked = list(questions(trace, scopes, self.form))
        answers = ask_all(self.model, [one.question for one in asked], read)
        return [_rating(one, answer, self.name) for one, answer in zip(asked, answers, strict=True)]


def questions(trace: Trace, scopes: Sequence[Scope], form: Form = "paper") -> Iterator[RatingQuestion]:
    """For the goal every entity, then for every step every entity."""
    names = [entity.name for entity in rated_entities(trace)]
    if "global" in scopes and names:
        text = whole_scene(trace.procedure)
        yield from (_asked(name, None, text, "global", form) for name in names)
    if "local" in scopes:
        for step in range(1, len(trace.procedure.steps) + 1):
            text = scene(trace.procedure, step, past=False)
            yield from (_asked(name, step, text, "local", form) for name in names)


def _asked(entity: str, step: int | None, text: str, scope: Scope, form: Form) -> RatingQuestion:
    name = f"salience-{scope}-1" if form == "paper" else f"salience-{scope}-{form}-1"
    prompt = render(name, scene=text, entity=quoted_name(entity))
    return RatingQuestion(entity, step, Question(prompt, system=system(), name=name, max_tokens=MAX_TOKENS))


def read(text: str) -> RatingAnswer:
    """The first number of an answer that can be a rating, and all it says.

    The scale said again, the number of a step and the numbers of a list are none.
    """
    said = text.rpartition(THOUGHT_ENDS)[2].strip()
    number = _NUMBER.search(_without_markers(_STEP.sub("", _SCALE.sub("", said))))
    if number is None:
        raise UnreadableAnswer("the answer contains no rating" if said else "the answer is empty")
    value = float(number.group())
    if not LEAST <= value <= MOST:
        raise UnreadableAnswer(f"the rating must be from {LEAST:g} to {MOST:g}, not {number.group()[:20]}")
    return RatingAnswer(int(value) if value.is_integer() else value, said)


def _without_markers(said: str) -> str:
    """The text without the numbers of a list: of lines numbered 1, 2, …, or of a line 1 where a rating is named."""
    markers = [marker.group(1) for marker in _MARKER.finditer(said)]
    is_list = markers[:2] == ["1", "2"] or (markers[:1] == ["1"] and _LABELLED.search(said) is not None)
    return _MARKER.sub("", said) if is_list else said


def _rating(asked: RatingQuestion, answer: RatingAnswer | Unreadable, rater: str) -> Salience:
    if isinstance(answer, Unreadable):
        told = f"unreadable ({answer.reason}): {answer.text}"
        return Salience(entity=asked.entity, rater=rater, step=asked.step, value=None, explanation=told)
    return Salience(
        entity=asked.entity, rater=rater, step=asked.step, value=answer.value, explanation=answer.explanation
    )
