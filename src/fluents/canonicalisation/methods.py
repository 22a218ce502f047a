"""The ways to find canonical names, by name: offline, prompted, verified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from fluents.canonicalisation.clusters import Method, cluster_names
from fluents.canonicalisation.feature_method import FeatureMethod, VerifiedMethod
from fluents.canonicalisation.prompted_method import ClusterExamples, PromptedMethod
from fluents.data.file_formats import read_traces
from fluents.errors import InputError
from fluents.llm import LanguageModel, open_model
from fluents.records import Trace
from fluents.scoring import check_choice, check_type

MethodName: TypeAlias = Literal["offline", "prompted", "verified"]


def canonicalise(
    trace: Trace,
    method: MethodName | Method = "offline",
    *,
    model: str | LanguageModel | None = None,
    base_url: str | None = None,
) -> Trace:
    """The trace with one canonical name for each entity and each attribute; the words of its changes stay.

    The method "offline" needs no language model, "prompted" asks one for all groups, "verified" asks one about the
    pairs the offline method is least sure of. Clusters that are there are replaced. `open_method` has more options.

    >>> trace = canonicalise(trace)
    >>> trace = canonicalise(trace, "prompted", model="NAME", base_url="http://127.0.0.1:8080/v1")
    """
    check_type("trace", trace, Trace)
    with open_method(method, model=model, base_url=base_url) as opened:
        return cluster_names(trace, opened)


@contextmanager
def open_method(
    method: MethodName | Method = "offline",
    *,
    model: str | LanguageModel | None = None,
    base_url: str | None = None,
    runs: int | None = None,
    attribute_runs: int | None = None,
    examples: str | Path | None = None,
    shots: int | None = None,
    pairs: int | None = None,
) -> Iterator[Method]:
    """The method of this name, until the block ends: for many traces, `canonicalise` takes it as its method.

    Prompted: `runs` answers on entities (5) and `attribute_runs` on attributes (3) are put to the vote; `shots` (3)
    examples are drawn from the clusters of `examples`, a file or dataset, instead of three of ours. Verified: at most
    `pairs` (20) pairs are asked about.
    """
    _refuse_foreign(method, "prompted", runs=runs, attribute_runs=attribute_runs, examples=examples, shots=shots)
    _refuse_foreign(method, "verified", pairs=pairs)
    if not isinstance(method, str) or method == "offline":
        _refuse_foreign(method, "prompted or verified", model=model, base_url=base_url)
        yield FeatureMethod() if isinstance(method, str) else method
        return
    check_choice("method", method, MethodName)
    if shots is not None and examples is None:
        raise InputError(
            "`shots` has no effect without `examples`", fix="set `examples` to a file or dataset, or leave out `shots`"
        )
    shown = None if examples is None else ClusterExamples(read_traces(examples), shots or 3, source=str(examples))
    with open_model(model, base_url) as opened:
        if method == "verified":
            yield VerifiedMethod(opened, pairs or 20)
        else:
            yield PromptedMethod(opened, runs or 5, attribute_runs or 3, examples=shown)


def _refuse_foreign(method: str | Method, owner: str, **given: object) -> None:
    """Parameters of another method are an error, not ignored."""
    if method != owner and (foreign := [name for name, value in given.items() if value is not None]):
        raise InputError(
            f"`{foreign[0]}` works only with `method` {owner}",
            fix=f"leave out `{foreign[0]}`, or set `method` to {owner}",
        )
