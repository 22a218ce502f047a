"""Names grouped by a language model, by a vote over several answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fluents.canonicalisation.clusters import REASON, Grouped, Groups, NameList
from fluents.errors import InputError
from fluents.llm import LanguageModel, Question
from fluents.llm.answers import Unreadable, UnreadableAnswer, ask_all, json_in
from fluents.prompts.llm import JSON_TEXT, json_list, json_object, of_others, quoted_name, render, system, whole_scene
from fluents.records import AttributeCluster, EntityCluster, Procedure, Reject, Trace
from fluents.scoring import Level
from fluents.text.names import fold, one_line

PROMPTS = {"entities": "cluster-entities-1", "attributes": "cluster-attributes-1"}

MOST_ASKED = 300
"""Maximum number of names that fit into one question, and into one answer."""

SCHEMA = json_object(groups=json_list(json_list(JSON_TEXT)))


@dataclass(frozen=True)
class PromptedMethod:
    """Names grouped by a language model: OpenPI2.0's way, five answers on entities and three on attributes."""

    model: LanguageModel
    runs: int = 5
    """Answers on entities."""
    attribute_runs: int = 3
    temperature: float = 0.7
    examples: ClusterExamples | None = None
    """Few-shot examples, instead of three of ours."""

    @property
    def name(self) -> str:
        shown = f", {self.examples.name}" if self.examples else ""
        return f"prompted-1, {self.model.name}, {self.runs}+{self.attribute_runs} runs{shown}"

    def group(self, trace: Trace, lists: Sequence[NameList]) -> Grouped:
        asked = [
            (place, question)
            for place, one in enumerate(lists)
            if len(one.names) > 1
            for question in self._questions(trace, one)
        ]
        answers = ask_all(self.model, [question for _, question in asked], read)
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
                f"this procedure contains {len(one.names)} different names, but a prompt can contain at most "
                f"{MOST_ASKED}",
                where=trace.id,
                fix="set `method` to offline or verified, or split the procedure into shorter ones",
            )
        prompt = render(
            PROMPTS[one.level],
            scene=whole_scene(trace.procedure),
            entity=quoted_name(one.entity),
            names=[quoted_name(one_line(named.name)) for named in one.names],
            examples=self.examples.of(trace.procedure, one.level) if self.examples else [],
        )
        count = self.runs if one.level == "entities" else self.attribute_runs
        room = 64 + sum(len(named.name) + 8 for named in one.names)  # more tokens than the names have letters
        return [
            Question(
                prompt,
                system=system(),
                schema=SCHEMA,
                name=PROMPTS[one.level],
                max_tokens=room,
                temperature=self.temperature,
                seed=run,
            )
            for run in range(1, count + 1)
        ]


def read(text: str) -> list[list[str]]:
    """The groups in an answer, names as they are compared."""
    value = json_in(text)
    groups = value.get("groups") if isinstance(value, dict) else value
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        raise UnreadableAnswer("the answer contains no list of groups")
    if not all(isinstance(name, str) for group in groups for name in group):
        raise UnreadableAnswer("a group contains something other than names")
    return [[fold(name) for name in group] for group in groups]


def _places(one: NameList, runs: Sequence[Sequence[Sequence[str]]]) -> Groups:
    places: dict[str, list[int]] = {}  # two names may be compared as one, such as I with a dot written in two ways
    for number, named in enumerate(one.names):
        places.setdefault(fold(named.name), []).append(number)
    return [[place for name in cluster for place in places[name]] for cluster in elected(runs, list(places))]


Run: TypeAlias = Iterable[Collection[str]]
"""One answer: clusters of names."""


def elected(runs: Iterable[Run], names: Sequence[str]) -> list[list[str]]:
    """The clusters that occur in most runs, none with a name that another has already taken.

    A cluster is a set: its order does not matter, and names that were not asked about are left out of it. A run votes
    once for each of its clusters, and with a name that it puts into several for the first alone. Of clusters with
    equally many votes the larger comes first, then the alphabet decides. Names that no chosen cluster has stand alone.
    """
    known = set(names)
    votes: Counter[frozenset[str]] = Counter()
    for run in runs:
        votes.update(_disjoint(run, known))
    taken: set[str] = set()
    chosen: list[list[str]] = []
    for cluster in sorted(votes, key=lambda one: (-votes[one], -len(one), sorted(one))):
        if not cluster & taken:
            taken |= cluster
            chosen.append(sorted(cluster))
    return sorted([*chosen, *([name] for name in known - taken)])


def _disjoint(run: Run, known: set[str]) -> list[frozenset[str]]:
    seen: set[str] = set()
    found = []
    for cluster in run:
        fresh = frozenset(cluster) & known - seen
        seen |= fresh
        if fresh:
            found.append(fresh)
    return found


MOST_SHOWN = 60
"""Maximum number of names in an example."""


@dataclass(frozen=True)
class ClusterExample:
    """Names with their right grouping."""

    scene: str
    names: tuple[str, ...]
    answer: str
    entity: str = ""


class ClusterExamples:
    """Procedures to draw examples from, in an order that the seed decides; of each one entity's attributes."""

    def __init__(self, traces: Iterable[Trace], count: int = 3, seed: int = 1, source: str = "") -> None:
        self.name = f"{count} examples of {source}"
        self._count, self._source = count, source
        self._drawn: dict[Level, list[tuple[Procedure, ClusterExample]]] = {"entities": [], "attributes": []}
        draw = random.Random(seed)
        for trace in draw.sample(whole := list(traces), len(whole)):
            if _can_be_example(trace.clusters):
                self._drawn["entities"].append((trace.procedure, _example(trace, trace.clusters)))
            owners = [cluster for cluster in trace.clusters if _can_be_example(cluster.attributes)]
            if owners:
                owner = draw.choice(owners)
                self._drawn["attributes"].append((trace.procedure, _example(trace, owner.attributes, owner.name)))

    def of(self, procedure: Procedure, level: Level) -> list[ClusterExample]:
        """So many as were asked for, from other procedures than this."""
        return of_others(self._drawn[level], procedure, self._count, self._source)


def _can_be_example(clusters: Sequence[EntityCluster] | Sequence[AttributeCluster]) -> bool:
    """Whether there are names to tell apart, and not too many."""
    return 1 < sum(len(cluster.mentions) for cluster in clusters) <= MOST_SHOWN


def _example(
    trace: Trace, clusters: Sequence[EntityCluster] | Sequence[AttributeCluster], entity: str = ""
) -> ClusterExample:
    """Names by the alphabet: in the clusters' order the answer would be no more than where to put brackets."""
    groups = [[quoted_name(name) for name in cluster.mentions] for cluster in clusters if cluster.mentions]
    return ClusterExample(
        whole_scene(trace.procedure),
        tuple(sorted(name for group in groups for name in group)),
        '{"groups": [' + ", ".join(f"[{', '.join(group)}]" for group in groups) + "]}",
        quoted_name(entity),
    )
