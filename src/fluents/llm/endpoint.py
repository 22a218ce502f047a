"""Any OpenAI-compatible endpoint, through the official client: OpenAI, vLLM, Ollama, llama.cpp, LM Studio."""

from __future__ import annotations

import re
from dataclasses import replace
from types import TracebackType
from typing import Any, NoReturn, Self

import openai
from pydantic import SecretStr

from fluents.errors import InputError
from fluents.llm.cache import Cache, question_key
from fluents.llm.credentials import KEY_VARIABLE, OPENAI, checked_url, is_loopback
from fluents.llm.question import CutAnswer, EndpointError, NoAnswerError, Question
from fluents.llm.transport import bounded_client, could_not_connect
from fluents.llm.usage import Meter, Usage
from fluents.llm.wire_format import (
    LONGEST_ASKED_WAIT,
    BrokenReply,
    EndpointOptions,
    Reply,
    body,
    printable_line,
    read_reply,
    refused_parameter,
    retry_after,
)
from fluents.text.names import counted

CONNECT_SECONDS = 20.0
"""Maximum time to connect: an answer may take long, but a server that is up accepts at once."""

RETRIED = {408, 409, 425, 429}
"""Statuses below 500 that mean "later"."""

DOWN_AFTER = 3
"""After so many unanswered questions in a row the endpoint counts as down."""

SHORTEST_SECRET = 8
"""Characters. Shorter "keys" (EMPTY, none) are not secret, and may be words of an answer."""

NO_KEY = "no-key"
"""Sent where no key is needed, as the client requires one."""

_OF_THIS_QUESTION = re.compile(
    r"context.?(length|size|window)|too long|content.?(filter|policy)|invalid_prompt|string_above_max_length", re.I
)
"""Signs that an endpoint refuses this question, for its content or its length, and would accept others."""


_CHECK_UP = "check that the endpoint is up, then run this command again"
_SLOW_DOWN = "run this command again later, or with fewer requests at the same time"
_WAIT_LONGER = "check that the endpoint is up, or set a longer timeout for requests, then run this command again"


class _Later(Exception):
    """This request failed; the same one may succeed."""

    def __init__(self, reason: str, wait: float | None = None, fix: str = _CHECK_UP) -> None:
        self.reason, self.wait, self.fix = reason, wait, fix
        super().__init__(reason)


