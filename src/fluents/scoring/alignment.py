"""Gold and predictions, brought together by id, step by step or procedure by procedure, while both are read once.

Metrics that go step by step take traces or plain lists; both become `StepAnswers` here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar, Generic, TypeAlias, TypeVar

from fluents.errors import InputError
from fluents.records import StateChange, Trace
from fluents.scoring import Mode, check_choice
from fluents.task_records import CrepeCase
from fluents.text.names import counted
from fluents.text.template import Parsed, parse

STEP_MARK = "||"

NOTHING_SCORED = (
    "no prediction has the id of a gold item, so the score is meaningless: check that gold and predictions are from "
    "the same dataset and split"
)
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


Item = TypeVar("Item", bound=StepAnswers | Trace | CrepeCase)


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
        raise InputError(
            f"expected traces or pairs (step id, sentences), found {type(item).__name__}",
            fix=f"give, for example, ('tea{STEP_MARK}1', ['temperature of water was cold before and hot afterwards'])",
        )
    step_id, sentences = item
    if isinstance(sentences, str) or not all(isinstance(sentence, str) for sentence in sentences):
        what = "the answers of a step must be a list of strings"
        raise InputError(what, where=f"step {step_id}", fix="give one string for each change")
    procedure_id, mark, step = str(step_id).rpartition(STEP_MARK)
    if not (mark and step.isdecimal() and len(step) < 10):
        what = f"the step id {step_id!r} is not of the form procedure{STEP_MARK}step"
        raise InputError(what, fix=f"write, for example, tea{STEP_MARK}1")
    return StepAnswers(procedure_id, int(step), tuple(sentences))


class Pairing(Generic[Item]):
    """Pairs (gold, predicted) of every gold item; read it once, then ask for its `warnings` and `data_hash`.

    strict: ids agree one to one, or an InputError says where they do not. compat: gold without a prediction gets an
    empty one, a prediction without gold is left out, and a warning tells of it. Only items whose counterpart has not
    come yet are held.
    """

    noun: ClassVar[str]
    one_each: ClassVar[str] = "keep only one of them"
    """What to do where an id comes twice."""

    def __init__(self, gold: _Side[Item], pred: _Side[Item], mode: Mode) -> None:
        check_choice("mode", mode, Mode)
        self._strict = mode == "strict"
        self._gold, self._pred = gold, pred
        self._hash_sum = 0
        self._disagreements: list[str] = []
        self.warnings: list[str] = []

    def __iter__(self) -> Iterator[tuple[Item, Item]]:
        golds, preds = self._gold.waiting, self._pred.waiting
        for gold, pred in zip_longest(self._gold.read(), self._pred.read()):
            if gold is not None:
                self._hash_sum += self._digest(gold)
                golds[gold.id] = gold
            if pred is not None:
                preds[pred.id] = pred
            for item in (gold, pred):
                if item is not None and item.id in golds and item.id in preds:
                    pair = golds.pop(item.id), preds.pop(item.id)
                    self._disagreements += self._differences(*pair)
                    yield pair
        self._check()
        for gold in golds.values():
            yield gold, self._nothing(gold)

    @property
    def data_hash(self) -> str:
        """Eight digits that change with anything the gold says, but not with the order of its items."""
        return hashlib.sha256(str(self._hash_sum).encode()).hexdigest()[:8]

    def _digest(self, gold: Item) -> int:
        raise NotImplementedError

    def _nothing(self, gold: Item) -> Item:
        """An empty prediction."""
        raise NotImplementedError

    def _differences(self, gold: Item, pred: Item) -> Iterable[str]:  # noqa: ARG002
        """In what else the two must agree, and do not."""
        return ()

    def _check(self) -> None:
        """Everything that does not agree: an error in strict, warnings in compat."""
        for side in (self._gold, self._pred):
            if side.repeated:
                what = f"these ids occur in several {side.name}s: {first_three(side.repeated)}"
                raise InputError(what, fix=self.one_each)
            if side.replaced:
                self._disagreements.append(
                    f"these ids occur in several {side.name}s: {first_three(side.replaced)} (only the last is scored)"
                )
        missing, extra, count = list(self._gold.waiting), list(self._pred.waiting), self._gold.count
        if not count:
            raise InputError(f"the gold contains no {self.noun}s", fix="check that the gold file is not empty")
        if not self._pred.count:
            self._disagreements.append("there are no predictions")
        elif missing:
            self._disagreements.append(
                f"no prediction for {len(missing)} of {count} gold {self.noun}s: {first_three(missing)}"
            )
        if extra:
            self._disagreements.append(
                f"{counted(len(extra), 'prediction')} without a gold {self.noun}: {first_three(extra)}"
            )
        if self._disagreements and self._strict:
            unrelated = extra or len(missing) == count
            check = "are for this dataset and split" if unrelated else "are complete"
            told = first_problems(self._disagreements)
            raise InputError(
                told,
                fix=f"check that the predictions {check}, or set `mode` to compat, which scores missing predictions as "
                "empty and ignores extra ones",
            )
        self.warnings += self._disagreements
        if len(missing) == count:
            self.warnings.append(NOTHING_SCORED)


class _Side(Generic[Item]):
    """Gold or predictions while they are read."""

    def __init__(self, name: str, items: Iterable[Item], *, keep_last: bool = False) -> None:
        self.name = name
        self.waiting: dict[str, Item] = {}
        """Items whose counterpart has not come yet."""
        self.count = 0
        self.repeated: list[str] = []
        """Ids that came again and were left out; `replaced`: that came again and were taken."""
        self.replaced: list[str] = []
        self._items, self._keep_last = items, keep_last

    def read(self) -> Iterator[Item]:
        seen: set[int] = set()  # hashes, not ids: a long file must not fill the memory
        for item in self._last_of_each() if self._keep_last else self._items:
            key = hash(item.id)
            if key in seen:
                self.repeated.append(item.id)
                continue
            seen.add(key)
            self.count += 1
            yield item

    def _last_of_each(self) -> Iterable[Item]:
        last: dict[str, Item] = {}
        for item in self._items:
            if item.id in last:
                self.replaced.append(item.id)
            last[item.id] = item
        return last.values()


class Alignment(Pairing[StepAnswers]):
    """Pairs of every gold step. compat does as the published evaluator does: of two lists for one step the last is
    taken, and a warning tells of it. A stream cannot go back for the last: there it is an error."""

    noun = "step"
    one_each = "keep one list of answers for each step"

    def __init__(self, gold: Answers, pred: Answers, mode: Mode) -> None:
        def side(name: str, source: Answers) -> _Side[StepAnswers]:
            return _Side(name, steps_of(source), keep_last=mode == "compat" and isinstance(source, Sequence))

        super().__init__(side("gold step", gold), side("prediction", pred), mode)

    def _digest(self, gold: StepAnswers) -> int:
        digest = hashlib.sha256(gold.id.encode("utf-8", "surrogatepass"))
        for sentence in sorted(gold.sentences):
            digest.update(b"\0" + sentence.encode("utf-8", "surrogatepass"))
        return int.from_bytes(digest.digest(), "big")

    def _nothing(self, gold: StepAnswers) -> StepAnswers:
        return StepAnswers(gold.procedure_id, gold.step, ())


Whole = TypeVar("Whole", bound=Trace | CrepeCase)


class ProcedurePairs(Pairing[Whole]):
    """Pairs of every gold procedure, for metrics that look at more of it than one step; their steps agree as well."""

    noun = "procedure"

    def __init__(self, gold: Iterable[Whole], pred: Iterable[Whole], mode: Mode) -> None:
        super().__init__(_Side("gold procedure", gold), _Side("prediction", pred), mode)

    def _digest(self, gold: Whole) -> int:
        """Of everything but where it comes from."""
        content = gold.__pydantic_serializer__.to_json(gold, exclude={"provenance"}, exclude_defaults=True)
        return int.from_bytes(hashlib.sha256(content).digest(), "big")

    def _nothing(self, gold: Whole) -> Whole:
        return type(gold)(procedure=gold.procedure)

    def _differences(self, gold: Whole, pred: Whole) -> Iterator[str]:
        if differing := sorted(_steps(gold) ^ _steps(pred)):
            told = first_three([str(step) for step in differing])
            yield f"either the gold or the prediction does not cover these steps of procedure {gold.id}: {told}"


def _steps(item: Trace | CrepeCase) -> set[int]:
    return set(item.covered_steps) if isinstance(item, Trace) else set(range(1, len(item.procedure.steps) + 1))


def first_three(names: Sequence[str]) -> str:
    """The first three of a list for a message, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def first_problems(problems: Sequence[str]) -> str:
    """The same for problems that are told in several words each."""
    more = [f"and {counted(len(problems) - 3, 'more problem')}"] if len(problems) > 3 else []
    return "; ".join([*problems[:3], *more])
