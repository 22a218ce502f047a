"""Clusters as a language model sees them, asked several times and put to the vote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fluents.canonicalise.clusters import REASON, Grouped, NameList, Places
from fluents.canonicalise.examples import ShownClusters
from fluents.canonicalise.named import squashed
from fluents.canonicalise.voting import elected
from fluents.errors import InputError
from fluents.llm import Asker, Question
from fluents.llm.asking import Unreadable, UnreadableAnswer, ask_all, json_in
from fluents.prompts.files import render
from fluents.prompts.llm import MAX_NAME_BYTES, quoted, system, whole_scene
from fluents.records import Reject, Trace

PROMPTS = {"entities": "cluster-entities-1", "attributes": "cluster-attributes-1"}

MOST_ASKED = 300
"""Names that fit into one question with their procedure, and into one answer."""

SCHEMA = {
    "type": "object",
    "properties": {"groups": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}},
    "required": ["groups"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Asking:
    """Who is asked, and how often."""

    asker: Asker
    model: str
    """Its name, for the record."""
    runs: int = 5
    """Answers on entities."""
    attribute_runs: int = 3
    temperature: float = 0.7
    workers: int = 8
    on_answer: Callable[[int, int], None] | None = None
    shown: ShownClusters | None = None
    """What is shown with each question instead of three examples of ours."""
    max_tokens: int | None = None
    """Of an answer; None: more than its names have letters."""


class Prompted:
    """Names grouped by a language model: OpenPI2.0's way, five answers on entities and three on attributes."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self.name = f"prompted-1, {asking.model}, {asking.runs}+{asking.attribute_runs} runs"
        if asking.shown:
            self.name += f", {asking.shown.name}"

    def group(self, trace: Trace, lists: Sequence[NameList]) -> Grouped:
        asked = [
            (place, question)
            for place, one in enumerate(lists)
            if len(one.names) > 1
            for question in self._questions(trace, one)
        ]
        answers = ask_all(
            self._asking.asker,
            [question for _, question in asked],
            read,
            self._asking.workers,
            self._asking.on_answer,
            self._asking.max_tokens,
        )
        runs: list[list[list[list[str]]]] = [[] for _ in lists]
        rejects = []
        for (place, _), answer in zip(asked, answers, strict=True):
            if isinstance(answer, Unreadable):
                rejects.append(Reject(text=answer.text, reason=REASON + answer.reason))
            else:
                runs[place].append(answer)
        return Grouped([_places(one, said) for one, said in zip(lists, runs, strict=True)], tuple(rejects))

    def _questions(self, trace: Trace, one: NameList) -> list[Question]:
        if len(one.names) > MOST_ASKED:
            raise InputError(
                f"{len(one.names)} different names are too many for one question, which takes {MOST_ASKED}",
                where=trace.id,
                fix="use --method offline or verified, or split the procedure",
            )
        prompt = render(
            PROMPTS[one.level],
            scene=whole_scene(trace.procedure),
            entity=quoted(one.entity, MAX_NAME_BYTES),
            names=[quoted(_asked_name(named.name), MAX_NAME_BYTES) for named in one.names],
            examples=self._asking.shown.examples(trace.procedure, one.level) if self._asking.shown else [],
        )
        count = self._asking.runs if one.level == "entities" else self._asking.attribute_runs
        room = 64 + sum(len(named.name) + 8 for named in one.names)  # more tokens than the names have letters
        return [
            Question(
                prompt,
                system=system(),
                schema=SCHEMA,
                name=PROMPTS[one.level],
                max_tokens=room,
                temperature=self._asking.temperature,
                seed=run,
            )
            for run in range(1, count + 1)
        ]


def read(text: str) -> list[list[str]]:
    """The groups in an answer, names as they are compared."""
    value = json_in(text)
    groups = value.get("groups") if isinstance(value, dict) else value
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        raise UnreadableAnswer("there is no list of groups in it")
    if not all(isinstance(name, str) for group in groups for name in group):
        raise UnreadableAnswer("a group holds something that is no name")
    return [[squashed(name) for name in group] for group in groups]


def _asked_name(name: str) -> str:
    return " ".join(name.split())


def _places(one: NameList, runs: Sequence[Sequence[Sequence[str]]]) -> Places:
    places: dict[str, list[int]] = {}  # two names may be compared as one, such as I with a dot written in two ways
    for number, named in enumerate(one.names):
        places.setdefault(squashed(named.name), []).append(number)
    return [[place for name in cluster for place in places[name]] for cluster in elected(runs, list(places))]
