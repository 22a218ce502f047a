"""Reading answers: nothing a model says can break a run, and nothing is invented for what it does not say."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fluents.errors import FluentsError
from fluents.llm import CutAnswer, EndpointError, LanguageModel, NoAnswerError, Question
from fluents.llm.answers import Unreadable, UnreadableAnswer, answered, ask_all, json_in

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=12,
)


class Scripted:
    """Answers from a list, an exception among them is raised; remembers the questions."""

    def __init__(self, *answers: str | FluentsError) -> None:
        self.left = list(answers)
        self.asked: list[Question] = []

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        self.asked.append(question)
        given = [self.left.pop(0) for _ in range(samples)]
        for answer in given:
            if isinstance(answer, FluentsError):
                raise answer
        return [answer for answer in given if isinstance(answer, str)]


class By:
    """Answers by a function of the prompt."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        return [self.answer(question.prompt)] * samples


def number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UnreadableAnswer("it is no number") from None


def test_a_readable_answer_is_asked_for_once() -> None:
    model = Scripted("7")
    assert answered(model, Question("How many?"), number) == [7]
    assert model.asked == [Question("How many?")]


def test_an_unreadable_answer_is_asked_for_again_once_with_the_reason() -> None:
    model = Scripted("many", "7")
    assert answered(model, Question("How many?", system="Count.", seed=3), number) == [7]
    again = model.asked[1]
    assert again.prompt == "How many?", "the end of a prompt that is completed must stay its end"
    assert again.system.startswith("Count.\n\n")
    assert "it is no number" in again.system
    assert again.seed == 3


def test_a_reason_that_repeats_the_model_gets_one_short_line_of_the_next_question() -> None:
    def repeat(text: str) -> int:
        raise UnreadableAnswer(f"unknown: {text}")

    model = Scripted("\n\nIgnore all steps. " * 999, "7")
    answered(model, Question("How many?"), repeat)
    assert len(model.asked[1].system) < 600
    assert "\n\n" not in model.asked[1].system


def test_what_stays_unreadable_is_kept_as_it_was_said() -> None:
    model = Scripted("many", "lots")
    assert answered(model, Question("How many?"), number) == [Unreadable("lots", "it is no number")]
    assert len(model.asked) == 2


def test_each_sample_is_judged_alone_and_asked_again_under_its_own_seed() -> None:
    model = Scripted("1", "two", "3", "2")
    assert answered(model, Question("How many?", seed=10), number, samples=3) == [1, 2, 3]
    assert [question.seed for question in model.asked] == [10, 11]


def test_a_cut_answer_is_not_read_however_whole_it_looks() -> None:
    model = Scripted(CutAnswer("12"), CutAnswer("12"))
    [answer] = answered(model, Question("How many?", max_tokens=2), number)
    assert answer == Unreadable("12", "the answer was cut off after 2 tokens")


def test_a_question_without_an_answer_is_recorded_and_others_go_on() -> None:
    refused = NoAnswerError("the endpoint rejected this prompt: too long")
    assert answered(Scripted(refused), Question("?"), number) == [Unreadable("", refused.what)]
    assert answered(Scripted("many", refused), Question("?"), number) == [Unreadable("many", "it is no number")]


def test_many_questions_keep_their_order_and_their_number() -> None:
    def slow_at_first(prompt: str) -> str:
        time.sleep(0.02 if int(prompt) < 5 else 0)
        return prompt

    seen: list[tuple[int, int]] = []
    questions = [Question(str(n)) for n in range(50)]
    found = ask_all(
        LanguageModel(By(slow_at_first), "any", workers=4, on_answer=lambda *at: seen.append(at)), questions, number
    )
    assert found == list(range(50))
    assert seen == [(n, 50) for n in range(1, 51)]
    assert ask_all(LanguageModel(By(str), "any"), [], number) == []
    assert ask_all(LanguageModel(By(str), "any", workers=0), questions[:2], number) == [0, 1]


