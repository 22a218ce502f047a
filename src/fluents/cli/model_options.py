"""The options of every command that asks a language model, and the model they name."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from fluents import jsonl
from fluents.cli.command import changed, step_progress, tell
from fluents.errors import InputError
from fluents.text.names import counted

if TYPE_CHECKING:
    from fluents.llm import LanguageModel, OnAnswer, Prices
    from fluents.records import Trace

PANEL = "Language model"
BASE_URL_HELP = (
    "URL of the OpenAI-compatible endpoint that runs the language model given by --model. Default: "
    "$OPENAI_BASE_URL if set, otherwise the URL of OpenAI."
)
MAX_REASON = 200
"""Characters of the reason why an answer could not be parsed: it may repeat what a model or an endpoint said."""


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=PANEL, **more)


@dataclass(frozen=True)
class ModelOptions:
    """A language model as the command line names it. Each field is an option: see `with_options`."""

    model: Annotated[
        str | None,
        _option(
            metavar="NAME",
            help="Name of the language model at the endpoint. There is no default.",
        ),
    ] = None
    base_url: Annotated[
        str | None,
        _option(
            metavar="URL",
            help=BASE_URL_HELP,
        ),
    ] = None
    api: Annotated[
        Literal["chat", "completion"],
        _option(help="API of the endpoint: chat (/chat/completions) or completion (/completions)."),
    ] = "chat"
    key_file: Annotated[Path | None, _option(help="Read the API key of the endpoint from FILE.", metavar="FILE")] = None
    key_variable: Annotated[
        str | None,
        _option(
            metavar="NAME",
            help="Read the API key of the endpoint from the environment variable NAME. Default: OPENAI_API_KEY, if the "
            "URL of the endpoint begins with https.",
        ),
    ] = None
    structured: Annotated[
        Literal["auto", "schema", "json", "off"],
        _option(
            help="How to get answers in JSON: schema (send a JSON Schema), json (use JSON mode), off (only the prompt "
            "asks for JSON), or auto (the first of these three that the endpoint supports)."
        ),
    ] = "auto"
    max_tokens: Annotated[
        int | None,
        _option(
            min=16,
            max=1_000_000,
            help="Maximum number of tokens per answer, including reasoning tokens. Default: depends on the prompt.",
        ),
    ] = None
    workers: Annotated[int, _option(min=1, max=256, help="Number of requests to send at the same time.")] = 8
    timeout: Annotated[float, _option(min=0.1, max=86400, help="Timeout of a request, in seconds.")] = 120.0
    retries: Annotated[int, _option(min=0, max=50, help="Number of times to retry a failed request.")] = 6
    cache: Annotated[
        Path | None,
        _option(
            help="Store the answers of the model in FILE, and reuse them. Default: answers.sqlite in the folder "
            "$FLUENTS_CACHE or, if that is not set, in your cache folder (on Linux, ~/.cache/fluents).",
            metavar="FILE",
        ),
    ] = None
    no_cache: Annotated[bool, _option("--no-cache", help="Do not store answers, and do not reuse stored answers.")] = (
        False
    )
    cached_only: Annotated[bool, _option("--cached-only", help="Use only stored answers, and send no requests.")] = (
        False
    )
    price_in: Annotated[
        float | None, _option(min=0, help="Price of a million input tokens, in any currency, to report the cost.")
    ] = None
    price_out: Annotated[
        float | None, _option(min=0, help="Price of a million output tokens, in any currency, to report the cost.")
    ] = None
    usage: Annotated[
        Path | None,
        _option(
            help="Append the usage of this run (number of requests, tokens, cost) to FILE, as a line of JSON.",
            metavar="FILE",
        ),
    ] = None
    record: Annotated[Path | None, _option(help="Removed.", hidden=True)] = None
    from_record: Annotated[Path | None, _option(help="Removed.", hidden=True)] = None

    def __post_init__(self) -> None:
        if self.record is not None:
            raise InputError("--record was removed", fix="use --cache FILE")
        if self.from_record is not None:
            raise InputError("--from-record was removed", fix="use --cache FILE --cached-only")
        if self.cache is not None and self.no_cache:
            raise InputError("--cache and --no-cache cannot be combined", fix="leave out --cache or --no-cache")
        for option, value in (("timeout", self.timeout), ("price-in", self.price_in), ("price-out", self.price_out)):
            if value is not None and not math.isfinite(value):
                raise InputError(f"--{option} must be a finite number, not {value}", fix="give a finite number")

    @property
    def prices(self) -> Prices | None:
        from fluents.llm import Prices

        if self.price_in is None and self.price_out is None:
            return None
        return Prices(self.price_in or 0.0, self.price_out or 0.0)

    def refuse(self, when: str) -> None:
        """Options that would be ignored are an error."""
        if foreign := changed(self):
            raise InputError(
                f"{foreign[0]} works only {when}", fix=f"leave out {foreign[0]}, or run the command {when}"
            )


_PASSED_ON = (
    "api",
    "key_file",
    "key_variable",
    "structured",
    "max_tokens",
    "workers",
    "timeout",
    "retries",
    "cached_only",
)


@contextmanager
def open_model(options: ModelOptions, on_answer: OnAnswer | None = None) -> Iterator[LanguageModel]:
    """The model; what was used is told at the end, on standard error."""
    from fluents import llm

    chosen = {name: getattr(options, name) for name in _PASSED_ON} | {"cache": options.cache or not options.no_cache}
    with (
        llm.open_model(options.model, options.base_url, on_answer=on_answer, **chosen) as model,
        # Before anything is asked: a file that cannot be written must cost nothing.
        jsonl.open_output(options.usage, append=True) if options.usage else nullcontext() as account,
    ):
        try:
            yield model
        finally:
            if account or model.usage != llm.Usage():
                _tell_usage(model, options, account)


@contextmanager
def model_unless(
    offline: bool, options: ModelOptions, progress: AnswerProgress, when: str
) -> Iterator[LanguageModel | None]:
    """The model that the options name; offline none, and options that name one are an error."""
    if offline:
        options.refuse(when)
        yield None
        return
    with open_model(options, progress) as model:
        yield model


def _tell_usage(model: LanguageModel, options: ModelOptions, account: IO[bytes] | None) -> None:
    from fluents.llm.language_model import endpoint_url

    usage = model.usage
    tell(usage.summary(options.prices))
    if usage.refused:
        left_out = "it was" if len(usage.refused) == 1 else "they were"
        tell(f"the endpoint does not support {', '.join(usage.refused)}; {left_out} left out of the requests")
    if usage.cut:
        tell(
            f"{counted(usage.cut, 'answer')} cut off at the maximum length; to allow longer answers, raise --max-tokens"
        )
    if account:
        ended = {"ended": datetime.now(UTC).isoformat(timespec="seconds")}
        where = {"model": model.name, "base_url": endpoint_url(options.base_url)}
        account.write(json.dumps(ended | where | usage.as_dict(options.prices)).encode() + b"\n")


@contextmanager
def report_parse_failures(kept: str = "see `rejects` in the output") -> Iterator[list[str]]:
    """A list for the reasons why answers could not be read; reported also when the run is interrupted or fails."""
    reasons: list[str] = []
    try:
        yield reasons
    finally:
        if reasons:  # mostly the others have the reason of the first
            first = " ".join(reasons[0][:MAX_REASON].split())
            tell(f"{counted(len(reasons), 'answer')} could not be parsed ({kept}). The first error: {first}")


class AnswerProgress:
    """A progress bar for each trace in turn, told of answers by a model that is open for all of them."""

    def __init__(self) -> None:
        self._bar: OnAnswer | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar:
            self._bar(done, total)

    def of(self, trace: Trace) -> AbstractContextManager[None]:
        return self.named(trace.procedure.goal or trace.id)

    @contextmanager
    def named(self, what: str) -> Iterator[None]:
        with step_progress(what, 0) as self._bar:
            yield
