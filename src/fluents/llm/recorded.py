"""A run played back: the answers come from a record, no model is asked and no network used.

A record is JSONL, one question and its answer, or why there was none, a line, or a file of kept answers (see `cache`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from fluents import jsonl
from fluents.errors import InputError
from fluents.llm import CutAnswer, Model, NoAnswerError, Question
from fluents.llm.cache import Cache, question_key
from fluents.llm.credentials import checked_url
from fluents.llm.usage import Meter, Usage
from fluents.llm.wire_format import EndpointOptions, Reply


class Recorder:
    """Passes questions on and writes them down with their answers. May be used by many threads."""

    def __init__(self, model: Model, stream: IO[bytes]) -> None:
        self._model, self._stream = model, stream
        self._lock = threading.Lock()

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return self._model.usage

    @property
    def left_out(self) -> tuple[str, ...]:
        """Parameters that were refused."""
        return self._model.left_out

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        """One by one: the answers before one that fails are written down as well."""
        return [self._answer(replace(question, seed=question.seed + number)) for number in range(samples)]

    def _answer(self, question: Question) -> str:
        try:
            [answer] = self._model.ask(question)
        except NoAnswerError as error:
            self._write(question, {"failed": error.what})
            raise
        self._write(question, {"answer": answer, "cut": isinstance(answer, CutAnswer)})
        return answer

    def _write(self, question: Question, outcome: dict[str, Any]) -> None:
        line = json.dumps({"question": asdict(question)} | outcome).encode() + b"\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()


class Recorded:
    """Answers the questions of a record, and no others."""

    def __init__(self, find: Callable[[Question], Reply | NoAnswerError | None]) -> None:
        self._find = find
        self._meter = Meter()

    @classmethod
    def read(cls, path: str | Path) -> Recorded:
        """The record in a JSONL file that a Recorder wrote."""
        answers: dict[str, Reply | NoAnswerError] = {}
        for where, line in jsonl.read_lines(path):
            with jsonl.wrong_shape_is_input_error('not {"question": {…}, "answer": …}', where):
                value = jsonl.parse_json(line, where)
                answers.setdefault(_key(Question(**value["question"])), _outcome(value))
        return cls(lambda question: answers.get(_key(question)))

    @classmethod
    def of_cache(cls, cache: Cache, base_url: str, model: str, manner: EndpointOptions) -> Recorded:
        """The answers kept of an endpoint that was asked in this manner."""
        address = checked_url(base_url)
        return cls(lambda question: cache.get(question_key(address, model, manner.api, manner.structured, question)))

    @property
    def usage(self) -> Usage:
        """What was used so far: no more than the record."""
        return self._meter.usage

    @property
    def left_out(self) -> tuple[str, ...]:
        """None: nothing is sent."""
        return ()

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        return [self._answer(replace(question, seed=question.seed + number)) for number in range(samples)]

    def _answer(self, question: Question) -> str:
        reply = self._find(question)
        if reply is None:
            raise InputError(
                "the record holds no answer to this question",
                where=question.prompt[:200],
                fix="play it back with the options, texts and version it was recorded with",
            )
        if isinstance(reply, NoAnswerError):
            self._meter.add(failed=1)
            raise NoAnswerError(reply.what)
        self._meter.add(cached=1, cut=reply.cut)
        return CutAnswer(reply.text) if reply.cut else reply.text


def _outcome(line: dict[str, Any]) -> Reply | NoAnswerError:
    if "failed" in line:
        return NoAnswerError(str(line["failed"]))
    return Reply(str(line["answer"]), cut=bool(line.get("cut")))


def _key(question: Question) -> str:
    return question_key("", "", "", "", question)
