"""How long the offline method takes on procedures with ever more names, and how fast that grows.

    python benchmarks/canonicalise.py [SIZE ...]

The procedures are made up: so many entities of one to four words, a step for every ten of them, one change each, with
a few attributes and states. No data set has as many names in one procedure.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Sequence

import numpy as np

from fluents.canonicalisation import canonicalise
from fluents.canonicalisation.feature_method import FeatureMethod
from fluents.records import Procedure, StateChange, Trace

SIZES = (250, 500, 1000, 2000, 4000)
KINDS = (
    "pan",
    "bowl",
    "towel",
    "bolt",
    "cable",
    "plant",
    "shirt",
    "box",
    "lid",
    "screw",
    "jar",
    "brush",
    "rope",
    "tile",
)
LOOKS = (
    "red",
    "small",
    "old",
    "wet",
    "wooden",
    "left",
    "upper",
    "spare",
    "thin",
    "cracked",
    "paper",
    "garden",
    "steel",
)
ATTRIBUTES = (("location", "shelf", "table"), ("wetness", "dry", "wet"), ("cleanness", "clean", "dirty"))


def made_up(size: int) -> Trace:
    """A procedure with exactly so many different names."""
    chance = random.Random(size)
    names: dict[str, None] = {}
    while len(names) < size:
        looks = chance.sample(LOOKS, chance.randint(0, 2))
        names[" ".join([*looks, chance.choice(KINDS), chance.choice(("", str(chance.randint(1, size))))]).strip()] = (
            None
        )
    steps = max(1, size // 10)
    changes = []
    for name in names:
        attribute, before, after = chance.choice(ATTRIBUTES)
        changes.append(
            StateChange(step=chance.randint(1, steps), entity=name, attribute=attribute, before=before, after=after)
        )
    return Trace(procedure=Procedure(id=str(size), steps=("do it",) * steps), changes=tuple(changes))


def growth(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The exponent of the power law that fits best: 1 is linear, 2 quadratic."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main(arguments: Sequence[str]) -> None:
    sizes = [int(one) for one in arguments] or list(SIZES)
    method = FeatureMethod()
    canonicalise(made_up(50), method)  # the vectors are loaded once, and not what is measured
    seconds = []
    for size in sizes:
        trace = made_up(size)
        start = time.perf_counter()
        clusters = canonicalise(trace, method).clusters
        seconds.append(time.perf_counter() - start)
        print(f"{size} names: {seconds[-1]:.2f} s, {len(clusters)} clusters", file=sys.stderr)
    report = {
        "seconds": dict(zip(map(str, sizes), (round(one, 3) for one in seconds), strict=True)),
        "growth exponent": round(growth(sizes, seconds), 2) if len(sizes) > 1 else None,
        "peak memory MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
