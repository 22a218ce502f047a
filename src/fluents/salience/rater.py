"""Ratings of how much each entity matters, by whichever rater."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol, TypeAlias

from fluents.errors import InputError
from fluents.llm import LanguageModel, open_model
from fluents.records import Salience, Trace
from fluents.salience.feature_rater import FeatureRater
from fluents.salience.prompted_rater import Form, PromptedRater
from fluents.scoring import Scope, check_choice, check_type

RaterName: TypeAlias = Literal["offline", "prompted"]

RatedScope: TypeAlias = Literal["global", "local", "both"]

SCOPES: dict[RatedScope, tuple[Scope, ...]] = {"global": ("global",), "local": ("local",), "both": ("global", "local")}


class Rater(Protocol):
    """A way to tell how much an entity matters."""

    @property
    def name(self) -> str:
        """As its ratings record it."""
        ...

    def ratings(self, trace: Trace, scopes: Sequence[Scope]) -> list[Salience]:
        """For the goal every entity, for a step every entity."""
        ...


def rate_salience(
    trace: Trace,
    method: RaterName | Rater = "offline",
    *,
    scope: RatedScope = "both",
    form: Form | None = None,
    model: str | LanguageModel | None = None,
    base_url: str | None = None,
) -> Trace:
    """The trace with a rating of each entity, for the goal, for each step, or both: 1 to 5, and 0 for irrelevant.

    The method "offline" needs no language model; "prompted" asks one. What other raters said stays, and stands first;
    what the same rater said before is replaced.

    >>> trace = rate_salience(trace)
    >>> trace = rate_salience(trace, "prompted", model="NAME", base_url="http://127.0.0.1:8080/v1")
    """
    check_type("trace", trace, Trace)
    check_choice("scope", scope, RatedScope)
    with open_rater(method, form=form, model=model, base_url=base_url) as rater:
        ours = rater.ratings(trace, SCOPES[scope])
    kept = [one for one in trace.salience if one.rater != rater.name or _scope(one) not in SCOPES[scope]]
    return trace.replace(salience=(*kept, *ours))


@contextmanager
def open_rater(
    method: RaterName | Rater = "offline",
    *,
    form: Form | None = None,
    model: str | LanguageModel | None = None,
    base_url: str | None = None,
) -> Iterator[Rater]:
    """The rater of this name, until the block ends: for many traces, `rate_salience` takes it as its method."""
    if method != "prompted":
        given = {"form": form, "model": model, "base_url": base_url}
        if foreign := [name for name, value in given.items() if value is not None]:
            raise InputError(
                f"`{foreign[0]}` works only with `method` prompted",
                fix=f"leave out `{foreign[0]}`, or set `method` to prompted",
            )
    if not isinstance(method, str):
        yield method
        return
    check_choice("method", method, RaterName)
    if method == "offline":
        yield FeatureRater()
    else:
        with open_model(model, base_url) as opened:
            yield PromptedRater(opened, form or "paper")


def parse_failures(trace: Trace, rater: str) -> list[str]:
    """What is said of the rater's ratings that have no value: its answers could not be read."""
    return [one.explanation or "" for one in trace.salience if one.rater == rater and one.value is None]


def _scope(rating: Salience) -> Scope:
    return "global" if rating.step is None else "local"
