"""Statistics of the datasets, beside the numbers printed in their papers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, pstdev

from fluents.data.datasets import DATASETS, load, load_traces
from fluents.errors import UnknownNameError
from fluents.records import Trace
from fluents.task_records import CrepeCase, PddlTask


@dataclass(frozen=True)
class Stat:
    """One number: counted in the files, and as printed in the paper, if it is."""

    split: str
    what: str
    counted: float
    printed: str | None = None

    @property
    def differs(self) -> bool:
        """Whether the paper prints another number. "13.8k" agrees with 13,843."""
        if self.printed is None:
            return False
        number = self.printed.replace(",", "")
        scale = 1000 if number.endswith("k") else 1
        digits = number.removesuffix("k")
        decimals = len(digits.partition(".")[2])
        return round(self.counted / scale, decimals) != float(digits)


def stats(dataset: str) -> list[Stat]:
    """All numbers of a dataset."""
    if dataset not in _COUNTERS:
        raise UnknownNameError(f"unknown dataset {dataset!r}", fix=f"choose one of: {', '.join(_COUNTERS)}")
    return list(_COUNTERS[dataset]())


def _sizes(split: str, traces: Sequence[Trace], printed: Sequence[str | None]) -> Iterator[Stat]:
    answers = sum(len(trace.changes) + len(trace.rejects) for trace in traces)
    counted = (len(traces), sum(len(trace.procedure.steps) for trace in traces), answers)
    for what, number, figure in zip(("procedures", "steps", "changes"), counted, printed, strict=True):
        yield Stat(split, what, number, figure)


# Procedures are not printed per split by the 2020 paper; these are OpenPI-C's table 1. The 2020 paper counts the test
# steps as 160 in domain and 394 out of it.
_OPENPI_PRINTED = {"train": ("644", "3,216", "23,869"), "dev": ("55", "274", "1,811"), "test": ("111", "554", "4,248")}
# Table 3 of the 2020 paper: articles and changes by topic. Its articles add up to 804, its "All" row says 858.
_TOPICS_PRINTED = {
    "Food and Entertaining": ("197", "9,942"),
    "Home and Garden": ("199", "6,961"),
    "Hobbies and Crafts": ("193", "4,766"),
    "Sports and Fitness": ("95", "3,361"),
    "Cars & Other Vehicles": ("43", "1,656"),
    "Health": ("77", "3,036"),
}


def _openpi() -> Iterator[Stat]:
    everything: list[Trace] = []
    for split, printed in _OPENPI_PRINTED.items():
        traces = list(load_traces(f"openpi:{split}"))
        yield from _sizes(split, traces, printed)
        yield Stat(split, "changes not in the template", sum(len(trace.rejects) for trace in traces))
        yield from _modalities(split, traces)
        everything += traces
    answers = sum(len(trace.changes) + len(trace.rejects) for trace in everything)
    steps = sum(len(trace.procedure.steps) for trace in everything)
    yield Stat("all", "procedures", len(everything), "810")
    yield Stat("all", "steps", steps, "4,050")
    yield Stat("all", "changes", answers, "29,928")
    by_topic: dict[str, list[Trace]] = {}
    for trace in everything:
        by_topic.setdefault(trace.procedure.topic or "(none)", []).append(trace)
    for topic, traces in sorted(by_topic.items()):
        articles, changes = _TOPICS_PRINTED.get(topic, (None, None))
        yield Stat("all", f"procedures, {topic}", len(traces), articles)
        yield Stat("all", f"changes, {topic}", sum(len(t.changes) + len(t.rejects) for t in traces), changes)


def _modalities(split: str, traces: Iterable[Trace]) -> Iterator[Stat]:
    """Annotations with and without the image; the training set's are not among the published files."""
    count = Counter(note.modality for trace in traces for note in trace.annotations)
    for modality in sorted(count):
        yield Stat(split, f"annotations {modality.replace('_', ' ')}", count[modality])


def _openpi_v1_1() -> Iterator[Stat]:
    for split in ("dev", "test"):
        traces = list(load_traces(f"openpi-v1.1:{split}"))
        yield from _sizes(split, traces, _OPENPI_PRINTED[split])
        yield from _modalities(split, traces)


def _openpi_c() -> Iterator[Stat]:
    printed = {"train": ("539", "2403", "13.8k"), "dev": ("50", "219", "1.2k"), "test": ("74", "345", "2.0k")}
    for split, figures in printed.items():
        traces = list(load_traces(f"openpi-c:{split}"))
        yield from _sizes(split, traces, figures)
        if split == "test":
            clusters = {(trace.id, change.step, change.cluster) for trace in traces for change in trace.changes}
            yield Stat(split, "clusters of changes", len(clusters))


