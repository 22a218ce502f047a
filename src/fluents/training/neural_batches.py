"""Batches for the neural systems: of like length, dealt evenly to the processes, the same on every run of a seed."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fluents.neural.encoding import Codec, EncodedRow, taught
from fluents.neural.inputs import NeuralSystem, Style
from fluents.records import Trace

POOL = 40
"""Batches whose examples are sorted by length together: random enough, and little is padded."""


@dataclass(frozen=True)
class TrainingUnit:
    """What must be learnt together: a row or, with memory, a whole procedure, round after round."""

    rounds: tuple[tuple[EncodedRow, ...], ...]

    @property
    def rows(self) -> int:
        return sum(map(len, self.rounds))

    @property
    def tokens(self) -> int:
        """Of the answers."""
        return sum(len(row.answered) for rows in self.rounds for row in rows)

    @property
    def longest(self) -> int:
        """Tokens of the longest answer."""
        return max(len(row.answered) for rows in self.rounds for row in rows)

    @property
    def size(self) -> tuple[int, int]:
        """By which like ones are found: rounds, then the longest answer and question."""
        return len(self.rounds), max(len(row.answered) * 4 + len(row.asked) for rows in self.rounds for row in rows)


def units(traces: Iterable[Trace], system: NeuralSystem, style: Style, codec: Codec) -> list[TrainingUnit]:
    """The units of gold traces. A procedure without a single change was never annotated, and teaches nothing."""
    found = []
    for trace in traces:
        if trace.changes:
            rounds = [tuple(rows) for rows in taught(trace, system, style, codec)]
            if system.memory:
                found.append(TrainingUnit(tuple(rounds)))
            else:
                found += [TrainingUnit(((row,),)) for rows in rounds for row in rows]
    return found


def digest(items: Iterable[TrainingUnit]) -> str:
    """What tells the tokens of these units, in their order, from all others."""
    found = hashlib.sha256()
    for unit in items:
        rows = [[(row.asked, row.answered) for row in rows] for rows in unit.rounds]
        found.update(json.dumps(rows).encode() + b"\n")
    return found.hexdigest()


def batches(items: Sequence[TrainingUnit], rows: int, rng: random.Random) -> list[list[TrainingUnit]]:
    """All units once, in batches of about so many rows and at least one unit, like sizes together, in random order."""
    shuffled = rng.sample(items, len(items))
    pool = max(1, POOL * rows * len(items) // max(1, sum(unit.rows for unit in items)))
    cut: list[list[TrainingUnit]] = []
    for start in range(0, len(shuffled), pool):
        cut += packed(sorted(shuffled[start : start + pool], key=lambda unit: unit.size), rows)
    return rng.sample(cut, len(cut))


def packed(items: Iterable[TrainingUnit], rows: int) -> list[list[TrainingUnit]]:
    """Units in their order, in batches of at most so many rows; a larger unit is a batch of its own."""
    cut: list[list[TrainingUnit]] = []
    held = 0
    for unit in items:
        if not cut or held + unit.rows > rows:
            cut.append([])
            held = 0
        cut[-1].append(unit)
        held += unit.rows
    return cut
