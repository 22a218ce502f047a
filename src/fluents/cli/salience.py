"""fluents salience"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from fluents.cli.models import ModelChoice, open_model
from fluents.cli.options import changed, with_options
from fluents.cli.output import messages, step_progress
from fluents.cli.resuming import Destination, TraceFile, each_trace
from fluents.cli.unread import telling_unread
from fluents.errors import InputError
from fluents.records import Trace
from fluents.report.terminal import plain

if TYPE_CHECKING:
    from fluents.scoring import Scope

Rate: TypeAlias = Callable[[Trace], Trace]


@with_options
def salience(
    file: TraceFile = "-",
    scope: Annotated[
        Literal["global", "local", "both"], typer.Option(help="For the goal, for each step, or both.")
    ] = "both",
    method: Annotated[
        Literal["offline", "prompted"], typer.Option(help="A small model that is built in, or a language model.")
    ] = "offline",
    form: Annotated[
        Literal["paper", "likert"], typer.Option(help="Prompted: the short question, or the annotators' criteria.")
    ] = "paper",
    *,
    to: Destination,
    choice: ModelChoice,
) -> None:
    """Rate how much each entity matters, to the goal and in each step: 1 to 5, and 0 for irrelevant.

    Ctrl-C keeps the procedures that are done; `--resume` goes on, and answers are kept in a cache.

    Example: `fluents track soup.md | fluents salience -o rated.jsonl`

    Example: `fluents salience soup.jsonl --method prompted --base-url http://127.0.0.1:8080/v1 --model NAME`
    """
    from fluents.report.salience_tables import salience_view

    foreign = [option for option in changed(choice) if option != "--base-url"]  # which may come from the environment
    if form != "paper":
        foreign.append("--form")
    if method == "offline" and foreign:
        raise InputError(f"{foreign[0]} is for --method prompted", fix="add --method prompted, or leave it out")
    with _method(method, _scopes(scope), form, choice) as (rate, rater):
        each_trace(file, rate, partial(salience_view, rater=rater), to)


def _scopes(scope: str) -> tuple[Scope, ...]:
    from fluents.salience.feature_rater import BOTH

    return tuple(one for one in BOTH if scope in (one, "both"))


@contextmanager
def _method(
    method: str, scopes: tuple[Scope, ...], form: Literal["paper", "likert"], choice: ModelChoice
) -> Iterator[tuple[Rate, str]]:
    """What rates a trace, and the name it rates under."""
    if method == "offline":
        from fluents.salience.feature_rater import RATER

        yield partial(_offline, scopes=scopes), RATER
        return
    from fluents.salience.prompted_rater import rate_by_asking

    model_name = choice.model or "recorded model"
    rater = model_name if form == "paper" else f"{model_name}, {form}"
    with open_model(choice) as model, telling_unread("ratings without a value") as unread:

        def ask(trace: Trace) -> Trace:
            with step_progress(trace.procedure.goal or trace.id, 0) as on_answer:
                done = rate_by_asking(
                    trace,
                    model,
                    rater,
                    scopes=scopes,
                    form=form,
                    workers=choice.workers,
                    on_answer=on_answer,
                    max_tokens=choice.max_tokens,
                )
            unread.add(_without_value(done, rater, scopes))
            return done

        yield ask, rater


def _without_value(trace: Trace, rater: str, scopes: tuple[Scope, ...]) -> Iterator[str]:
    """What is said of those ratings of the run that have no value."""
    for one in trace.salience:
        if one.rater == rater and one.value is None and ("global" if one.step is None else "local") in scopes:
            yield one.explanation or ""


def _offline(trace: Trace, scopes: tuple[Scope, ...]) -> Trace:
    from fluents.salience.feature_rater import rate

    with messages.status(plain(f"rating {trace.procedure.goal or trace.id}")):
        return rate(trace, scopes)
