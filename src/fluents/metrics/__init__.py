"""Every metric of the papers: exactly as published (`compat`) and done right (`strict`).

    from fluents.metrics import score
    found = score("original", "openpi:test", "mine.jsonl", mode="strict")
    print(found, found.intervals())

Metrics are imported when asked for; each lives in a file of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from fluents.errors import EmptyFileError, InputError, UnknownNameError
from fluents.records import Trace
from fluents.scoring import Level, Mode, check_choice
from fluents.task_records import CrepeCase

if TYPE_CHECKING:
    from collections.abc import Callable

    from fluents.scoring.score import Score

Metric: TypeAlias = Literal[
    "original",
    "cluster",
    "schemata",
    "states",
    "complete",
    "clustering",
    "salience",
    "crepe",
    "consistency",
    "error-types",
    "bertscore",
    "agreement",
    "readers",
]


class _Entry(NamedTuple):
    function: str
    """ "module:function"."""
    reads: Literal["answers", "traces", "cases", "clusters"] = "traces"
    needs: tuple[str, ...] = ("gold", "pred")


METRICS: dict[str, _Entry] = {
    "original": _Entry("fluents.metrics.original:original", "answers"),
    "cluster": _Entry("fluents.metrics.cluster:cluster", "answers"),
    "schemata": _Entry("fluents.metrics.schemata:schemata"),
    "states": _Entry("fluents.metrics.states:states"),
    "complete": _Entry("fluents.metrics.complete:complete"),
    "clustering": _Entry("fluents.metrics.clustering:clustering", "clusters"),
    "salience": _Entry("fluents.metrics.salience:salience"),
    "crepe": _Entry("fluents.metrics.crepe:crepe", "cases"),
    "consistency": _Entry("fluents.metrics.consistency:consistency", needs=("pred",)),
    "error-types": _Entry("fluents.metrics.error_types:error_types", "answers"),
    "bertscore": _Entry("fluents.metrics.bertscore:bertscore"),
    "agreement": _Entry("fluents.metrics.agreement:agreement", needs=()),
    "readers": _Entry("fluents.metrics.readers:readers", "answers"),
}


def score(metric: Metric, gold: Any, pred: Any, *, mode: Mode = "compat", **options: Any) -> Score:
    """Score predictions against gold.

    `gold` and `pred` are traces (for "crepe", CREPE cases), or the name of a dataset's split ("openpi:test") or of a
    file. A file is read once, and streams where the metric allows it. "consistency" needs no gold: pass None. For
    "agreement", which compares raters of salience, either side may be None.

    Mode "compat" gives the published evaluator's number to the last digit; "strict" is the same idea done right.
    Consistency and agreement are the same in both. `options` are the metric's own, such as `matchers` of "original",
    `embedder` of "cluster", `level` of "clustering", `encoder` of "bertscore" and `raters` of "agreement".

    >>> found = score("original", "openpi:test", "openpi:gpt2-test")  # doctest: +SKIP
    >>> found["bleu"]["f1"], found.intervals()["bleu"]["f1"]  # doctest: +SKIP
    """
    function = load(metric)
    check_choice("mode", mode, Mode)
    parameters = inspect.signature(function).parameters.values()
    allowed = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    for name in options:
        if name not in allowed:
            known = ", ".join(f"`{option}`" for option in allowed if option != "mode")
            fix = f"choose one of these options: {known}" if known else f"leave out `{name}`"
            raise UnknownNameError(f"the metric {metric} has no option `{name}`", fix=fix)
    sides = read_sides(metric, gold, pred, level=options.get("level", "entities"))
    taken = sides[1:] if METRICS[metric].needs == ("pred",) else sides
    return function(*taken, **options, **({"mode": mode} if "mode" in allowed else {}))


def load(metric: str) -> Callable[..., Score]:
    """The function behind a metric's name: gold and predictions in, a score out."""
    check_choice("metric", metric, Metric)
    module, _, name = METRICS[metric].function.partition(":")
    found: Callable[..., Score] = getattr(import_module(module), name)
    return found


def read_sides(metric: str, gold: Any, pred: Any, *, level: Level = "entities") -> tuple[Any, Any]:
    """Gold and predictions as the metric takes them, read where they are names.

    The same name on both sides is read once, so both can be standard input.
    """
    entry = METRICS[metric]
    for name, side in (("gold", gold), ("pred", pred)):
        if side is None and name in entry.needs:
            raise InputError(
                f"the metric {metric} needs `{name}`", fix=f"give a file, a dataset split or traces as `{name}`"
            )
    if entry.needs == ("pred",):
        return (), _side(entry, "pred", pred, level)
    if isinstance(gold, str | Path) and isinstance(pred, str | Path) and str(gold) == str(pred):
        found = held(_side(entry, "gold", gold, level))
        return found, found
    return _side(entry, "gold", gold, level), _side(entry, "pred", pred, level)


def held(side: Iterable[Any]) -> Any:
    """A side that can be gone through again."""
    return side if isinstance(side, Sequence | Mapping) else list(side)


def _side(entry: _Entry, name: str, source: Any, level: Level) -> Any:
    from fluents.data.file_formats import read, read_answers, read_traces

    if not isinstance(source, str | Path):
        return _given(entry, name, source)
    try:
        if entry.reads == "answers":
            return read_answers(source)
        if entry.reads == "clusters":
            from fluents.metrics.clustering import named_clusters

            return named_clusters(source, level)
        return _cases(read(source), str(source)) if entry.reads == "cases" else read_traces(source)
    except EmptyFileError:  # no traces; what that means, the metric says
        return ()


def _given(entry: _Entry, name: str, source: Any) -> Any:
    if source is None:
        return ()
    if isinstance(source, Trace | CrepeCase):
        return [source]
    if entry.reads == "cases":
        return _cases(source, name)
    return _traces(source, name) if entry.reads == "traces" else source


def _cases(records: Iterable[Any], where: str) -> Iterator[CrepeCase]:
    for record in records:
        if not isinstance(record, CrepeCase):
            raise InputError(
                "this is not CREPE data: a record has no events",
                where=where,
                fix="give a CREPE dataset, such as crepe:dev, or the output of `fluents ask`",
            )
        yield record


def _traces(records: Iterable[Any], name: str) -> Iterator[Trace]:
    for record in records:
        if not isinstance(record, Trace):
            what = f"`{name}` must contain traces, but contains a value of type {type(record).__name__}"
            raise InputError(what, fix=f"give traces as `{name}`, or the name of a file or dataset split of traces")
        yield record
