"""How confidences are calibrated, and how far they can be trusted.

    python benchmarks/confidence.py                                # every shipped size, cross-validated on fluents:dev
    python benchmarks/confidence.py transcript-base --write        # writes the file beside the adapter as well
    python benchmarks/confidence.py transcript-base --samples 8    # for consensus over samples

The tracker answers all of fluents:dev, which takes minutes; answers are kept in --answers FOLDER and used again. A
change is right where its match reaches `readers.RIGHT`. The default cut is the highest that costs at most one point of
soft F1 and leaves three changes per step; if none does, everything is shown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from fluents.data import corpus
from fluents.jsonl import atomic_output
from fluents.metrics.readers import RIGHT, match_values, readers
from fluents.prompts.transcript import VERSION
from fluents.records import Procedure, Provenance, StateChange, Trace
from fluents.trackers.transcript import (
    ConfidenceModel,
    Features,
    TranscriptSettings,
    TranscriptTracker,
    calibration_path,
    fit_calibration,
    read_calibrations,
    way_of,
)
from fluents.weights import ADAPTERS, open_adapter
from fluents.weights.base_weights import find, is_here

FOLDS = 7
CUTS = tuple(round(0.05 * number, 2) for number in range(11))
MAX_LOSS = 1.0
"""Points of soft F1 that the default cut may cost."""
MIN_CHANGES = 3.0
"""Changes per step that the default cut must leave."""
_SCALE = 2**20


class Recorder:
    """Stands in for a calibration: keeps the features of each change and gives it their number as its confidence."""

    def __init__(self) -> None:
        self.features: list[Features] = []

    def __call__(self, features: Features) -> float:
        self.features.append(features)
        return len(self.features) / _SCALE

    def of(self, change: StateChange) -> Features:
        return self.features[round((change.confidence or 0) * _SCALE) - 1]


@dataclass(frozen=True)
class Answered:
    """A procedure of dev as tracked: for each change its features, and whether it is right."""

    gold: Trace
    trace: Trace
    features: list[Features]
    right: list[bool]

    def with_confidence(self, model: ConfidenceModel) -> Trace:
        return self._with([model(features) for features in self.features])

    def _with(self, confidences: Sequence[float]) -> Trace:
        pairs = zip(self.trace.changes, confidences, strict=True)
        return self.trace.replace(changes=tuple(change.replace(confidence=value) for change, value in pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("adapters", nargs="*", help="names or files of adapters")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--answers", type=Path, help="keep answers in this folder, and use those it holds")
    parser.add_argument("--write", action="store_true", help="write the calibrations beside the adapters")
    chosen = parser.parse_args()
    for name in chosen.adapters or [name for name, one in ADAPTERS.items() if one.facts.prompt == VERSION]:
        adapter = open_adapter(name)
        if not is_here(find(adapter.base)):
            print(f"{name}: its base weights are not on this machine")
            continue
        kept = chosen.answers and chosen.answers / f"{adapter.sha256[:12]}-{chosen.samples}.jsonl"
        print(f"\n{name}")
        model = study(answers(name, chosen.samples, kept))
        if chosen.write:
            path = calibration_path(adapter.path)
            write_calibrations(read_calibrations(path) | {way_of(chosen.samples): model}, path)
            print(f"wrote {path}")


def answers(adapter: str, samples: int, kept: Path | None = None) -> list[Answered]:
    """What the tracker says of dev, from the file where it holds it."""
    known: dict[str, list[Mapping[str, object]]] = {}
    if kept and kept.exists():
        known = {line["id"]: line["changes"] for line in map(json.loads, kept.read_text().splitlines())}
    recorder = Recorder()
    tracker = TranscriptTracker(TranscriptSettings(adapter, samples=samples), calibration=recorder)
    found = []
    for gold in corpus.load("dev"):
        if gold.id not in known:
            trace = tracker.track(gold.procedure)
            fields = {"step", "entity", "attribute", "before", "after", "support"}
            known[gold.id] = [c.model_dump(include=fields) | {"features": recorder.of(c)} for c in trace.changes]
            if kept:
                with kept.open("a") as stream:
                    stream.write(json.dumps({"id": gold.id, "changes": known[gold.id]}) + "\n")
        found.append(judged(gold, gold.procedure, known[gold.id]))
    return found


def judged(gold: Trace, procedure: Procedure, said: Sequence[Mapping[str, object]]) -> Answered:
    """Changes with their features, and whether each is right."""
    changes = [StateChange.model_validate({k: v for k, v in one.items() if k != "features"}) for one in said]
    trace = Trace(procedure=procedure, changes=tuple(changes), provenance=Provenance(tracker="transcript"))
    values: list[float] = []
    for step, _, ours in trace.by_step():
        values += match_values(gold.at(step), ours)
    features: list[Features] = [one["features"] for one in said]  # type: ignore[misc]
    return Answered(gold, trace, features, [value >= RIGHT for value in values])


def study(answered: Sequence[Answered]) -> ConfidenceModel:
    """Prints how well confidences do on procedures they were not fitted on; gives the model fitted on all."""
    held_out: list[Trace] = []
    for fold in range(FOLDS):
        model = fitted([one for number, one in enumerate(answered) if number % FOLDS != fold])
        held_out += [one.with_confidence(model) for one in answered[fold::FOLDS]]
    gold = [one.gold for one in answered]
    whole = readers(gold, held_out)
    right = [value for one in answered for value in one.right]
    print(f"{len(right)} changes, {np.mean(right):.1%} right; cross-validated:")
    low, high = whole.intervals()["calibration"]["error"]
    print(f"expected calibration error {whole['calibration']['error']:.1f} [{low:.1f}, {high:.1f}]")
    print(f"{'cut':>5}{'P':>7}{'R':>7}{'soft F1':>9}{'changes a step':>16}")
    scores = {cut: _cut_score(gold, held_out, cut) for cut in CUTS}
    for cut, (precision, recall, f1, count) in scores.items():
        print(f"{cut:5.2f}{precision:7.1f}{recall:7.1f}{f1:9.1f}{count:16.2f}")
    best = max(f1 for _, _, f1, _ in scores.values())
    kept = (cut for cut, (_, _, f1, count) in scores.items() if f1 >= best - MAX_LOSS and count >= MIN_CHANGES)
    cut = max(kept, default=0.0)
    print(f"default cut: {cut}")
    return replace(fitted(answered), min_confidence=cut)


def fitted(answered: Sequence[Answered]) -> ConfidenceModel:
    rows = [features for one in answered for features in one.features]
    return fit_calibration(rows, [value for one in answered for value in one.right])


def _cut_score(gold: Sequence[Trace], traces: Sequence[Trace], cut: float) -> tuple[float, float, float, float]:
    kept = [t.replace(changes=tuple(c for c in t.changes if (c.confidence or 0) >= cut)) for t in traces]
    soft = readers(gold, kept)["soft"]
    steps = sum(len(trace.procedure.steps) for trace in gold)
    changes = sum(len(trace.changes) for trace in kept)
    return soft["precision"], soft["recall"], soft["f1"], changes / steps


def write_calibrations(ways: Mapping[str, ConfidenceModel], path: Path) -> None:
    """Write calibrations with four digits; the file is whole or not there."""
    shown = {way: _rounded(asdict(calibration)) for way, calibration in ways.items()}
    with atomic_output(path) as stream:
        stream.write(json.dumps(shown, indent=2).encode() + b"\n")


def _rounded(values: dict[str, object]) -> dict[str, object]:
    return {
        name: _rounded(value) if isinstance(value, dict) else float(f"{value:.4g}") for name, value in values.items()
    }


if __name__ == "__main__":
    main()
