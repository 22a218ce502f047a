"""From questions to parsed answers: asking again, finding JSON in prose, many questions at once."""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from json import JSONDecodeError, JSONDecoder
from typing import Any, TypeVar

from pydantic_core import from_json

from fluents.llm.language_model import LanguageModel
from fluents.llm.question import Answerer, CutAnswer, NoAnswerError, Question
from fluents.llm.wire_format import printable_line
from fluents.prompts.llm import render

T = TypeVar("T")

REASK_PROMPT = "again-1"
THOUGHT_ENDS = "</think>"
"""Where the reasoning of a model ends and its answer begins; some models omit the tag that opens it."""
MAX_STARTS = 200
"""Places in an answer where JSON may begin: without a limit a hostile answer would take quadratic time."""


class UnreadableAnswer(Exception):
    """Raised by a parser: the model is told the reason once, and if that does not help the reason is recorded."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True)
class Unreadable:
    """An answer that could not be parsed, or none at all: recorded, never replaced by something invented."""

    text: str
    reason: str


def answered(
    answerer: Answerer, question: Question, read: Callable[[str], T], samples: int = 1
) -> list[T | Unreadable]:
    """`samples` answers to a question, parsed by `read`; one it cannot parse is asked for once more."""
    try:
        texts = answerer.ask(question, samples)
    except NoAnswerError as error:
        return [Unreadable("", error.what)] * samples
    return [
        _read_or_again(answerer, replace(question, seed=question.seed + i), text, read) for i, text in enumerate(texts)
    ]


def _read_or_again(answerer: Answerer, question: Question, text: str, read: Callable[[str], T]) -> T | Unreadable:
    first = _read(text, question, read)
    if not isinstance(first, Unreadable):
        return first
    # In front of the question: a prompt that is to be completed must keep its end.
    note = render(REASK_PROMPT, reason=printable_line(first.reason))  # which may repeat what the model said
    system = f"{question.system}\n\n{note}" if question.system else note
    try:
        [second] = answerer.ask(replace(question, system=system))
    except NoAnswerError:
        return first
    return _read(second, question, read)


def _read(text: str, question: Question, read: Callable[[str], T]) -> T | Unreadable:
    if isinstance(text, CutAnswer):
        return Unreadable(text, f"the answer was cut off after {question.max_tokens} tokens")
    try:
        return read(text)
    except UnreadableAnswer as error:
        return Unreadable(text, error.reason)


def ask_all(model: LanguageModel, questions: Sequence[Question], read: Callable[[str], T]) -> list[T | Unreadable]:
    """One answer for each question, in their order, `model.workers` of them asked at once.

    `model.on_answer` is called in this thread. Ctrl-C and errors end it at once. `model.max_tokens`, if given, replaces
    each question's own: models that reason before they answer need more.
    """
    if model.max_tokens is not None:
        questions = [replace(question, max_tokens=model.max_tokens) for question in questions]
    left, lock, stop = iter(range(len(questions))), threading.Lock(), threading.Event()
    done: queue.SimpleQueue[tuple[int, T | Unreadable | BaseException]] = queue.SimpleQueue()

    def work() -> None:
        while not stop.is_set():
            with lock:
                number = next(left, None)
            if number is None:
                return
            try:
                [answer] = answered(model.answerer, questions[number], read)
            except BaseException as error:  # whatever it is, it belongs to the caller, who waits in another thread
                done.put((number, error))
                return
            done.put((number, answer))

    for _ in range(min(max(model.workers, 1), len(questions))):
        threading.Thread(target=work, daemon=True).start()  # an interrupted program does not wait for daemons
    answers: dict[int, T | Unreadable] = {}
    try:
        while len(answers) < len(questions):
            number, answer = _next(done)
            if isinstance(answer, BaseException):
                raise answer
            answers[number] = answer
            if model.on_answer:
                model.on_answer(len(answers), len(questions))
    finally:
        stop.set()
    return [answers[number] for number in range(len(questions))]


def _next(done: queue.SimpleQueue[T]) -> T:
    """What comes next. A function, for an interrupt in an except clause of the caller's loop would pass its finally."""
    while True:
        try:
            return done.get(timeout=0.2)  # short: on some systems a signal does not end a long wait
        except queue.Empty:
            continue


def json_in(text: str) -> Any:
    """The JSON object or list in an answer: alone, in a code fence, or somewhere in prose (then the longest).

    The reasoning before an answer is left out.
    """
    pieces = _json_pieces(text)
    if THOUGHT_ENDS in text and not any(THOUGHT_ENDS in piece for piece in pieces):  # in a piece it is a string's
        text = text.rpartition(THOUGHT_ENDS)[2]
        pieces = _json_pieces(text)
    found = max(pieces, key=len, default="")
    if not found:
        raise UnreadableAnswer("the answer contains no JSON" if text.strip() else "the answer is empty")
    return parsed_json(found)


def parsed_json(text: str, *, partial: bool = False) -> Any:
    """The value of a JSON text; its numbers must be finite. With `partial` it may break off."""
    try:
        value = from_json(text, allow_inf_nan=False, allow_partial=partial)
        json.dumps(value, allow_nan=False)  # 1e400 is a number to the parser, and then infinity
    except ValueError as error:
        raise UnreadableAnswer(f"malformed JSON: {error}") from None
    return value


_START = re.compile(r"[{\[]")


def _json_pieces(text: str) -> list[str]:
    """The outermost JSON objects and lists in a text; the last may break off."""
    pieces, position, length = [], 0, len(text.rstrip())
    decoder = JSONDecoder(parse_int=float)  # which takes any number of digits; the value is not used
    for _ in range(MAX_STARTS):
        start = _START.search(text, position)
        if start is None:
            break
        try:
            _, position = decoder.raw_decode(text, start.start())
        except JSONDecodeError as error:
            if error.pos >= length or error.msg.startswith("Unterminated string"):
                pieces.append(text[start.start() :])  # else an inner list would pass for the whole that broke off
                break
            position = start.end()
        except RecursionError:
            position = start.end()
        else:
            pieces.append(text[start.start() : position])
    return pieces
