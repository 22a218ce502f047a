"""The options of every command that asks a language model, and the model they name."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from fluents import jsonl
from fluents.cli.output import messages
from fluents.errors import InputError

if TYPE_CHECKING:
    from fluents.llm import Model
    from fluents.llm.endpoint import Endpoint
    from fluents.llm.recorded import Recorded
    from fluents.llm.usage import Prices
    from fluents.llm.wire_format import EndpointOptions

PANEL = "Language model"
SQLITE = b"SQLite format 3\0"


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=PANEL, **more)


@dataclass(frozen=True)
class ModelChoice:
    """A language model as the command line names it. Each field is an option: see `options.with_options`."""

    model: Annotated[str | None, _option(help="The model's name, as the endpoint knows it.")] = None
    base_url: Annotated[
        str | None, _option(help="Any OpenAI-compatible endpoint; else $OPENAI_BASE_URL, else OpenAI's own.")
    ] = None
    api: Annotated[Literal["chat", "completion"], _option(help="How the endpoint is asked.")] = "chat"
    key_file: Annotated[Path | None, _option(help="A file with the key, instead of OPENAI_API_KEY.")] = None
    key_variable: Annotated[str | None, _option(help="The environment variable with the key.")] = None
    structured: Annotated[
        Literal["auto", "schema", "json", "off"], _option(help="How answers are held to JSON: auto tries.")
    ] = "auto"
    max_tokens: Annotated[
        int | None,
        _option(
            min=16,
            max=1_000_000,
            help="The most an answer may have, thoughts and all; if left out, what each question needs.",
        ),
    ] = None
    workers: Annotated[int, _option(min=1, max=256, help="Questions asked at once.")] = 8
    timeout: Annotated[float, _option(min=0.1, max=86400, help="Seconds to wait for an answer.")] = 120.0
    retries: Annotated[int, _option(min=0, max=50, help="Further tries when a request fails.")] = 6
    cache: Annotated[Path | None, _option(help="The file answers are kept in, instead of one in the user's cache.")] = (
        None
    )
    no_cache: Annotated[bool, _option("--no-cache", help="Ask anew, and keep no answers.")] = False
    record: Annotated[Path | None, _option(help="Write questions and answers here as they come, as JSONL.")] = None
    from_record: Annotated[
        Path | None, _option(help="Play back a record, or a file of kept answers: nothing is asked.")
    ] = None
    price_in: Annotated[float | None, _option(min=0, help="Of a million tokens sent.")] = None
    price_out: Annotated[float | None, _option(min=0, help="Of a million tokens written.")] = None
    usage: Annotated[
        Path | None, _option(help="Add a line of JSON to this file: what the run used, and what it cost.")
    ] = None

    def __post_init__(self) -> None:
        for option, value in (("timeout", self.timeout), ("price-in", self.price_in), ("price-out", self.price_out)):
            if value is not None and not math.isfinite(value):
                raise InputError(f"--{option} {value}", fix="give a plain number")

    @property
    def address(self) -> str:
        from fluents.llm.credentials import OPENAI, checked_url

        return checked_url(self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)

    @property
    def prices(self) -> Prices | None:
        from fluents.llm.usage import Prices

        if self.price_in is None and self.price_out is None:
            return None
        return Prices(self.price_in or 0.0, self.price_out or 0.0)

    @property
    def manner(self) -> EndpointOptions:
        from fluents.llm.retry import RetryPolicy
        from fluents.llm.wire_format import EndpointOptions

        return EndpointOptions(self.api, self.structured, self.timeout, RetryPolicy(self.retries))


@contextmanager
def open_model(choice: ModelChoice) -> Iterator[Model]:
    """The model, or the record in its place; says at the end, on standard error, what was used."""
    with ExitStack() as stack:
        if choice.from_record is not None:
            model: Model = _recorded(choice, choice.from_record, stack)
        else:
            model = stack.enter_context(_endpoint(choice))
        # Before anything is asked: a file that cannot be written must cost nothing.
        account = stack.enter_context(jsonl.open_output(choice.usage, append=True)) if choice.usage else None
        asked = _recording(model, choice.record, stack) if choice.record else model
        try:
            yield asked
        finally:
            _tell(model, choice, account)


def _tell(model: Model, choice: ModelChoice, account: IO[bytes] | None) -> None:
    messages.print(model.usage.summary(choice.prices), markup=False, soft_wrap=True)
    if model.left_out:
        messages.print(f"the endpoint does not take {', '.join(model.left_out)}: answers came without", markup=False)
    if cut := model.usage.cut:
        fix = "" if choice.from_record else ": a larger --max-tokens gives them room"
        messages.print(f"{cut} answers were cut off at their limit of tokens{fix}", markup=False, soft_wrap=True)
    if account:
        ended = {"ended": datetime.now(UTC).isoformat(timespec="seconds")}
        where = {"model": choice.model, "base_url": None if choice.from_record else choice.address}
        account.write(json.dumps(ended | where | model.usage.as_dict(choice.prices)).encode() + b"\n")


def _endpoint(choice: ModelChoice) -> Endpoint:
    from fluents.llm.cache import Cache
    from fluents.llm.credentials import find_key
    from fluents.llm.endpoint import Endpoint

    if not choice.model:
        raise InputError("no model is named", fix="--model NAME, as the endpoint knows it")
    if choice.cache is not None and choice.no_cache:
        raise InputError("--cache and --no-cache", fix="give one of them")
    key = find_key(choice.address, file=choice.key_file, variable=choice.key_variable)
    cache = None if choice.no_cache else Cache(choice.cache)
    return Endpoint(choice.address, choice.model, key, manner=choice.manner, cache=cache)


def _recorded(choice: ModelChoice, path: Path, stack: ExitStack) -> Recorded:
    from fluents.llm.cache import Cache
    from fluents.llm.recorded import Recorded

    with jsonl.open_input(path) as stream:
        is_cache = stream.read(len(SQLITE)) == SQLITE
    if not is_cache:
        return Recorded.read(path)
    if not choice.model:
        raise InputError("no model is named", fix="--model NAME, as when the answers were kept", where=path)
    cache = Cache(path)
    stack.callback(cache.close)
    return Recorded.of_cache(cache, choice.address, choice.model, choice.manner)


def _recording(model: Model, path: Path, stack: ExitStack) -> Model:
    """The record grows answer by answer, and stays when the run is interrupted: answers may have cost money."""
    from fluents.llm.recorded import Recorder

    stream = stack.enter_context(jsonl.open_output(path, append=True))
    if stream.seekable() and stream.tell():
        raise InputError(
            "there is a record already",
            where=path,
            fix="name another file; the records of a run and of its --resume can be put together",
        )
    return Recorder(model, stream)
