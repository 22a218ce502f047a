"""Gold and predictions, brought together step by step.

Metrics take traces or plain lists; both become `StepAnswers` here. `Alignment` pairs gold with predictions while
reading both once: it holds only the steps whose counterpart has not come yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

from fluents.errors import InputError
from fluents.records import StateChange, Trace
from fluents.scoring import Mode, check_choice
from fluents.text.plurals import counted
from fluents.text.template import Parsed, parse

STEP_MARK = "||"

NOTHING_SCORED = "nothing was predicted for this gold, so the score says nothing: is it another split or dataset?"
"""What compat, which counts every missing prediction as an empty one, adds where all are missing."""


@dataclass(frozen=True)
class StepAnswers:
    """What was said of one step, in order: changes, and texts that are not (yet) read as changes."""

    procedure_id: str
    step: int
    answers: tuple[StateChange | str, ...]

    @property
    def id(self) -> str:
        return f"{self.procedure_id}{STEP_MARK}{self.step}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Every answer as text."""
        return tuple(answer if isinstance(answer, str) else answer.sentence for answer in self.answers)

    def parsed(self) -> Iterator[Parsed]:
        """Every answer as a change, where it can be read as one."""
        for answer in self.answers:
            yield parse(answer, self.step) if isinstance(answer, str) else answer

    @property
    def changes(self) -> tuple[StateChange, ...]:
        return tuple(answer for answer in self.parsed() if isinstance(answer, StateChange))


PlainSteps: TypeAlias = Mapping[str, Sequence[str]] | Iterable[tuple[str, Sequence[str]]]
"""{"procedure||step": sentences}, or pairs of the two."""

Answers: TypeAlias = PlainSteps | Iterable[Trace] | Iterable[StepAnswers]
"""Whatever a step-by-step metric takes as gold or predictions."""


def steps_of(source: Answers) -> Iterator[StepAnswers]:
    """The answered steps of traces, or of plain lists of sentences."""
    for item in source.items() if isinstance(source, Mapping) else source:
        if isinstance(item, Trace):
            yield from _steps_of_trace(item)
        elif isinstance(item, StepAnswers):
            yield item
        else:
            yield _plain_step(item)


def _steps_of_trace(trace: Trace) -> Iterator[StepAnswers]:
    """Texts that could not be read are answers too, and stand where they stood; what had no place among the answers
    (a line of one of many samples) is none."""
    unread: dict[int | None, list[tuple[int, str]]] = {}
    for reject in trace.rejects:
        if reject.position is not None:
            unread.setdefault(reject.step, []).append((max(0, reject.position), reject.text))
    for step, _, changes in trace.by_step():
        answers: list[StateChange | str] = list(changes)
        for place, text in sorted(unread.get(step, ())):
            answers.insert(place, text)
        yield StepAnswers(trace.id, step, tuple(answers))


def _plain_step(item: object) -> StepAnswers:
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise InputError(f"expected traces or (step id, sentences), found {type(item).__name__}")
    step_id, sentences = item
    if isinstance(sentences, str) or not all(isinstance(sentence, str) for sentence in sentences):
        raise InputError("the answers of a step must be a list of strings", where=f"step {step_id}")
    procedure_id, mark, step = str(step_id).rpartition(STEP_MARK)
    if not (mark and step.isdecimal() and len(step) < 10):
        raise InputError(f"the step id {step_id!r} is not of the form procedure{STEP_MARK}step")
    return StepAnswers(procedure_id, int(step), tuple(sentences))


