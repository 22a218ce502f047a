"""What a command is given to score: a dataset's name or a file, streamed, and read again where a command has to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fluents.errors import InputError
from fluents.jsonl import parse_json, read_lines

if TYPE_CHECKING:
    from fluents.data.cluster_labels import Groupings
    from fluents.records import Trace
    from fluents.scoring import Level
    from fluents.task_records import CrepeCase

Plain: TypeAlias = "tuple[str, list[str]]"
"""A step's id, and what is said of it."""


@dataclass(frozen=True)
class Source:
    """A dataset's split, such as openpi:test, or a file in any shape."""

    name: str

    def traces(self) -> Iterator[Trace]:
        """Every call reads from the beginning. A file without a line holds no traces."""
        from fluents.data.file_formats import read_traces

        return iter(()) if self._is_empty() else read_traces(self.name)

    def cases(self) -> Iterator[CrepeCase]:
        """CREPE's procedures with their events."""
        from fluents.data.file_formats import read
        from fluents.task_records import CrepeCase

        for record in () if self._is_empty() else read(self.name):
            if not isinstance(record, CrepeCase):
                raise InputError("no CREPE file: it has no events", where=self.name, fix="e.g. crepe:dev")
            yield record

    @property
    def kept(self) -> str:
        """What of it is kept, for a score's signature; nothing where all is."""
        return ""

    def warnings(self) -> Iterator[str]:
        """What was found while it was read."""
        return iter(())

    def must_be_a_file(self, option: str) -> None:
        """Standard input cannot be read twice."""
        if self.name == "-":
            raise InputError(f"{option} reads gold and predictions twice", where="-", fix="write them to a file first")

    def _is_empty(self) -> bool:
        return Path(self.name).is_file() and next(read_lines(self.name), None) is None


def last_of_each_step(source: Source) -> tuple[Iterable[Trace] | Iterable[Plain], list[str]]:
    """Predictions as the published evaluator takes them: of two lists for one step the last; and the ids of such steps.

    Only OpenPI's own prediction files can have them: the readers of all shapes refuse an id that comes twice.
    """
    path = source.name
    if not Path(path).is_file() or not _holds_answers(path):
        return source.traces(), []
    last: dict[int, str] = {}
    repeated: list[str] = []
    for where, step_id, _ in _answers(path):
        if hash(step_id) in last:
            repeated.append(step_id)
        last[hash(step_id)] = where
    if not repeated:
        return source.traces(), []
    return ((step_id, said) for where, step_id, said in _answers(path) if last[hash(step_id)] == where), repeated


def _holds_answers(path: str) -> bool:
    """Whether the first line is a step of OpenPI with its answers."""
    where, line = next(read_lines(path), ("", b""))
    if not line.startswith(b"{"):
        return False
    try:
        value = parse_json(line, where)
    except InputError:  # another shape, or a broken one: its reader says so
        return False
    return isinstance(value, dict) and isinstance(value.get("id"), str) and isinstance(value.get("answers"), list)


def _answers(path: str) -> Iterator[tuple[str, str, list[str]]]:
    for where, line in read_lines(path):
        value: Any = parse_json(line, where)
        if not isinstance(value, dict) or not isinstance(value.get("answers"), list):
            raise InputError("a step without its answers", where=where)
        yield where, str(value.get("id")), value["answers"]


LABELS, RUNS = "openpi2:labels", "openpi2-outputs:clusters"
"""Names only clustering knows: OpenPI2.0's hand-made clusters, and those of a language model in several runs."""

VOTES = "openpi2-outputs:votes"
"""Likewise: those runs put to the vote, as `fluents canonicalise --method prompted` does it."""


def clusterings(gold: str, pred: str, level: Level) -> tuple[Any, list[Any]]:
    """The gold's clusters and the runs to score against them."""
    from fluents.canonicalisation.training import PREDICTIONS, predictions
    from fluents.data import cluster_labels as labels

    hand: dict[str, Callable[[], Groupings]] = {
        "entities": labels.entity_labels,
        "attributes": labels.attribute_labels,
    }
    if pred in PREDICTIONS and not Path(pred).exists():
        if gold != LABELS:
            raise InputError(f"{pred} is of the labelled procedures alone", where=gold, fix=f"leave --gold at {LABELS}")
        return hand[level](), [predictions(pred, level)]
    meant = hand[level]() if gold == LABELS else Source(gold).traces()
    if pred == VOTES:
        return meant, [_votes(hand[level](), level)]
    if pred != RUNS:
        return meant, [Source(pred).traces()]
    if level == "entities":
        return meant, [labels.entity_run(run) for run in labels.ENTITY_RUNS]
    return meant, [labels.attribute_run()]


def _votes(asked: Groupings, level: Level) -> Groupings:
    from fluents.canonicalisation.prompted_method import elected
    from fluents.data import cluster_labels as labels

    runs = (
        [labels.entity_run(run) for run in labels.ENTITY_RUNS]
        if level == "entities"
        else [labels.attribute_run(run) for run in labels.ATTRIBUTE_RUNS]
    )
    names = {key: [name for cluster in clusters for name in cluster] for key, clusters in asked.items()}
    return {key: elected([run[key] for run in runs if key in run], listed) for key, listed in names.items()}
