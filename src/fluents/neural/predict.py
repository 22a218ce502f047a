"""Answers of a trained network for whole procedures, many at once: step k of all of them in one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from fluents.errors import InputError, needs_extra
from fluents.neural.checkpoint import Trained
from fluents.neural.emem import Memory
from fluents.neural.encoding import EncodedRow
from fluents.neural.inputs import Decoding, entities, merged, question, read_answer
from fluents.neural.network import enough_memory
from fluents.records import Procedure, Reject, StateChange, Trace
from fluents.text.names import counted

with needs_extra("train"):
    import torch

ROWS = 64
"""Questions answered together; fewer need less memory."""

_FEWER = "lower the batch size (`rows`)"


@dataclass
class Said:
    """What was answered for one procedure, step by step."""

    changes: dict[int, list[StateChange]] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)


OnTurn: TypeAlias = "Callable[[int, Said, bool], None]"
"""Called with (place of a procedure, what is said of it so far, whether that is all) when steps are finished."""


@dataclass(frozen=True)
class _Asked:
    """A question about a step, in tokens, and whose it is."""

    row: EncodedRow
    step: int


def predict(
    trained: Trained,
    procedures: Sequence[Procedure],
    decoding: Decoding,
    *,
    first: Mapping[str, Trace] | None = None,
    rows: int = ROWS,
    on_turn: OnTurn | None = None,
) -> list[Said]:
    """The changes of every step of every procedure. A system that asks about entities takes them from `first`.

    A system that knows its own past answers goes step by step, others answer all steps at once.
    """
    if trained.system.entity:
        _check_first(procedures, first)
    said = [Said() for _ in procedures]
    memory = trained.network.empty_memory(len(procedures))
    for turn in _turns(trained, procedures):
        asked = [ask for owner, step in turn for ask in _asked(trained, procedures[owner], owner, step, said, first)]
        answers = _answers(trained, asked, memory, decoding, rows)
        for owner, step in turn:
            said[owner].changes[step] = []
        for ask, text in zip(asked, answers, strict=True):
            changes, rejects = read_answer(text, ask.step)
            mine = said[ask.row.owner]
            mine.changes[ask.step] = merged([mine.changes[ask.step], changes])
            mine.rejects += rejects
        if memory is not None:
            _remember(trained, asked, answers, memory, rows)
        if on_turn:
            for owner in dict.fromkeys(owner for owner, _ in turn):
                on_turn(owner, said[owner], len(said[owner].changes) == len(procedures[owner].steps))
    return said


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """What is drawn in here depends on the seed alone, and what is drawn after does not depend on it."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def _turns(trained: Trained, procedures: Sequence[Procedure]) -> list[list[tuple[int, int]]]:
    """(procedure, step) pairs that can be answered together."""
    longest = max((len(procedure.steps) for procedure in procedures), default=0)
    by_step = [
        [(owner, step) for owner, procedure in enumerate(procedures) if step <= len(procedure.steps)]
        for step in range(1, longest + 1)
    ]
    if trained.system.memory or trained.system.states:
        return by_step
    return [[pair for turn in by_step for pair in turn]] if by_step else []


def _asked(
    trained: Trained,
    procedure: Procedure,
    owner: int,
    step: int,
    said: Sequence[Said],
    first: Mapping[str, Trace] | None,
) -> Iterable[_Asked]:
    states = None
    if trained.system.states:
        states = [said[owner].changes[earlier] for earlier in range(1, step)]
    whom: Iterable[str | None] = (None,)
    if trained.system.entity and first is not None:
        whom = entities(first[procedure.id].at(step))
    for entity in whom:
        asking = question(procedure, step, trained.card.style, states=states, entity=entity)
        yield _Asked(EncodedRow(owner, trained.codec.asked(asking)), step)


def _answers(
    trained: Trained, asked: Sequence[_Asked], memory: Memory | None, decoding: Decoding, rows: int
) -> list[str]:
    """A text for each question. Like lengths go together, so that little is padded."""
    order = sorted(range(len(asked)), key=lambda place: len(asked[place].row.asked))
    texts = [""] * len(asked)
    for start in range(0, len(order), rows):
        part = order[start : start + rows]
        with enough_memory(_FEWER):
            made = trained.network.generate(
                [asked[place].row for place in part], memory, decoding, trained.most_answered
            )
        for place, ids in zip(part, made, strict=True):
            texts[place] = trained.codec.text(ids)
    return texts


def _remember(trained: Trained, asked: Sequence[_Asked], answers: Sequence[str], memory: Memory, rows: int) -> None:
    """Read the answers again under teacher forcing, as in training, and take their states into memory."""
    told = []
    for ask, text in zip(asked, answers, strict=True):
        ids, spans = trained.codec.answered(read_answer(text, ask.step)[0])
        if spans:
            told.append(EncodedRow(ask.row.owner, ask.row.asked, ids, spans))
    if not told or trained.network.compress is None:
        return
    with enough_memory(_FEWER), torch.no_grad():
        states = [trained.network.read(told[i : i + rows], memory)[1] for i in range(0, len(told), rows)]
        memory.update(told, torch.cat(states), trained.network.compress)


def entities_missing() -> InputError:
    """The error where a system needs a first stage and there is none."""
    return InputError(
        "this checkpoint predicts changes of given entities (system econd), but no entities are given",
        fix="set `first` to a checkpoint that predicts the entities of each step, or to a file or dataset that "
        "contains them (an option of `fluents track-neural` and `fluents train sweep`, and a parameter of "
        "`open_checkpoint`)",
    )


def _check_first(procedures: Sequence[Procedure], first: Mapping[str, Trace] | None) -> None:
    if first is None:
        raise entities_missing()
    for procedure in procedures:
        found = first.get(procedure.id)
        if found is None or len(found.procedure.steps) != len(procedure.steps):
            raise InputError(
                f"`first` contains no trace of {procedure.id!r}"
                if found is None
                else f"{procedure.id!r} has {counted(len(procedure.steps), 'step')}, but its trace in `first` has "
                f"{len(found.procedure.steps)}",
                fix="set `first` to a file or dataset with the same procedures and steps as the input",
            )