def _openpi2() -> Iterator[Stat]:
    traces = list(load_traces("openpi2:dev"))
    clusters = [cluster for trace in traces for cluster in trace.clusters]
    attributes = [attribute for cluster in clusters for attribute in cluster.attributes]
    yield Stat("dev", "procedures", len(traces), "55")
    yield Stat("dev", "steps per procedure", mean(len(trace.procedure.steps) for trace in traces), "5.0")
    yield Stat("dev", "canonical entities, of clusters", len(clusters), "356")
    yield Stat("dev", "canonical entities, of states", sum(len(trace.entities) for trace in traces))
    yield Stat("dev", "mentions per entity", mean(len(c.mentions) for c in clusters), "7.6")
    yield Stat("dev", "expansions per entity", mean(len(c.expansions) for c in clusters), "5.5")
    yield Stat("dev", "mentions and expansions per entity", mean(len(c.mentions + c.expansions) for c in clusters))
    yield Stat("dev", "canonical attributes", len(attributes), "3240")
    yield Stat("dev", "mentions per attribute", mean(len(a.mentions) for a in attributes), "3.0")
    yield Stat("dev", "expansions per attribute", mean(len(a.expansions) for a in attributes), "3.3")
    yield Stat("dev", "mentions and expansions per attribute", mean(len(a.mentions + a.expansions) for a in attributes))
    yield Stat("dev", "changes", sum(len(trace.changes) for trace in traces), "1193")
    yield from _salience(traces)
    for split in ("ranked-dev", "ranked-test"):
        ranked = list(load_traces(f"openpi2:{split}"))
        yield Stat(split, "state units", sum(len(trace.changes) for trace in ranked))


def _salience(traces: Sequence[Trace]) -> Iterator[Stat]:
    """Mean and deviation as the paper has them: of the first annotator's ratings from 1 to 5."""
    for scope, printed in (("global", ("3.5", "1.4")), ("local", ("3.4", "1.5"))):
        values = [
            rating.value
            for trace in traces
            for rating in trace.salience
            if rating.rater == "A1" and (rating.step is None) == (scope == "global") and rating.value in range(1, 6)
        ]
        numbers = [float(value) for value in values if value is not None]
        yield Stat("dev", f"{scope} salience (A1), mean", mean(numbers), printed[0])
        yield Stat("dev", f"{scope} salience (A1), deviation", pstdev(numbers), printed[1])


def _openpi2_outputs() -> Iterator[Stat]:
    for split in DATASETS["openpi2-outputs"].splits:
        traces = list(load_traces(f"openpi2-outputs:{split}"))
        yield Stat(split, "answers read", sum(len(trace.changes) for trace in traces))
        yield Stat(split, "answers not read", sum(len(trace.rejects) for trace in traces))


def _crepe() -> Iterator[Stat]:
    for split in ("dev", "test"):
        cases = [record for record in load(f"crepe:{split}") if isinstance(record, CrepeCase)]
        yield Stat(split, "procedures", len(cases))
        yield Stat(split, "steps", sum(len(case.procedure.steps) for case in cases))
        yield Stat(split, "events", sum(len(case.events) for case in cases))
        for kind in ("event", "entity"):
            given = sum(getattr(item, kind) is not None for case in cases for item in case.likelihoods)
            yield Stat(split, f"{kind} changes", given)


def _proc2pddl() -> Iterator[Stat]:
    tasks = [record for record in load("proc2pddl:all") if isinstance(record, PddlTask)]
    yield Stat("all", "domains", len(tasks), "27")
    yield Stat("all", "problems", sum(len(task.problems) for task in tasks), "95")
    yield Stat("all", "texts", len({task.text for task in tasks}))


def _fluents() -> Iterator[Stat]:
    for split in DATASETS["fluents"].splits:
        yield from _sizes(split, list(load_traces(f"fluents:{split}")), (None, None, None))


_COUNTERS: dict[str, Callable[[], Iterator[Stat]]] = {
    "fluents": _fluents,
    "openpi": _openpi,
    "openpi-v1.1": _openpi_v1_1,
    "openpi-c": _openpi_c,
    "openpi2": _openpi2,
    "openpi2-outputs": _openpi2_outputs,
    "crepe": _crepe,
    "proc2pddl": _proc2pddl,
}
