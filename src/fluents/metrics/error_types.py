"""The error types of OpenPI (2020) as a rule.

The paper's authors sorted wrong predictions by hand; here each prediction that is no exact match of a gold answer of
its step is held against the gold answer most like it (by ROUGE-L, the first of equals), and is wrong in

- the entity, or the attribute, if its words differ;
- an adjective, or a relation, if the words of the state before or after differ: a relation where the gold's state
  begins with a preposition ("in the pan"), else an adjective ("hot").

Words are compared as the strict metric compares them: stems, without articles. A prediction can be wrong in several
ways, so the shares add up to more than all. One that is like no gold answer, or cannot be read, is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from fluents.metrics.original import read_answers
from fluents.records import StateChange
from fluents.scoring import Mode
from fluents.scoring.alignment import Alignment, Answers, StepAnswers
from fluents.scoring.score import Figures, Score, ShareOf, Signature, Statistics, StepRow
from fluents.text.matchers import Answer, exact, rouge

TYPES = ("attribute", "entity", "adjective", "relation")
UNLIKE, UNREAD = "like no gold", "not readable"
WRONG = "wrong"

PRINTED = {"attribute": 51, "entity": 59, "adjective": 41, "relation": 17}
"""The 2020 paper's shares of GPT-2's errors, in percent, sorted by people."""

PREPOSITIONS = frozenset(
    "about above across after against along among around as at atop before behind "  # noqa: SIM905 - shorter so
    "below beneath beside between "
    "beyond by during for from in inside into near next of off on onto out outside over past through "
    "throughout to toward towards under underneath until upon with within without".split()
)


def error_types(gold: Answers, pred: Answers, *, mode: Mode = "compat") -> Score:
    """The share of each type among the wrong predictions, in percent; their number is the column "wrong"."""
    alignment = Alignment(gold, pred, mode)
    columns = (*TYPES, UNLIKE, UNREAD, WRONG)
    statistics = Statistics.collect(columns, _rows(alignment, columns))
    figures: Figures = {name: {"share": ShareOf(name, WRONG)} for name in columns[:-1]}
    signature = Signature.of("error types", mode, data=alignment.data_hash)
    return Score("error types", statistics, figures, signature, tuple(alignment.warnings))


def _rows(alignment: Alignment, columns: Sequence[str]) -> Iterator[StepRow]:
    for gold, pred in alignment:
        count = Counter(error for errors in step_errors(gold, pred) for error in (*errors, WRONG))
        yield gold.procedure_id, gold.step, [count[name] for name in columns]


def step_errors(gold: StepAnswers, pred: StepAnswers) -> Iterator[tuple[str, ...]]:
    """What each distinct wrong prediction of a step is wrong in."""
    meant = [(Answer.of_change(change), change) for change in gold.changes]
    texts = read_answers(gold)
    said = {answer.fields: answer for answer in read_answers(pred)}
    changes = {Answer.of_change(change).fields: change for change in pred.changes}
    for fields, answer in said.items():
        if any(exact(right, answer) for right in texts):
            continue
        yield _wrong_in(changes.get(fields), answer, meant)


def _wrong_in(said: StateChange | None, answer: Answer, meant: Iterable[tuple[Answer, StateChange]]) -> tuple[str, ...]:
    if said is None:
        return (UNREAD,)
    best, closest = 0.0, None
    for right, change in meant:
        likeness = rouge(right, answer)
        if likeness > best:
            best, closest = likeness, change
    return (UNLIKE,) if closest is None else tuple(differences(closest, said))


def differences(gold: StateChange, said: StateChange) -> Iterator[str]:
    """The types of error between a gold change and a prediction, each once."""
    right, wrong = Answer.of_change(gold).fields, Answer.of_change(said).fields
    attribute, entity, before, after = (a != b for a, b in zip(right, wrong, strict=True))
    if attribute:
        yield "attribute"
    if entity:
        yield "entity"
    states = [state for state, differs in ((gold.before, before), (gold.after, after)) if differs]
    yield from dict.fromkeys("relation" if is_relation(state) else "adjective" for state in states)


def is_relation(state: str) -> bool:
    """Whether a state says where or with what something is: it begins with a preposition."""
    first = state.lower().split(maxsplit=1)[:1]
    return bool(first) and first[0].strip(".,;:'\"") in PREPOSITIONS
