"""A run played back: the answers come from a record, no model is asked and no network used.

A record is JSONL, one question and its answer a line, or a file of kept answers (see `cache`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

from fluents import jsonl
from fluents.errors import InputError
from fluents.llm import CutAnswer, Model, Question
from fluents.llm.access import checked_url
from fluents.llm.cache import Cache, question_key
from fluents.llm.usage import Meter, Usage
from fluents.llm.wire import Manner, Reply


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
        answers = self._model.ask(question, samples)
        for number, answer in enumerate(answers):
            asked = asdict(replace(question, seed=question.seed + number))
            line = {"question": asked, "answer": answer, "cut": isinstance(answer, CutAnswer)}
            with self._lock:
                self._stream.write(json.dumps(line).encode() + b"\n")
                self._stream.flush()
        return answers


class Recorded:
    """Answers the questions of a record, and no others."""

    def __init__(self, find: Callable[[Question], Reply | None]) -> None:
        self._find = find
        self._meter = Meter()

    @classmethod
    def read(cls, path: str | Path) -> Recorded:
        """The record in a JSONL file that a Recorder wrote."""
        answers: dict[str, Reply] = {}
        for where, line in jsonl.read_lines(path):
            with jsonl.wrong_shape_is_input_error('not {"question": {…}, "answer": …}', where):
                value = jsonl.parse_json(line, where)
                reply = Reply(str(value["answer"]), cut=bool(value.get("cut")))
                answers.setdefault(_key(Question(**value["question"])), reply)
        return cls(lambda question: answers.get(_key(question)))

    @classmethod
    def of_cache(cls, cache: Cache, base_url: str, model: str, manner: Manner) -> Recorded:
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
        self._meter.add(cached=1)
        return CutAnswer(reply.text) if reply.cut else reply.text


def _key(question: Question) -> str:
    return question_key("", "", "", "", question)
