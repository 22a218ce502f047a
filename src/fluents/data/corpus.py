"""Our own corpus: procedures with complete annotation, in a compact form that is easy to write and to review.

    ## Seal a leaking garden hose | home repair
    1. Turn off the tap and squeeze the trigger until no more water comes out.
    + tap | state | open | closed
    + hose | pressure | pressurized | released
    2. …

Judged procedures have claims beside the changes: a model's answers, each judged true (T), plausible (P) or false (F).
Claims of a step with the same number mean the same. `+` is a true change that the model missed. After the last step
come events, and for each step whether it makes the event more likely (m), less likely (l) or neither (s).

    1. Turn off the tap and squeeze the trigger until no more water comes out.
    T1 tap | state | open | closed
    P2 hands | wetness | dry | wet
    F hose | length | long | short
    + hose | pressure | pressurized | released
    ? Water sprays out of the leak. | l

`corpus/README.md` is its card: how it was made, what it covers, what is doubtful.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from fluents.errors import InputError
from fluents.jsonl import decoded, lines_of, open_input, read_lines
from fluents.records import Procedure, Provenance, Record, StateChange, Text, Trace, id_from
from fluents.text.names import counted

FOLDER = Path(__file__).parent / "corpus"
JUDGED = "fluents:judged"

Verdict: TypeAlias = Literal["T", "P", "F"]
"""True, plausible or false."""
LikelihoodLabel: TypeAlias = Literal["no change", "more likely", "less likely"]

_STEP = re.compile(r"(\d{1,9})\. (\S.*)")
_CLAIM = re.compile(r"(?:([TP])([1-9][0-9]{0,3})|F) (.*)")
_HEAD_FIX = "begin each procedure with a line such as `## Make tea | cooking`"
_CLAIM_LINE = "`T1 entity | attribute | before | after` (or P1, F or + instead of T1)"
_LABELS: dict[str, LikelihoodLabel] = {"s": "no change", "m": "more likely", "l": "less likely"}

_Line: TypeAlias = tuple[str, str]
"""(file and line number, text)"""


def load(split: str) -> Iterator[Trace]:
    """The traces of a split: train, dev, test or judged."""
    if split == "judged":
        return (judged.trace for judged in judged_procedures())
    name = f"{split}.txt.gz" if split == "train" else f"{split}.txt"  # what people review is smaller, and plain
    return read_compact(FOLDER / name, f"fluents:{split}")


def read_compact(path: str | Path, dataset: str | None = None) -> Iterator[Trace]:
    """The traces of a file in the compact form. Ids are made from the goals, with a number where a goal comes again."""
    seen: Counter[str] = Counter()
    for head, lines in _blocks(_unpacked_lines(path)):
        steps: list[str] = []
        changes: list[StateChange] = []
        for where, line in lines:
            if line.startswith("+ ") and steps:
                changes.append(_change(line.removeprefix("+ "), len(steps), where))
            else:
                steps.append(_step(line, len(steps) + 1, where, "`+ entity | attribute | before | after`"))
        procedure = _procedure(head, steps, seen)
        yield Trace(procedure=procedure, changes=tuple(changes), provenance=Provenance(dataset=dataset))


class JudgedClaim(Record):
    """A change that somebody claimed, and how it was judged."""

    change: StateChange
    verdict: Verdict
    meaning: int | None = None
    """Claims of a step with the same number say the same in other words; false ones have none."""


class JudgedEvent(Record):
    """Something that may happen, and for each step how it changes the likelihood of that."""

    text: Text
    labels: tuple[LikelihoodLabel, ...]


class JudgedProcedure(Record):
    """A procedure with judged claims."""

    trace: Trace
    """With one wording of each true meaning; a state begins where an earlier step left it."""
    claims: tuple[tuple[JudgedClaim, ...], ...]
    """For each step; a change that all samples missed is a true claim with a number of its own, and comes last."""
    events: tuple[JudgedEvent, ...] = ()


def judged_procedures(path: str | Path | None = None) -> Iterator[JudgedProcedure]:
    """The judged procedures of a file, which may be gzipped; without a path, those that come with fluents."""
    seen: Counter[str] = Counter()
    dataset = JUDGED if path is None else None
    for head, lines in _blocks(_unpacked_lines(FOLDER / "judged.txt.gz" if path is None else path)):
        steps: list[str] = []
        claims: list[list[JudgedClaim]] = []
        missed: list[list[StateChange]] = []
        questions: list[_Line] = []
        for where, line in lines:
            if line.startswith("? ") and steps:
                questions.append((where, line.removeprefix("? ")))
            elif questions:
                what = "after an event, a procedure can contain only further events (`? event | s m l …`)"
                raise InputError(what, where=where, fix="put the events after the last step and its changes")
            elif line.startswith("+ ") and steps:
                missed[-1].append(_change(line.removeprefix("+ "), len(steps), where))
            elif (found := _CLAIM.fullmatch(line)) and steps:
                change = _change(found[3], len(steps), where)
                verdict, meaning = (found[1], int(found[2])) if found[1] else ("F", None)
                claims[-1].append(JudgedClaim(change=change, verdict=verdict, meaning=meaning))
            else:
                steps.append(_step(line, len(steps) + 1, where, _CLAIM_LINE))
                claims.append([])
                missed.append([])
        procedure = _procedure(head, steps, seen)
        complete = tuple(map(_with_missed, claims, missed))
        yield JudgedProcedure(
            trace=Trace(
                procedure=procedure, changes=tuple(_true_changes(complete)), provenance=Provenance(dataset=dataset)
            ),
            claims=complete,
            events=tuple(_event(text, len(steps), where) for where, text in questions),
        )


def _with_missed(claims: list[JudgedClaim], missed: list[StateChange]) -> tuple[JudgedClaim, ...]:
    free = 1 + max((claim.meaning or 0 for claim in claims), default=0)
    added = (JudgedClaim(change=change, verdict="T", meaning=free + place) for place, change in enumerate(missed))
    return (*claims, *added)


def _true_changes(claims: Iterable[Iterable[JudgedClaim]]) -> Iterator[StateChange]:
    """One wording of each true meaning, in the order of the claims, with states carried from step to step."""
    left: dict[tuple[str, str], str] = {}
    for step in claims:
        meanings: set[int | None] = set()
        pairs: set[tuple[str, str]] = set()
        for claim in step:
            change = claim.change
            pair = change.entity.lower(), change.attribute.lower()
            if claim.verdict != "T" or claim.meaning in meanings:
                continue
            meanings.add(claim.meaning)
            if pair in pairs:
                continue
            pairs.add(pair)
            before = left.get(pair, change.before)
            if before.lower() != change.after.lower():
                left[pair] = change.after
                yield change.replace(before=before)


def _unpacked_lines(path: str | Path) -> Iterator[tuple[str, bytes]]:
    if Path(path).suffix != ".gz":
        yield from read_lines(path)
        return
    with open_input(path) as packed, gzip.GzipFile(fileobj=packed) as stream:
        try:
            yield from lines_of(stream, str(path))
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise InputError("not a complete gzip file", where=path, fix="copy or create the file again") from None


def _blocks(lines: Iterable[tuple[str, bytes]]) -> Iterator[tuple[_Line, list[_Line]]]:
    """For each procedure "Goal | topic", and the lines below it."""
    head: _Line | None = None
    block: list[_Line] = []
    for where, line in lines:
        text = decoded(line, where).strip()
        if text.startswith("## "):
            if head:
                yield head, block
            head, block = (where, text.removeprefix("## ")), []
        elif head is None:
            raise InputError("expected `## Goal | topic`", where=where, fix=_HEAD_FIX)
        else:
            block.append((where, text))
    if head:
        yield head, block


def _procedure(head: _Line, steps: list[str], seen: Counter[str]) -> Procedure:
    where, text = head
    goal, _, topic = (part.strip() for part in text.partition("|"))
    if not goal:
        raise InputError("expected `## Goal | topic`", where=where, fix=_HEAD_FIX)
    if not steps:
        raise InputError(
            "this procedure has no steps", where=where, fix="write the steps as lines `1. Text of the step`"
        )
    made = id_from(goal)
    seen[made] += 1
    name = made if seen[made] == 1 else f"{made}-{seen[made]}"
    return Procedure(id=name, goal=goal, steps=tuple(steps), topic=topic or None)


def _step(line: str, number: int, where: str, others: str) -> str:
    """The text of the step with this number; `others` is what else may stand here after the first step."""
    if (found := _STEP.fullmatch(line)) and int(found[1]) == number:
        return found[2]
    other = f" or {others}" if number > 1 else ""
    fix = "number the steps 1, 2, 3 …" + (", and write other lines in the form shown" if number > 1 else "")
    raise InputError(f"expected `{number}. Text of the step`{other}", where=where, fix=fix)


def _change(text: str, step: int, where: str) -> StateChange:
    fields = [field.strip() for field in text.split("|")]
    if len(fields) != 4 or not all(fields):
        fix = "write four fields, such as `kettle | temperature | cold | hot`"
        raise InputError("expected `entity | attribute | before | after`", where=where, fix=fix)
    entity, attribute, before, after = fields
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


def _event(line: str, steps: int, where: str) -> JudgedEvent:
    text, _, letters = (part.strip() for part in line.rpartition("|"))
    labels = letters.split()
    if not text or len(labels) != steps or not set(labels) <= set(_LABELS):
        raise InputError(
            f"expected `? event | s m l …` with {counted(steps, 'letter')}, one for each step",
            where=where,
            fix="write s (no change), m (more likely) or l (less likely) for each step",
        )
    return JudgedEvent(text=text, labels=tuple(_LABELS[label] for label in labels))
