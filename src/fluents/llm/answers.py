"""From questions to parsed answers: asking again, finding JSON in prose, many questions at once."""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from json import JSONDecodeError, JSONDecoder
from typing import Any, Generic, TypeVar

from pydantic_core import from_json

from fluents.llm.language_model import LanguageModel, OnAnswer
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
        return Unreadable(text, f"cut off after {question.max_tokens} tokens")
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
    return _WorkerThreads(model.answerer, questions, read).run(model.workers, model.on_answer)


class _WorkerThreads(Generic[T]):
    """Threads that take questions until none is left. Daemons: an interrupted program does not wait for them."""

    def __init__(self, answerer: Answerer, questions: Sequence[Question], read: Callable[[str], T]) -> None:
        self._answerer, self._questions, self._reader = answerer, questions, read
        self._left = iter(range(len(questions)))
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._done: queue.SimpleQueue[tuple[int, T | Unreadable | BaseException]] = queue.SimpleQueue()

    def run(self, workers: int, on_answer: OnAnswer | None) -> list[T | Unreadable]:
        total = len(self._questions)
        answers: dict[int, T | Unreadable] = {}
        for _ in range(min(max(workers, 1), total)):
            threading.Thread(target=self._work, daemon=True).start()
        try:
            while len(answers) < total:
                number, answer = self._next()
                if isinstance(answer, BaseException):
                    raise answer
                answers[number] = answer
                if on_answer:
                    on_answer(len(answers), total)
        finally:
            self._stop.set()
        return [answers[number] for number in range(total)]

    def _next(self) -> tuple[int, T | Unreadable | BaseException]:
        while True:  # in short waits: on some systems a signal does not end a long one
            try:
                return self._done.get(timeout=0.2)
            except queue.Empty:
                continue

    def _work(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                number = next(self._left, None)
            if number is None:
                return
            try:
                [answer] = answered(self._answerer, self._questions[number], self._reader)
            except BaseException as error:  # whatever it is, it belongs to the caller, who waits in another thread
                self._done.put((number, error))
                return
            self._done.put((number, answer))


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
        raise UnreadableAnswer("there is no JSON in it" if text.strip() else "it is empty")
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
