"""Questions put to a language model: one for every step, so that no order matters; states are its chain of thought."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from fluents.llm import LanguageModel, Question, Usage
from fluents.llm.answers import Unreadable, UnreadableAnswer, ask_all, json_in
from fluents.prompts.llm import JSON_TEXT, json_list, json_object, opening_scene, quoted, quoted_name, render, system
from fluents.prompts.llm import scene as scene_at
from fluents.records import StateChange, Trace
from fluents.scoring import check_choice
from fluents.task_records import CANNOT_TELL, NO_CHANGE, CrepeCase, Likelihood

Scale: TypeAlias = Literal["rating", "change"]
"""rating: 1 to 5 before step 1 and after each step. change: more, less or as likely as before the step (CREPE)."""

PROMPTS: dict[Scale, str] = {"rating": "likelihood-1", "change": "event-1"}
MAX_TOKENS = 256
"""Enough for a sentence and a few numbers."""
MAX_STATES = 60
"""Changes of one step that are shown."""

UNREADABLE = "unreadable"
"""How the reason of a judgement begins whose answer could not be read."""

CHANGES = {"more": "more likely", "less": "less likely", "same": NO_CHANGE}
"""What the prompt calls them → what CREPE does."""


class JudgedStep(NamedTuple):
    """What a model said of one step."""

    said: float | str | None
    """The rating, or the change; None where it cannot tell."""
    reason: str
    support: tuple[StateChange, ...]


class LikelihoodQuestion(NamedTuple):
    """A question, and what it is about."""

    event: str
    step: int
    shown: tuple[StateChange, ...]
    question: Question


@dataclass(frozen=True)
class PromptedJudge:
    """Judges by asking a language model. An answer that cannot be read is a judgement that cannot be told."""

    model: LanguageModel
    scale: Scale = "rating"

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, Scale)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def prompt(self) -> str:
        return PROMPTS[self.scale]

    @property
    def usage(self) -> Usage:
        return self.model.usage

    def judgements(self, trace: Trace, events: Sequence[str], *, with_states: bool) -> list[Likelihood]:
        """Of every event, step by step."""
        asked = [one for event in events for one in questions(trace, event, self.scale, with_states=with_states)]
        answers = ask_all(self.model, [one.question for one in asked], partial(read, scale=self.scale))
        told = [
            JudgedStep(None, f"{UNREADABLE} ({answer.reason}): {answer.text}", ())
            if isinstance(answer, Unreadable)
            else JudgedStep(
                answer.said, answer.reason, tuple(one.shown[n] for n in answer.states if n < len(one.shown))
            )
            for one, answer in zip(asked, answers, strict=True)
        ]
        return list(_likelihoods(asked, told))


def questions(trace: Trace, event: str, scale: Scale, *, with_states: bool) -> Iterator[LikelihoodQuestion]:
    """One for every step; a rating is also asked for before the first."""
    name = PROMPTS[scale]
    for step in range(0 if scale == "rating" else 1, len(trace.procedure.steps) + 1):
        shown = trace.at(step)[:MAX_STATES] if with_states and step else ()
        if step:
            scene = scene_at(trace.procedure, step, known=_known(trace, step) if with_states else ())
        else:
            scene = opening_scene(trace.procedure)
        states = [_state(change) for change in shown] if with_states else None
        prompt = render(name, scene=scene, states=states, question=quoted(event))
        asked = Question(prompt, system=system(), schema=_schema(scale, with_states), name=name, max_tokens=MAX_TOKENS)
        yield LikelihoodQuestion(event, step, shown, asked)


def _state(change: StateChange) -> str:
    entity, attribute, before, after = map(quoted_name, (change.entity, change.attribute, change.before, change.after))
    return f"{attribute} of {entity}: {before} before the step, {after} after it"


def _known(trace: Trace, step: int) -> list[StateChange]:
    """The states that earlier steps left, one for each attribute of an entity."""
    left = {(change.entity, change.attribute): change for change in trace.changes if change.step < step}
    now = {(change.entity, change.attribute) for change in trace.at(step)}
    return [change for place, change in left.items() if place not in now]


def _schema(scale: Scale, with_states: bool) -> dict[str, object]:
    said: dict[str, object] = {"rating": {"type": ["integer", "null"], "enum": [1, 2, 3, 4, 5, None]}}
    if scale == "change":
        said = {"change": {"type": "string", "enum": list(CHANGES)}}
        if not with_states:
            return json_object(**said)
    states = {"states": json_list({"type": "integer"})} if with_states else {}
    return json_object(**states, reason=JSON_TEXT, **said)


class StepAnswer(NamedTuple):
    said: float | str | None
    reason: str
    states: tuple[int, ...]
    """Places of the states that matter, counted from 0."""


def read(text: str, scale: Scale) -> StepAnswer:
    """An answer to one of the two prompts, or UnreadableAnswer."""
    value = json_in(text)
    if not isinstance(value, dict):
        raise UnreadableAnswer("the answer is not a JSON object")
    numbers = value.get("states", [])
    states = (
        [number - 1 for number in numbers if type(number) is int and number > 0] if isinstance(numbers, list) else []
    )
    reason = value.get("reason", "")
    return StepAnswer(
        _rating(value) if scale == "rating" else _change(value),
        reason if isinstance(reason, str) else "",
        tuple(dict.fromkeys(states)),
    )


def _rating(value: dict[str, Any]) -> float | None:
    try:
        rating = float(value["rating"]) if value["rating"] is not None else None
    except (KeyError, TypeError, ValueError):
        raise UnreadableAnswer("the answer contains no rating") from None
    if rating is not None and not 1 <= rating <= 5:
        raise UnreadableAnswer(f"the rating must be from 1 to 5, not {rating:g}")
    return rating


def _change(value: dict[str, Any]) -> str:
    change = str(value.get("change", "")).strip().lower().removesuffix(" likely")
    if change not in CHANGES:
        raise UnreadableAnswer('"change" must be "more", "less" or "same"')
    return CHANGES[change]


def _likelihoods(asked: Sequence[LikelihoodQuestion], told: Sequence[JudgedStep]) -> Iterator[Likelihood]:
    before: float | None = None
    for one, judged in zip(asked, told, strict=True):
        if one.step == 0:
            before = None
        rating = judged.said if isinstance(judged.said, float) else None
        if judged.said is None:
            change = CANNOT_TELL
        elif isinstance(judged.said, str):
            change = judged.said
        else:
            change = changed(before, judged.said)
            before = judged.said
        yield Likelihood(
            step=one.step,
            change=change,
            event=one.event,
            predicted=True,
            rating=rating,
            reason=judged.reason or None,
            support=judged.support,
        )


def parse_failures(case: CrepeCase) -> list[str]:
    """What is said of judgements whose answer could not be read."""
    return [one.reason for one in case.likelihoods if one.reason and one.reason.startswith(f"{UNREADABLE} (")]


def changed(before: float | None, now: float) -> str:
    """CREPE's word for the way from one rating to the next."""
    if before is None or before == now:
        return NO_CHANGE
    return "more likely" if now > before else "less likely"
