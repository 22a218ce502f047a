"""How well names were clustered: clusters found whole, and B-cubed.

compat is OpenPI2.0's released evaluation. Its recall divides the predicted clusters that are in the gold, and its
precision the gold clusters that are in the prediction (the numerators are swapped); predicted names the gold does not
have are taken out of their clusters first; and of attributes, groupings with a single gold cluster are skipped.
strict swaps nothing, takes out nothing and skips nothing, and counts a cluster that comes twice once.

B-cubed (Bagga and Baldwin 1998; for names in several clusters, Amigó et al. 2009) asks of every name which others it
was put together with. It is pooled over names, and as a mean over groupings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from fluents.data import openpi2_labels
from fluents.data.file_formats import read_traces
from fluents.errors import InputError
from fluents.records import Trace
from fluents.scoring import Level, Mode, check_choice
from fluents.scoring.alignment import first_three
from fluents.scoring.greedy_clusters import b_cubed
from fluents.scoring.score import Figures, Harmonic, MeanOf, Ratio, Score, Signature, Statistics, StepRow
from fluents.text.names import counted

Grouping: TypeAlias = Sequence[Collection[str]]
"""Clusters of names."""

Groupings: TypeAlias = Mapping[tuple[str, str], Grouping]
"""Keyed by procedure id, and by entity where the names are its attributes ("" where they are the entities)."""


Clusterings: TypeAlias = Iterable[Trace] | Groupings | Sequence[Groupings]
"""Traces with clusters, plain clusters, or those of several runs."""


def clustering(
    gold: Iterable[Trace] | Groupings, pred: Clusterings, *, mode: Mode = "compat", level: Level = "entities"
) -> Score:
    """Score the clusters of one prediction, or the mean over several runs'."""
    check_choice("mode", mode, Mode)
    check_choice("level", level, Level)
    meant = gold if isinstance(gold, Mapping) else groupings_of(gold, level)
    said = _runs(pred, level)
    warnings = _disagreements(meant, said)
    if warnings and mode == "strict":
        raise InputError(
            "; ".join(warnings), fix="set `mode` to compat, which scores only what is in both gold and predictions"
        )
    columns = [f"{run}.{part}" for run in range(len(said)) for part in _Counts._fields]
    figures = _figures(len(said), mode)
    content = sorted((key, sorted(sorted(cluster) for cluster in grouping)) for key, grouping in meant.items())
    data = hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    signature = Signature.of("clustering", mode, level=level, runs=len(said), data=data)
    return Score(
        "clustering", Statistics.collect(columns, _rows(meant, said, mode, level)), figures, signature, warnings
    )


def groupings_of(traces: Iterable[Trace], level: Level) -> Groupings:
    """The clusters of traces, without expansions."""
    found: dict[tuple[str, str], Grouping] = {}
    seen: set[str] = set()
    for trace in traces:
        if trace.id in seen:
            raise InputError(f"two procedures have the same id, {trace.id}", fix="give every procedure a unique id")
        seen.add(trace.id)
        if level == "entities":
            found[trace.id, ""] = [{cluster.name, *cluster.mentions} for cluster in trace.clusters]
            continue
        for cluster in trace.clusters:
            found[trace.id, cluster.name] = [{one.name, *one.mentions} for one in cluster.attributes]
    return found


def _runs(pred: Clusterings, level: Level) -> list[Groupings]:
    if isinstance(pred, Mapping):
        return [pred]
    runs: list[Groupings] = []
    traces: list[Trace] = []
    for one in pred:
        if isinstance(one, Trace):
            traces.append(one)
        else:
            runs.append(one)
    return runs or [groupings_of(traces, level)]


def named_clusters(name: str | Path, level: Level) -> Clusterings:
    """The clusters OpenPI2.0 released, by one of the names below, or those of a dataset or a file."""
    if str(name) == LABELS:
        return openpi2_labels.entity_labels() if level == "entities" else openpi2_labels.attribute_labels()
    if str(name) != RUNS:
        return read_traces(name)
    if level == "entities":
        return [openpi2_labels.entity_run(run) for run in openpi2_labels.ENTITY_RUNS]
    return [openpi2_labels.attribute_run()]