class Endpoint:
    """A model behind an address. Thread-safe.

    The key is sent to the endpoint and nowhere else; where the endpoint repeats it, it is removed.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        key: str | None = None,
        *,
        options: EndpointOptions = EndpointOptions(),  # noqa: B008 - frozen
        cache: Cache | None = None,
        cached_only: bool = False,
    ) -> None:
        self.base_url, self.model, self.options = checked_url(base_url), model, options
        self._key = SecretStr(key or "")
        self._cache, self._cached_only = cache, cached_only
        self._meter = Meter()
        self._without: dict[str, frozenset[str]] = {}
        self._failed_in_a_row = 0
        self._has_answered = False
        self._has_ever_answered = False  # in this run or, as the cache shows, in one before
        # No proxy between this machine and itself.
        http = bounded_client(self.options.timeout, use_proxies=not is_loopback(self.base_url))
        kind = openai.OpenAI if self.base_url == OPENAI else _ThirdPartyClient
        limits = openai.Timeout(self.options.timeout, connect=min(self.options.timeout, CONNECT_SECONDS))
        self._client = kind(
            base_url=self.base_url, api_key=key or NO_KEY, timeout=limits, max_retries=0, http_client=http
        )

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return replace(self._meter.usage, refused=tuple(sorted(set().union(*self._without.values()))))

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        """`samples` answers, each with a seed of its own from the question's upwards, each cached by itself."""
        return [self._answer(replace(question, seed=question.seed + number)) for number in range(samples)]

    def _answer(self, question: Question) -> str:
        key = question_key(self.base_url, self.model, self.options.api, self.options.structured, question)
        reply = self._cache.get(key) if self._cache else None
        if reply is not None:
            self._meter.add(cached=1, cached_tokens_in=reply.tokens_in, cached_tokens_out=reply.tokens_out)
            self._has_ever_answered = True
        elif self._cached_only:
            self._no_cached_answer(key, question)
        else:
            reply = self._asked(key, question)
        self._meter.add(cut=reply.cut)
        return CutAnswer(reply.text) if reply.cut else reply.text

    def _asked(self, key: str, question: Question) -> Reply:
        try:
            reply = self._reply(question)
        except NoAnswerError as error:
            if self._cache:
                self._cache.put_failure(key, error.what)
            raise
        self._meter.add(tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)
        if self._cache:
            self._cache.put(key, reply)
        return reply

    def _no_cached_answer(self, key: str, question: Question) -> NoReturn:
        """A question that got no answer when it was asked gets none again; one never asked is an error."""
        failure = self._cache.get_failure(key) if self._cache else None
        if failure is not None:
            self._meter.add(failed=1)
            raise NoAnswerError(failure, where=self.base_url)
        raise InputError(
            f"the cache contains no answer to this prompt ({question.name}): … "
            f"{printable_line(question.prompt[-300:])}",
            where=self._cache.path if self._cache else None,
            fix="use the same options, texts and version of fluents as in the run that filled the cache, or leave "
            "out `cached_only`",
        )

    def _reply(self, question: Question) -> Reply:
        attempt = 0
        while True:
            try:
                reply = self._request(question)
            except _Later as trouble:
                if attempt == self.options.retry.retries:
                    self._give_up(trouble, attempt + 1)
                self._meter.add(retried=1)
                self.options.retry.wait(attempt, trouble.wait)
                attempt += 1
            else:
                self._failed_in_a_row, self._has_answered, self._has_ever_answered = 0, True, True
                return replace(reply, text=self._without_key(reply.text))

    def _give_up(self, trouble: _Later, tries: int) -> NoReturn:
        self._failed_in_a_row += 1
        what = f"no answer after {counted(tries, 'attempt')}: {trouble.reason}"
        if self._has_ever_answered and self._failed_in_a_row < DOWN_AFTER:
            self._meter.add(failed=1)
            raise NoAnswerError(what, where=self.base_url)
        raise EndpointError(what, where=self.base_url, fix=f"{trouble.fix}{self._kept}")

    @property
    def _kept(self) -> str:
        return f"; the answers so far are in {self._cache.path} and will be reused" if self._cache else ""

    def _request(self, question: Question) -> Reply:
        """One request, or a few where the endpoint refuses parameters of it."""
        while True:
            without = self._without.get(question.name, frozenset())
            sent = body(question, self.model, self.options, without)
            try:
                return self._send(sent)
            except openai.APIStatusError as error:
                refused = self._judge(error, sent)
            self._without[question.name] = without | {refused}

    def _send(self, sent: dict[str, Any]) -> Reply:
        chat = self.options.api == "chat"
        resource: Any = self._client.chat.completions if chat else self._client.completions
        self._meter.add(requests=1)
        try:
            return read_reply(resource.with_raw_response.create(**sent).http_response.content, self.options.api)
        except openai.APIConnectionError as error:  # a time-out is one
            reason = printable_line(self._without_key(f"{error.__cause__ or error}"))
            if could_not_connect(error) and not self._has_answered:
                raise EndpointError(
                    f"cannot connect to the endpoint: {reason}",
                    where=self.base_url,
                    fix="check that the endpoint is up and that its address is correct (http or https?)",
                ) from None
            if isinstance(error, openai.APITimeoutError) and not could_not_connect(error):
                raise _Later(f"no answer within {self.options.timeout:g} s", fix=_WAIT_LONGER) from None
            raise _Later(f"the connection failed: {reason}") from None
        except BrokenReply as error:
            raise _Later(str(error), fix=error.fix) from None

    def _judge(self, error: openai.APIStatusError, sent: dict[str, Any]) -> str:
        """The parameter to leave out; otherwise raises what the status means."""
        said, status = printable_line(self._without_key(_said(error))), error.status_code
        wait = retry_after(error.response.headers)
        if (status in RETRIED or status >= 500) and error.code != "insufficient_quota":
            if wait is not None and wait > LONGEST_ASKED_WAIT:
                raise EndpointError(
                    f"the endpoint asks clients to wait {wait:.0f} s (HTTP status {status}: {said})",
                    where=self.base_url,
                    fix=f"run this command again after {wait:.0f} s{self._kept}",
                ) from None
            fix = _SLOW_DOWN if status == 429 else _CHECK_UP
            raise _Later(f"HTTP status {status}: {said}", wait, fix) from None
        if status == 413 or (status in (400, 422) and _OF_THIS_QUESTION.search(f"{error.code} {said}")):
            self._meter.add(failed=1)
            raise NoAnswerError(f"the endpoint rejected this prompt: {said}", where=self.base_url) from None
        refused = refused_parameter(sent, said, error.param, self.options) if status in (400, 422) else None
        if refused is None:
            raise EndpointError(
                f"the endpoint replied with HTTP status {status}: {said}", where=self.base_url, fix=self._fix(status)
            ) from None
        return refused

    def _fix(self, status: int) -> str:
        if status in (401, 403):
            if self._key.get_secret_value():
                return "check the API key"
            is_secure = self.base_url.startswith("https:")  # the key in KEY_VARIABLE goes nowhere else
            export = f"export {KEY_VARIABLE}=…, or " if is_secure else ""
            return f"this endpoint requires an API key: {export}give `key_file` or `key_variable`"
        if status in (402, 429):  # 429 comes here only where a quota is used up
            return "check the credit of your account at this endpoint"
        if status == 404:
            return f"check the address (does it end in /v1?) and the name of the model, {self.model}"
        return "check the address, the name of the model and the options"

    def _without_key(self, text: str) -> str:
        """A text from the endpoint that may be shown and stored."""
        key = self._key.get_secret_value()
        return text.replace(key, "[key]") if len(key) >= SHORTEST_SECRET else text

    def close(self) -> None:
        """Close connections and cache."""
        self._client.close()
        if self._cache:
            self._cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _ThirdPartyClient(openai.OpenAI):
    """For endpoints other than OpenAI's: what the environment says of an account there is not sent to them."""

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        self.organization = self.project = None
        self._custom_headers = {}  # of OPENAI_CUSTOM_HEADERS: we give none
        return super().default_headers


def _said(error: openai.APIStatusError) -> str:
    """What the server says went wrong."""
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return message if isinstance(message, str) else error.response.text