class Alignment:
    """Pairs (gold, predicted) of every gold step; read it once, then ask for its `warnings` and `data_hash`.

    strict: ids agree one to one, or an InputError says where they do not. compat does as the published evaluator does:
    a gold step without a prediction gets an empty one, a prediction without a gold step is left out, of two lists for
    one step the last is taken — and a warning tells of it. A stream cannot go back for the last: there it is an error.
    """

    def __init__(self, gold: Answers, pred: Answers, mode: Mode) -> None:
        check_choice("mode", mode, Mode)
        self._strict = mode == "strict"
        self._gold = _Side("gold step", gold, keep_last=not self._strict)
        self._pred = _Side("prediction", pred, keep_last=not self._strict)
        self._hash_sum = 0
        self.warnings: list[str] = []

    def __iter__(self) -> Iterator[tuple[StepAnswers, StepAnswers]]:
        golds, preds = self._gold.waiting, self._pred.waiting
        for gold, pred in zip_longest(self._gold.read(), self._pred.read()):
            if gold is not None:
                self._hash_sum += _digest(gold)
                golds[gold.id] = gold
            if pred is not None:
                preds[pred.id] = pred
            for step in (gold, pred):
                if step is not None and step.id in golds and step.id in preds:
                    yield golds.pop(step.id), preds.pop(step.id)
        self._check()
        for gold in golds.values():
            yield gold, StepAnswers(gold.procedure_id, gold.step, ())

    @property
    def data_hash(self) -> str:
        """Eight digits that change with any gold id or sentence, but not with their order."""
        return hashlib.sha256(str(self._hash_sum).encode()).hexdigest()[:8]

    def _check(self) -> None:
        """Everything that does not agree: an error in strict, warnings in compat."""
        for side in (self._gold, self._pred):
            if side.repeated:
                raise InputError(
                    f"more than one {side.name} with the id {first_three(side.repeated)}",
                    fix="keep one list of answers for each step; compat mode takes the last",
                )
        if not self._gold.count:
            raise InputError("there is no gold step to score against", fix="is the gold file empty?")
        found = self._disagreements()
        if found and self._strict:
            unrelated = len(self._gold.waiting) == self._gold.count
            question = "are the predictions for another split or dataset?" if unrelated else "is the file whole?"
            raise InputError("; ".join(found), fix=f"{question} compat mode counts what is missing as empty")
        self.warnings += found
        if len(self._gold.waiting) == self._gold.count:
            self.warnings.append(NOTHING_SCORED)

    def _disagreements(self) -> list[str]:
        found = [
            f"more than one {side.name} with the id {first_three(side.replaced)}: the last is taken"
            for side in (self._gold, self._pred)
            if side.replaced
        ]
        if not self._pred.count:
            found.append("there are no predictions at all")
        elif self._gold.waiting:
            missing = list(self._gold.waiting)
            found.append(f"{len(missing)} of {self._gold.count} gold steps have no prediction: {first_three(missing)}")
        if self._pred.waiting:
            extra = list(self._pred.waiting)
            found.append(f"{counted(len(extra), 'prediction')} for no gold step: {first_three(extra)}")
        return found


class _Side:
    """Gold or predictions while they are read."""

    def __init__(self, name: str, source: Answers, *, keep_last: bool) -> None:
        self.name = name
        self.waiting: dict[str, StepAnswers] = {}
        """Steps whose counterpart has not come yet."""
        self.count = 0
        self.repeated: list[str] = []
        """Ids that came again and were left out; `replaced`: that came again and were taken."""
        self.replaced: list[str] = []
        self._source = source
        self._keep_last = keep_last and isinstance(source, Sequence)

    def read(self) -> Iterator[StepAnswers]:
        seen: set[int] = set()  # hashes, not ids: a long file must not fill the memory
        for step in self._last_of_each() if self._keep_last else steps_of(self._source):
            key = hash(step.id)
            if key in seen:
                self.repeated.append(step.id)
                continue
            seen.add(key)
            self.count += 1
            yield step

    def _last_of_each(self) -> Iterable[StepAnswers]:
        last: dict[str, StepAnswers] = {}
        for step in steps_of(self._source):
            if step.id in last:
                self.replaced.append(step.id)
            last[step.id] = step
        return last.values()


def _digest(step: StepAnswers) -> int:
    digest = hashlib.sha256(step.id.encode("utf-8", "surrogatepass"))
    for sentence in sorted(step.sentences):
        digest.update(b"\0" + sentence.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "big")


def first_three(names: Sequence[str]) -> str:
    """The first three of a list for a message, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
