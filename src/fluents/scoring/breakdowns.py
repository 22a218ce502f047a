"""A score in parts: by topic, by seen and unseen topics, by position, by mention, by modality.

Topic and position need no second scoring: a score remembers every step's numbers. Mention and modality part the answers
inside a step, so each part is scored anew. Steps that have none of its answers are left out of a part (in compat, not
out of a modality's: the released numbers keep them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

from fluents.errors import InputError
from fluents.records import Procedure, StateChange, Trace
from fluents.scoring import check_choice
from fluents.scoring.score import Score
from fluents.text.names import mentioned

Kind: TypeAlias = Literal["topic", "seen", "position", "mentioned", "modality"]

UNSEEN_TOPIC = "Health"
"""The topic OpenPI keeps out of its training set."""
LAST_POSITION = 6
"""Steps from this one on are counted together."""
NO_TOPIC = "(no topic)"

Topics: TypeAlias = Mapping[str, str | None]
"""Procedure id → topic."""


StepMetric: TypeAlias = Callable[[Iterable[Trace], Iterable[Trace]], Score]
"""A metric that goes step by step, such as `original`, with its options settled."""


def by_topic(score: Score, topics: Topics) -> dict[str, Score]:
    """A score for every topic, in the order of their names."""
    return _parts(score, lambda procedure, _: topics.get(procedure) or NO_TOPIC)


def by_seen(score: Score, topics: Topics) -> dict[str, Score]:
    """Topics of the training set, and the one that is only in the test set. Procedures without a topic are left out."""

    def name(procedure: str, _: int) -> str | None:
        topic = topics.get(procedure)
        return None if topic is None else "unseen" if topic == UNSEEN_TOPIC else "seen"

    return _parts(score, name)


def by_position(score: Score) -> dict[str, Score]:
    """A score for the first step, the second, …, and for all from the sixth on."""

    def name(_: str, step: int) -> str | None:
        return None if step < 1 else f"{step}" if step < LAST_POSITION else f"{LAST_POSITION}+"

    return _parts(score, name)


def _parts(score: Score, name_of: Callable[[str, int], str | None]) -> dict[str, Score]:
    keys = zip(score.statistics.procedures, score.statistics.steps, strict=True)
    names = sorted({name for key in keys if (name := name_of(*key)) is not None})

    def part(name: str) -> Score:
        return score.on(lambda procedure, step: name_of(procedure, step) == name)

    return {name: part(name) for name in names}


def by_mentioned(gold: Iterable[Trace], pred: Iterable[Trace], metric: StepMetric) -> dict[str, Score]:
    """Changes of entities that the text has named so far, and of those it has not, on both sides.

    The text is the gold's: files of predictions often hold none. Answers that could not be read are left out, and so
    is a part without any changes.
    """
    meant, said = list(gold), list(pred)
    texts = {trace.id: trace.procedure for trace in meant}
    found = {}
    for name, wanted in (("mentioned", True), ("not mentioned", False)):
        keep = _mention(texts, wanted)
        golds, preds = ([_only(trace, keep) for trace in side] for side in (meant, said))
        if any(trace.changes for trace in (*golds, *preds)):
            found[name] = metric(*_on_common_steps(golds, preds, [*golds, *preds]))
    return found


def _mention(texts: Mapping[str, Procedure], wanted: bool) -> Callable[[str, StateChange], bool]:
    def keep(procedure_id: str, change: StateChange) -> bool:
        text = texts.get(procedure_id)
        return text is not None and mentioned(text, change.step, change.entity) == wanted

    return keep


def by_modality(
    gold: Iterable[Trace], pred: Iterable[Trace], metric: StepMetric, *, all_steps: bool = False
) -> dict[str, Score]:
    """All predictions, against the words of annotators who saw the step's image, and of those who did not.

    Precision is lower on either part than on the whole: answers that match the other part only count as wrong.
    `all_steps` keeps the steps that are without gold now, with recall 1 each, as the released evaluation did.
    """
    meant, said = list(gold), list(pred)
    found = {}
    for modality in ("with_image", "without_image"):
        golds = [_only(trace, _seen_by(modality)) for trace in meant]
        if not any(trace.changes for trace in golds):
            raise InputError(
                "`by` modality needs to know which annotators saw images, but the gold does not record this",
                fix="use openpi:dev or openpi:test as `gold`",
            )
        sides = (golds, said) if all_steps else _on_common_steps(golds, said, golds)
        found[modality.replace("_", " ")] = metric(*sides)
    return found


def _seen_by(modality: str) -> Callable[[str, StateChange], bool]:
    return lambda _, change: change.modality in (modality, "both")


def _only(trace: Trace, keep: Callable[[str, StateChange], bool]) -> Trace:
    """A trace with some of its changes."""
    changes = tuple(change for change in trace.changes if keep(trace.id, change))
    return trace.model_copy(update={"changes": changes, "rejects": ()})


def _on_common_steps(
    gold: Iterable[Trace], pred: Iterable[Trace], deciding: Iterable[Trace]
) -> tuple[list[Trace], list[Trace]]:
    """Both sides on the steps of which one of the deciding traces says something."""
    steps: dict[str, set[int]] = {}
    for trace in deciding:
        steps.setdefault(trace.id, set()).update(change.step for change in trace.changes)

    def limited(trace: Trace) -> Trace:
        wanted = steps.get(trace.id, set())
        return trace.model_copy(
            update={
                "covered": tuple(step for step in trace.covered_steps if step in wanted),
                "changes": tuple(change for change in trace.changes if change.step in wanted),
                "rejects": tuple(reject for reject in trace.rejects if reject.step in wanted),
            }
        )

    return [limited(trace) for trace in gold], [limited(trace) for trace in pred]


def breakdown(
    kind: Kind, score: Score, gold: Iterable[Trace], pred: Iterable[Trace], metric: StepMetric
) -> dict[str, Score]:
    """The parts of a score. Gold and predictions are looked at again for every kind but "position"."""
    check_choice("kind", kind, Kind)
    if kind == "position":
        return by_position(score)
    if kind == "mentioned":
        return by_mentioned(gold, pred, metric)
    if kind == "modality":
        return by_modality(gold, pred, metric, all_steps=("mode", "compat") in score.signature.entries)
    topics = {trace.id: trace.procedure.topic for trace in gold}
    parts = by_topic(score, topics) if kind == "topic" else by_seen(score, topics)
    if not any(topics.values()):
        raise InputError(
            f"`by` {kind} needs the topic of each procedure, but the gold has no topics",
            fix="use openpi:dev or openpi:test as `gold`",
        )
    return parts
