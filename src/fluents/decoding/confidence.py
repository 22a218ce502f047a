"""How likely a change is right: from the probabilities of its tokens, calibrated on annotated procedures.

A model is surer of what it says rightly, but its probabilities are not themselves the share of right changes. A
logistic regression on them is, once fitted (`benchmarks/confidence.py`): a file beside each adapter holds its weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fluents.errors import InputError
from fluents.jsonl import atomic_output
from fluents.records import Procedure, StateChange
from fluents.text.names import mentioned, named_in

Floats = NDArray[np.float64]
Features = Mapping[str, float]

FIELDS = ("entity", "attribute", "before", "after")
FLOOR = -6.0
"""A log probability below this says no more than this."""


LATE = 8
"""Steps from this one on count as equally late: the procedures that calibrations are fitted on have few more."""


class TokenProbability(Protocol):
    """A token's bytes and the logarithm of its probability."""

    @property
    def text(self) -> bytes: ...
    @property
    def logprob(self) -> float: ...


def line_features(tokens: Iterable[TokenProbability]) -> list[dict[str, float]]:
    """For each line of an answer: the mean log probability of each field's tokens, the least of all, its position.

    A token that holds a separator belongs to the field before it.
    """
    lines: list[list[list[float]]] = [[[] for _ in FIELDS]]
    field = 0
    for token in tokens:
        lines[-1][field].append(max(token.logprob, FLOOR))
        field = min(field + token.text.count(b"|"), len(FIELDS) - 1)
        if b"\n" in token.text:
            lines.append([[] for _ in FIELDS])
            field = 0
    return [_features(fields, number) for number, fields in enumerate(lines)]


def _features(fields: list[list[float]], number: int) -> dict[str, float]:
    found = {name: sum(values) / max(len(values), 1) for name, values in zip(FIELDS, fields, strict=True)}
    found["least"] = min((value for values in fields for value in values), default=FLOOR)
    found["position"] = math.log1p(number)
    return found


def context_features(procedure: Procedure, change: StateChange, count: int) -> dict[str, float]:
    """What the text says: whether it mentions the entity, so far and in this step, how late the step is; and how many
    changes the model gave in the step."""
    found = {
        "mentioned": float(mentioned(procedure, change.step, change.entity)),
        "now": float(named_in(procedure.steps[change.step - 1], change.entity)),
        "step": math.log1p(min(change.step, LATE)),
        "count": float(count),
    }
    return found if change.support is None else found | {"support": change.support}


def mean_features(several: Sequence[Features]) -> dict[str, float]:
    """The mean of each feature: of a change that several samples hold."""
    return {name: sum(one[name] for one in several) / len(several) for name in several[0]}


@dataclass(frozen=True)
class ConfidenceModel:
    """A logistic regression: the confidence is 1 / (1 + exp(−(base + Σ weight · feature)))."""

    base: float
    weights: dict[str, float]
    min_confidence: float
    """Changes below it are left out unless another value is asked for: the best cut on the data it was fitted on."""

    def __call__(self, features: Features) -> float:
        """The confidence of a change."""
        total = self.base + sum(weight * features[name] for name, weight in self.weights.items())
        return round(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), 3)


def fit_calibration(rows: Sequence[Features], right: Sequence[bool], *, penalty: float = 3.0) -> ConfidenceModel:
    """A model fitted on changes known to be right or wrong, by Newton's method; it cuts nothing yet.

    The `penalty` on the squares of the weights is for standardised features.
    """
    names = list(rows[0])
    values: Floats = np.array([[row[name] for name in names] for row in rows], dtype=float)
    labels: Floats = np.array(right, dtype=float)
    means, spreads = values.mean(axis=0), values.std(axis=0)
    spreads = np.where(spreads > 1e-9, spreads, 1.0)
    inputs = np.column_stack([np.ones(len(rows)), (values - means) / spreads])
    ridge = np.diag([1e-6, *[penalty] * len(names)])
    found = np.zeros(len(names) + 1)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(inputs @ found, -30, 30)))
        slope = inputs.T @ (chance - labels) + ridge @ found
        change = np.linalg.solve((inputs * (chance * (1 - chance))[:, None]).T @ inputs + ridge, slope)
        found -= change
        if np.abs(change).max() < 1e-8:
            break
    weights = found[1:] / spreads
    base = float(found[0] - weights @ means)
    return ConfidenceModel(base, {name: float(weight) for name, weight in zip(names, weights, strict=True)}, 0.0)


Ways = Mapping[str, ConfidenceModel]
"""The calibrations of an adapter: for one pass, and for samples (`way_of`)."""


def way_of(samples: int) -> str:
    """Which calibration is for so many samples."""
    return "one pass" if samples == 1 else "samples"


def calibration_path(adapter: Path) -> Path:
    """The file of calibrations beside an adapter."""
    return adapter.with_suffix(".confidence.json")


def read_calibrations(path: Path) -> dict[str, ConfidenceModel]:
    """The calibrations of a file; none where there is no such file."""
    if not path.is_file():
        return {}
    try:
        return {way: ConfidenceModel(**values) for way, values in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"not a file of calibrations: {error}", where=path, fix="delete it") from None


def write_calibrations(ways: Ways, path: Path) -> None:
    """Write calibrations with four digits; the file is whole or not there."""
    shown = {way: _rounded(asdict(calibration)) for way, calibration in ways.items()}
    with atomic_output(path) as stream:
        stream.write(json.dumps(shown, indent=2).encode() + b"\n")


def _rounded(values: dict[str, object]) -> dict[str, object]:
    return {
        name: _rounded(value) if isinstance(value, dict) else float(f"{value:.4g}") for name, value in values.items()
    }
