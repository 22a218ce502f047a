"""Requests to an OpenAI-compatible endpoint, and its replies, parsed without trust."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from fluents.llm.question import Question
from fluents.prompts.llm import NEXT_QUESTION

Api = Literal["chat", "completion"]
Structured = Literal["auto", "schema", "json", "off"]

SCHEMA, JSON_MODE = "json_schema", "json_object"
OPTIONAL = ("temperature", "top_p", "seed")
"""Parameters that some models refuse: they are left out then, and the user is told."""


LONGEST_ASKED_WAIT = 300.0
"""Seconds. If a server asks for a longer wait the run ends with an error that says so."""


@dataclass(frozen=True)
class RetryPolicy:
    """Retries and the pauses before them: doubled each time, with jitter, so that clients that failed together do not
    retry together."""

    retries: int = 6
    first_wait: float = 0.5
    longest_wait: float = 30.0
    sleep: Callable[[float], None] = time.sleep

    def wait(self, attempt: int, asked_for: float | None = None) -> None:
        """Pause after this attempt (counted from 0), at least as long as the server asked for."""
        pause = min(self.first_wait * 2**attempt, self.longest_wait) * random.uniform(0.5, 1.0)
        self.sleep(max(pause, asked_for or 0.0))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds a server asks to wait, as a number or a date; None where it gives neither."""
    said = headers.get("retry-after", "").strip()
    if not said:
        return None
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(said).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError, TypeError):
            return None
    if seconds != seconds:  # "nan" is a float
        return None
    return max(0.0, seconds)


@dataclass(frozen=True)
class EndpointOptions:
    """How an endpoint is asked, beside the question itself."""

    api: Api = "chat"
    structured: Structured = "auto"
    """Enforcement of JSON. auto: by schema, else JSON mode, else none, whatever the endpoint supports."""
    timeout: float = 120.0
    """Seconds to wait for each byte of a reply, and for its whole body."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)


def body(question: Question, model: str, options: EndpointOptions, without: Collection[str]) -> dict[str, Any]:
    """The body of a request, without the parameters that the endpoint has refused."""
    sent: dict[str, Any] = {"model": model}
    if options.api == "chat":
        system = [{"role": "system", "content": writable(question.system)}] if question.system else []
        sent["messages"] = [*system, {"role": "user", "content": writable(question.prompt)}]
        form = _response_format(question, options.structured, without)
        if form is not None:
            sent["response_format"] = form
    else:
        sent["prompt"] = writable(f"{question.system}\n\n{question.prompt}" if question.system else question.prompt)
        sent["stop"] = list(NEXT_QUESTION)
    sent["max_completion_tokens" if "max_tokens" in without else "max_tokens"] = question.max_tokens
    for name in OPTIONAL:
        if name not in without:
            sent[name] = getattr(question, name)
    return sent


def _response_format(question: Question, structured: Structured, without: Collection[str]) -> dict[str, Any] | None:
    if question.schema is None or structured == "off":
        return None
    if structured in ("auto", "schema") and SCHEMA not in without:
        name = re.sub(r"[^A-Za-z0-9_-]", "-", question.name)[:64] or "answer"
        return {"type": SCHEMA, "json_schema": {"name": name, "schema": dict(question.schema), "strict": True}}
    if structured in ("auto", "json") and JSON_MODE not in without:
        return {"type": JSON_MODE}
    return None


def refused_parameter(sent: dict[str, Any], said: str, parameter: str | None, options: EndpointOptions) -> str | None:
    """Which parameter an error names as the cause; None if it names none.

    Enforcement of JSON is only given up where the user left it to us.
    """
    named = f"{parameter or ''} {said}".lower()
    if "response_format" in sent and _ABOUT_FORMAT.search(named):
        return str(sent["response_format"]["type"]) if options.structured == "auto" else None
    if "max_tokens" in sent and "max_completion_tokens" in named:
        return "max_tokens"
    if not _UNSUPPORTED.search(named):  # a value out of range is for the user to correct
        return None
    return next((name for name in OPTIONAL if name in sent and re.search(rf"\b{name}\b", named)), None)


_ABOUT_FORMAT = re.compile(r"response.?format|json.?(schema|object)|structured|\bschema|grammar")
_UNSUPPORTED = re.compile(r"support|unknown|unrecogni|unexpected|not permitted|not allowed|only the default")


class BrokenReply(Exception):
    """A reply that is not a completion, and what may mend that."""

    def __init__(self, what: str, fix: str) -> None:
        self.fix = fix
        super().__init__(what)


@dataclass(frozen=True)
class Reply:
    """One answer, with its tokens."""

    text: str
    cut: bool = False
    tokens_in: int = 0
    tokens_out: int = 0


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = Field(default=None, ge=0, le=2**40)
    completion_tokens: int | None = Field(default=None, ge=0, le=2**40)


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def read_reply(content: bytes, api: Api) -> Reply:
    """The first choice of a completion. A refusal is an answer too, for its parser to judge."""
    try:
        # By way of bytes: half a surrogate pair, which JSON can hold, is no character and could not be written down.
        whole = _Completion.model_validate_json(writable(json.dumps(json.loads(content), ensure_ascii=False)))
    except (ValueError, RecursionError):
        fix = "check the address: does it end in /v1, and is the endpoint OpenAI-compatible?"
        raise BrokenReply("the endpoint's reply is not in the format of OpenAI's API", fix) from None
    choice, usage = whole.choices[0], whole.usage or _Usage()
    if api == "chat":
        if choice.message is None:
            fix = "if this endpoint serves text completions instead of chat, set `api` to completion"
            raise BrokenReply("the endpoint's reply contains no chat message", fix)
        text = choice.message.content or choice.message.refusal or ""
    elif choice.text is None:
        fix = "if this endpoint serves chat instead of text completions, set `api` to chat"
        raise BrokenReply("the endpoint's reply contains no text completion", fix)
    else:
        text = choice.text
    return Reply(text, choice.finish_reason == "length", usage.prompt_tokens or 0, usage.completion_tokens or 0)


def writable(text: str) -> str:
    """A text that can be encoded: half a surrogate pair becomes a question mark."""
    return text.encode(errors="replace").decode()


def printable_line(text: str) -> str:
    """The beginning of a text on one line, without control characters, which terminals would obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[:5000]).split())[:300]
