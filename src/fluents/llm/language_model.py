"""A language model as everything that asks one takes it: who answers, under which name, how many questions at once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from fluents.errors import InputError
from fluents.llm.question import Answerer
from fluents.llm.usage import Usage
from fluents.llm.wire_format import Api, EndpointOptions, RetryPolicy, Structured

OnAnswer: TypeAlias = Callable[[int, int], None]
"""Told (answers so far, questions in all) while questions are asked."""


@dataclass(frozen=True)
class LanguageModel:
    """Whom to ask, and how."""

    answerer: Answerer
    name: str
    """As provenance and ratings record it."""
    workers: int = 8
    """Questions asked at once."""
    max_tokens: int | None = None
    """Maximum length of an answer, reasoning included; None: what each question needs."""
    on_answer: OnAnswer | None = None

    @property
    def usage(self) -> Usage:
        """What was used so far; nothing where the answerer does not count."""
        return self.answerer.usage if isinstance(self.answerer, _Counting) else Usage()


@runtime_checkable
class _Counting(Protocol):
    @property
    def usage(self) -> Usage: ...


@contextmanager
def open_model(
    model: str | LanguageModel | None,
    base_url: str | None = None,
    *,
    api: Api = "chat",
    key_file: str | Path | None = None,
    key_variable: str | None = None,
    structured: Structured = "auto",
    max_tokens: int | None = None,
    workers: int = 8,
    timeout: float = 120.0,
    retries: int = 6,
    cache: str | Path | bool = True,
    cached_only: bool = False,
    on_answer: OnAnswer | None = None,
) -> Iterator[LanguageModel]:
    """A model behind an OpenAI-compatible endpoint, until the block ends; one that is open already is used as it is.

    `base_url` defaults to $OPENAI_BASE_URL, then to OpenAI's own. The key comes from `key_file`, from the environment
    variable `key_variable`, or from $OPENAI_API_KEY. Answers are kept in the file `cache` (True: the user's cache;
    False: nowhere), so that no question is paid for twice. `cached_only` answers from it alone and sends nothing.

    >>> with open_model("NAME", "http://127.0.0.1:8080/v1") as model:
    ...     trace = canonicalise(trace, "prompted", model=model)
    """
    if isinstance(model, LanguageModel):
        if base_url is not None:
            raise InputError("`base_url` has no effect on a model that is already open", fix="leave out `base_url`")
        yield model
        return
    from fluents.llm.cache import Cache, default_path
    from fluents.llm.credentials import find_key
    from fluents.llm.endpoint import Endpoint

    if not model:
        raise InputError("no language model given", fix="set `model` to the name of a model at the endpoint")
    if not math.isfinite(timeout):
        raise InputError(
            f"`timeout` must be a finite number, not {timeout}", fix="give a number of seconds, such as 120"
        )
    address = endpoint_url(base_url)
    key = None if cached_only else find_key(address, file=key_file, variable=key_variable)
    path = default_path() if isinstance(cache, bool) else Path(cache)
    if cached_only and cache is False:
        raise InputError(
            "`cached_only` needs a cache", fix="leave out `cached_only`, or set `cache` to the file of an earlier run"
        )
    if cached_only and not path.is_file():
        fix = "leave out `cached_only`, or set `cache` to the file of an earlier run"
        raise InputError("this cache does not exist", where=path, fix=fix)
    options = EndpointOptions(api, structured, timeout, RetryPolicy(retries))
    kept = None if cache is False else Cache(path)
    with Endpoint(address, model, key, options=options, cache=kept, cached_only=cached_only) as endpoint:
        yield LanguageModel(endpoint, model, workers, max_tokens, on_answer)


def endpoint_url(base_url: str | None) -> str:
    """The address to use: `base_url`, else $OPENAI_BASE_URL, else OpenAI's own."""
    from fluents.llm.credentials import OPENAI, checked_url

    return checked_url(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
