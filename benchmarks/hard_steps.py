"""Forty steps that trackers used to get wrong: negations, conditions, advice, waiting, other domains, repetition.

    python benchmarks/hard_steps.py             # every shipped size whose weights are on this machine
    python benchmarks/hard_steps.py FILE.gguf   # an adapter of your own

A step where nothing changes is right if nothing is predicted. Any other is right if one of the expected entities
changes and nothing does that is known to be wrong; where few things change, with at most three changes. The steps
before it are tracked too: the model remembers them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fluents.prompts.transcript import VERSION
from fluents.records import Procedure, StateChange
from fluents.text.names import name_words
from fluents.trackers import Tracker, open_tracker
from fluents.weights import ADAPTERS, open_adapter
from fluents.weights.base_weights import find, is_here

FILE = Path(__file__).parents[1] / "tests" / "fixtures" / "hard_steps.txt"
FEW = 3


@dataclass
class HardStep:
    """A procedure whose last step is hard."""

    goal: str
    kind: str
    steps: list[str] = field(default_factory=list)
    expect: str = "none"
    """What changes in the last step: none, few, or changes for any number."""
    right: list[str] = field(default_factory=list)
    """`entity | attribute`, one of which should change."""
    wrong: list[str] = field(default_factory=list)
    """`entity` or `entity | attribute` that must not."""

    @property
    def procedure(self) -> Procedure:
        return Procedure(goal=self.goal, steps=tuple(self.steps))

    def faults(self, predicted: Sequence[StateChange]) -> list[str]:
        """Why predictions for the last step are not right."""
        if self.expect == "none":
            return [f"{change.entity} | {change.attribute}" for change in predicted]
        found = [wrong for wrong in self.wrong if any(_says(change, wrong) for change in predicted)]
        if self.expect == "few" and len(predicted) > FEW:
            found.append(f"{len(predicted)} changes")
        entities = {right.partition("|")[0] for right in self.right}
        if not any(_holds(change.entity, entity) for change in predicted for entity in entities):
            found.append("nothing that was expected")
        return found


def _says(change: StateChange, wrong: str) -> bool:
    entity, _, attribute = wrong.partition("|")
    same = name_words(change.entity) == name_words(entity)
    return same and (not attribute or name_words(change.attribute) == name_words(attribute))


def _holds(name: str, expected: str) -> bool:
    """Whether a name is the expected one, in more or fewer words."""
    ours, theirs = set(name_words(name)), set(name_words(expected))
    return bool(ours and theirs) and (ours <= theirs or theirs <= ours)


def hard_steps(path: Path = FILE) -> Iterator[HardStep]:
    """The steps of the file."""
    current: HardStep | None = None
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, text = (part.strip() for part in line.partition(":"))
        if line.startswith("## "):
            if current:
                yield current
            goal, _, kind = (part.strip() for part in line.removeprefix("## ").rpartition("|"))
            current = HardStep(goal, kind)
        elif current and name in ("past", "now"):
            current.steps.append(text)
        elif current and name == "expect":
            current.expect = text
        elif current and name == "right":
            current.right.append(text)
        elif current and name == "wrong":
            current.wrong.append(text)
    if current:
        yield current


def score(tracker: Tracker, steps: Sequence[HardStep], *, show: bool = True) -> dict[str, list[bool]]:
    """Kind → whether each of its steps is right."""
    found: dict[str, list[bool]] = {}
    for hard in steps:
        predicted = tracker.track(hard.procedure).at(len(hard.steps))
        faults = hard.faults(predicted)
        found.setdefault(hard.kind, []).append(not faults)
        if show and faults:
            print(f"  {hard.kind:11} {hard.steps[-1][:70]:70}  {'; '.join(faults)}", flush=True)
    return found


def main() -> None:
    names = sys.argv[1:] or [name for name, adapter in ADAPTERS.items() if adapter.facts.prompt == VERSION]
    for name in names:
        if not is_here(find(open_adapter(name).base)):
            print(f"{name}: its base weights are not on this machine")
            continue
        print(name)
        with open_tracker(adapter=name) as tracker:
            found = score(tracker, list(hard_steps()))
        every = [right for kind in found.values() for right in kind]
        shares = ", ".join(f"{kind} {sum(right)}/{len(right)}" for kind, right in found.items())
        print(f"{name}: {sum(every)} of {len(every)} right: {shares}")


if __name__ == "__main__":
    main()