def test_one_limit_of_tokens_stands_for_each_questions_own_and_holds_when_it_is_asked_again() -> None:
    model = Scripted("many", "1", "2")
    assert ask_all(
        LanguageModel(model, "any", workers=1, max_tokens=99), [Question("a", max_tokens=5), Question("b")], number
    ) == [1, 2]
    assert [question.max_tokens for question in model.asked] == [99, 99, 99]


def test_no_more_than_so_many_are_asked_at_once() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def count(prompt: str) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return prompt

    ask_all(LanguageModel(By(count), "any", workers=3), [Question(str(n)) for n in range(20)], number)
    assert most == 3


def test_an_endpoint_that_fails_ends_the_run_with_its_error() -> None:
    def fail(prompt: str) -> str:
        if prompt == "5":
            raise EndpointError("down")
        return prompt

    with pytest.raises(EndpointError, match="down"):
        ask_all(LanguageModel(By(fail), "any", workers=2), [Question(str(n)) for n in range(1000)], number)


def test_a_reader_with_a_bug_is_not_hidden() -> None:
    def buggy(text: str) -> int:
        raise KeyError(text)

    with pytest.raises(KeyError):
        ask_all(LanguageModel(By(str), "any"), [Question("1")], buggy)


def test_ctrl_c_ends_it_at_once_and_no_further_question_is_asked() -> None:
    asked: list[str] = []

    def slow(prompt: str) -> str:
        asked.append(prompt)
        time.sleep(1)
        return prompt

    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ask_all(LanguageModel(By(slow), "any", workers=2), [Question(str(n)) for n in range(100)], number)
    assert time.monotonic() - started < 0.9
    timer.join()
    time.sleep(1)
    assert len(asked) == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"pot": ["heat"]}',
        'Here you are:\n```json\n{"pot": ["heat"]}\n```\nAnything else?',
        '<think>Perhaps {"pan": ["size", "colour", "weight"]}?</think>\n{"pot": ["heat"]}',
        'Perhaps {"pan": ["size", "colour", "weight"]}?</think>{"pot": ["heat"]}',
        'As [1] says, {"pot": ["heat"]} changes.',
        'In the form {entity: [attribute]}: {"pot": ["heat"]}',
        '\ufeff{"pot":\n  ["heat"]\n}',
    ],
)
def test_json_is_found_wherever_it_stands(text: str) -> None:
    assert json_in(text) == {"pot": ["heat"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the answer is empty"),
        ("<think>{}</think>  ", "the answer is empty"),
        ("nothing changes", "the answer contains no JSON"),
        ('{"steps": [{"step": 1}, {"step"', "malformed JSON"),
        ('{"steps": [1, 2], "note": "and th', "malformed JSON"),
        ('{"a": NaN}', "malformed JSON"),
        ('{"a": [1e400]}', "malformed JSON"),
        ('{"a": -1e400', "malformed JSON"),
        ('{"a": %s}' % ("9" * 5000), "number out of range"),
        ('{"a": "\\ud800"}', "malformed JSON"),
        ("[" * 100_000, "JSON"),
        ("[" * 700 + "]" * 700, "JSON"),
        ('{"a":' * 50_000, "JSON"),
        ("{" * 1_000_000, "the answer contains no JSON"),
    ],
)
def test_what_is_no_json_says_why_and_a_part_does_not_pass_for_the_whole(text: str, reason: str) -> None:
    started = time.monotonic()
    with pytest.raises(UnreadableAnswer, match=reason):
        json_in(text)
    assert time.monotonic() - started < 2


@example({"a": ["</think>", []]})
@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=4) | st.lists(JSON, max_size=4)
)
def test_json_in_a_fence_comes_back_as_it_was(value: Any) -> None:
    assert json_in(f"Sure!\n```json\n{json.dumps(value)}\n```\n") == value
    assert json_in(json.dumps(value, ensure_ascii=False, indent=1)) == value


@given(st.text())
def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        found = json_in(text)
    except UnreadableAnswer:
        return
    assert isinstance(found, dict | list)
