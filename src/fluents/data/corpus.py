"""Our own corpus: procedures with complete annotation, in a compact form that is easy to write and to review.

    ## Seal a leaking garden hose | home repair
    1. Turn off the tap and squeeze the trigger until no more water comes out.
    + tap | state | open | closed
    + hose | pressure | pressurized | released
    2. …

`corpus/README.md` is its card: how it was made, what it covers, what is doubtful.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fluents.errors import InputError
from fluents.jsonl import decoded, read_lines
from fluents.records import Procedure, Provenance, StateChange, Trace, id_from

FOLDER = Path(__file__).parent / "corpus"

_STEP = re.compile(r"(\d+)\. (\S.*)")


def load(split: str) -> Iterator[Trace]:
    """The traces of a split: train, dev or test."""
    return read_compact(FOLDER / f"{split}.txt", f"fluents:{split}")


def read_compact(path: str | Path, dataset: str | None = None) -> Iterator[Trace]:
    """The traces of a file in the compact form. Ids are made from the goals, with a number where a goal comes again."""
    seen: Counter[str] = Counter()
    block: list[tuple[str, str]] = []
    for where, line in read_lines(path):
        text = decoded(line, where).strip()
        if text.startswith("## ") and block:
            yield _trace(block, seen, dataset)
            block = []
        block.append((where, text))
    if block:
        yield _trace(block, seen, dataset)


def _trace(block: list[tuple[str, str]], seen: Counter[str], dataset: str | None) -> Trace:
    (where, head), *lines = block
    goal, _, topic = (part.strip() for part in head.removeprefix("## ").partition("|"))
    if not head.startswith("## ") or not goal:
        raise InputError("expected `## Goal | topic`", where=where)
    steps: list[str] = []
    changes: list[StateChange] = []
    for place, line in lines:
        if line.startswith("+ ") and steps:
            changes.append(_change(line, len(steps), place))
        elif (found := _STEP.fullmatch(line)) and int(found[1]) == len(steps) + 1:
            steps.append(found[2])
        else:
            change = " or `+ entity | attribute | before | after`" if steps else ""
            fix = "number the steps 1, 2, 3 …, and begin each change with `+ `"
            raise InputError(f"expected `{len(steps) + 1}. Text of the step`{change}", where=place, fix=fix)
    if not steps:
        raise InputError("this procedure has no steps", where=where)
    made = id_from(goal)
    seen[made] += 1
    name = made if seen[made] == 1 else f"{made}-{seen[made]}"
    procedure = Procedure(id=name, goal=goal, steps=tuple(steps), topic=topic or None)
    return Trace(procedure=procedure, changes=tuple(changes), provenance=Provenance(dataset=dataset))


def _change(line: str, step: int, where: str) -> StateChange:
    fields = [field.strip() for field in line.removeprefix("+ ").split("|")]
    if len(fields) != 4 or not all(fields):
        raise InputError("expected `+ entity | attribute | before | after`", where=where)
    entity, attribute, before, after = fields
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)