LABELS, RUNS = "openpi2:labels", "openpi2-outputs:clusters"
"""The clusters a person made of ten procedures, and those a language model made of them in several runs."""


def _disagreements(gold: Groupings, runs: Sequence[Groupings]) -> tuple[str, ...]:
    if not any(gold.values()) or not runs:
        side = "predictions contain" if any(gold.values()) else "gold contains"
        raise InputError(f"the {side} no clusters", fix="cluster the traces with `fluents canonicalise`")
    found = []
    for run in runs:
        for side, lacks, keys in (
            ("gold", "without a prediction", gold.keys() - run),
            ("predicted", "not in the gold", run.keys() - gold),
        ):
            if keys:
                noun = "entity" if any(entity for _, entity in keys) else "procedure"
                names = first_three([":".join(filter(None, key)) for key in sorted(keys)])
                found.append(f"{counted(len(keys), f'{side} {noun}')} {lacks}: {names}")
    return tuple(found)


class _Counts(NamedTuple):
    pred_in_gold: float
    gold_in_pred: float
    predicted: float
    gold: float
    b_precision: float
    b_predicted: float
    b_recall: float
    b_gold: float
    mean_precision: float
    mean_recall: float
    mean_f1: float


def _rows(gold: Groupings, runs: Sequence[Groupings], mode: Mode, level: Level) -> Iterator[StepRow]:
    """One row a grouping."""
    for key, meant in gold.items():
        if mode == "compat" and level == "attributes" and len(meant) == 1:
            continue
        if all(key in run for run in runs):
            values = [value for run in runs for value in _count(meant, run[key], mode)]
            yield key[0], 0, values


def _count(gold: Grouping, pred: Grouping, mode: Mode) -> _Counts:
    meant, said = _stripped(gold), _stripped(pred)
    if mode == "compat":
        known = frozenset().union(*meant)
        said = [cluster & known for cluster in said]  # one that is empty now still counts
    else:
        meant, said = [list(dict.fromkeys(filter(None, clusters))) for clusters in (meant, said)]
    gold_clusters, pred_clusters = set(meant), set(said)
    b_precision, b_recall = b_cubed(said, meant), b_cubed(meant, said)
    return _Counts(
        sum(cluster in gold_clusters for cluster in said),
        sum(cluster in pred_clusters for cluster in meant),
        len(said),
        len(meant),
        *b_precision,
        *b_recall,
        *_means(b_precision, b_recall),
    )


def _stripped(grouping: Grouping) -> list[frozenset[str]]:
    return [frozenset(name.strip() for name in cluster) for cluster in grouping]


def _means(*summed: tuple[float, int]) -> tuple[float, float, float]:
    """Precision, recall and F1 of one grouping; without a name there is nothing wrong."""
    precision, recall = (total / count if count else 1.0 for total, count in summed)
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _figures(runs: int, mode: Mode) -> Figures:
    right, found = ("gold_in_pred", "pred_in_gold") if mode == "compat" else ("pred_in_gold", "gold_in_pred")
    ratios = {
        "exact": ((right, "predicted"), (found, "gold")),
        "b-cubed": (("b_precision", "b_predicted"), ("b_recall", "b_gold")),
    }
    figures: Figures = {}
    for row, (top, bottom) in ratios.items():
        precisions = [Ratio(f"{run}.{top[0]}", f"{run}.{top[1]}") for run in range(runs)]
        recalls = [Ratio(f"{run}.{bottom[0]}", f"{run}.{bottom[1]}") for run in range(runs)]
        harmonics = [Harmonic(p, r) for p, r in zip(precisions, recalls, strict=True)]
        figures[row] = {"precision": MeanOf(precisions), "recall": MeanOf(recalls), "f1": MeanOf(harmonics)}
    figures["b-cubed macro"] = {
        name: MeanOf([Ratio(f"{run}.mean_{name}") for run in range(runs)]) for name in ("precision", "recall", "f1")
    }
    return figures
