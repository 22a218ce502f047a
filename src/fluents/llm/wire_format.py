"""What is sent to an OpenAI-compatible address, and what comes back, taken apart without trust."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, Field

from fluents.llm.question import Question
from fluents.llm.retry import RetryPolicy
from fluents.prompts.llm import NEXT_QUESTION

Api = Literal["chat", "completion"]
Structured = Literal["auto", "schema", "json", "off"]

SCHEMA, JSON_MODE = "json_schema", "json_object"
OPTIONAL = ("temperature", "top_p", "seed")
"""Parameters some models refuse; an answer without them is better than none, and the user is told."""


@dataclass(frozen=True)
class EndpointOptions:
    """How an endpoint is asked, beside the question itself."""

    api: Api = "chat"
    structured: Structured = "auto"
    """auto: by schema, else as JSON, else freely, as far as the endpoint goes along."""
    timeout: float = 120.0
    """Seconds without a byte of the answer, and in all for its body, from its headers on."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)


def body(question: Question, model: str, options: EndpointOptions, without: Collection[str]) -> dict[str, Any]:
    """The request, without what the endpoint has refused."""
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
    """Which of the parameters sent an error names as the trouble, as `without` knows it; None if it names none.

    JSON is only given up where the user did not insist on it.
    """
    named = f"{parameter or ''} {said}".lower()
    if "response_format" in sent and _ABOUT_FORMAT.search(named):
        return str(sent["response_format"]["type"]) if options.structured == "auto" else None
    if "max_tokens" in sent and "max_completion_tokens" in named:
        return "max_tokens"
    if not _UNSUPPORTED.search(named):  # a value out of range is the user's to mend, not ours to leave out
        return None
    return next((name for name in OPTIONAL if name in sent and re.search(rf"\b{name}\b", named)), None)


_ABOUT_FORMAT = re.compile(r"response.?format|json.?(schema|object)|structured|\bschema|grammar")
_UNSUPPORTED = re.compile(r"support|unknown|unrecogni|unexpected|not permitted|not allowed|only the default")


class BrokenReply(Exception):
    """The body of an answer that is no completion."""


@dataclass(frozen=True)
class Reply:
    """One answer as it came."""

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
    """The first choice of a completion. A refusal is an answer too, for its reader to judge."""
    try:
        # By way of bytes: half a surrogate pair, which JSON can hold, is no character and could not be written down.
        whole = _Completion.model_validate_json(writable(json.dumps(json.loads(content), ensure_ascii=False)))
    except (ValueError, RecursionError):
        raise BrokenReply("the body is no completion") from None
    choice, usage = whole.choices[0], whole.usage or _Usage()
    if api == "chat":
        if choice.message is None:
            raise BrokenReply("the completion holds no message")
        text = choice.message.content or choice.message.refusal or ""
    elif choice.text is None:
        raise BrokenReply("the completion holds no text")
    else:
        text = choice.text
    return Reply(text, choice.finish_reason == "length", usage.prompt_tokens or 0, usage.completion_tokens or 0)


def writable(text: str) -> str:
    """A text that can be sent and written down: what is no character becomes a question mark."""
    return text.encode(errors="replace").decode()


def printable_line(text: str) -> str:
    """The beginning of a text without its control characters: terminals obey those."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[:5000]).split())[:300]
