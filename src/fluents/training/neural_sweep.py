"""Precision over recall of a checkpoint, by the length penalty of its beam search (OpenPI-C, figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from fluents import jsonl
from fluents.metrics.original import original
from fluents.records import Trace
from fluents.report.plots import Point, curve_file
from fluents.trackers import Listener
from fluents.trackers.neural import NeuralTracker

Rows: TypeAlias = "dict[str, dict[str, float]]"
"""Matcher → precision, recall and F1."""


def sweep(
    tracker: NeuralTracker,
    gold: Sequence[Trace],
    out: Path,
    penalties: Sequence[float] = (0.2, 1.0, 2.0),
    *,
    title: str = "",
    listener: Listener | None = None,
) -> dict[float, Rows]:
    """Predict under each length penalty and score the predictions.

    Writes a file of predictions for each penalty, curve.csv and curve.svg into the folder `out`.
    """
    tracker.load()
    out.mkdir(parents=True, exist_ok=True)
    found: dict[float, Rows] = {}
    for penalty in penalties:
        decoding = replace(tracker.settings.decoding, length_penalty=penalty)
        tracker.settings = replace(tracker.settings, decoding=decoding)
        said = list(tracker.track_many([trace.procedure for trace in gold], listener))
        jsonl.write(said, out / f"penalty-{penalty:g}.jsonl")
        found[penalty] = original(gold, said).rows
    with jsonl.atomic_output(out / "curve.csv") as stream:
        stream.write(_csv(found).encode())
    with jsonl.atomic_output(out / "curve.svg") as stream:
        points = [
            Point(f"{matcher} {penalty:g}", row["recall"], row["precision"], series)
            for penalty, rows in found.items()
            for series, (matcher, row) in enumerate(rows.items())
        ]
        stream.write(curve_file(title, points).encode())
    return found


def _csv(found: dict[float, Rows]) -> str:
    lines = ["length_penalty,matcher,precision,recall,f1"]
    for penalty, rows in found.items():
        for matcher, row in rows.items():
            lines.append(f"{penalty:g},{matcher},{row['precision']:.2f},{row['recall']:.2f},{row['f1']:.2f}")
    return "\n".join(lines) + "\n"
