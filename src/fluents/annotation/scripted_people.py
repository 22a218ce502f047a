"""Annotators who know the truth and err at given rates, and material with mistakes for them to find."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any

from pydantic import Field

from fluents.annotation.forms import CHANGE_VERDICTS, MAX_ADDED, PAIR_VERDICTS, is_writable, same_words
from fluents.annotation.items import Item, change_payload
from fluents.records import Procedure, Record, StateChange, Trace
from fluents.text.names import bare_name, fold

Share = Annotated[float, Field(ge=0, le=1)]


class ErrorRates(Record):
    """How often an annotator errs."""

    miss: Share = 0.0
    """Of the changes to write, the share that is left out."""
    invent: Share = 0.0
    """How many wrong changes are written for each right one."""
    flip: Share = 0.0
    """Of the questions to answer, the share that is answered wrongly."""


class PlantedShares(Record):
    """How much of the material is wrong before anybody looks at it; by default as OpenPI-C found OpenPI."""

    procedures: Annotated[float, Field(ge=0, lt=1)] = 0.15
    steps: Annotated[float, Field(ge=0, lt=1)] = 0.074
    changes: Annotated[float, Field(ge=0, lt=1)] = 0.32


def with_unique_steps(traces: Iterable[Trace]) -> list[Trace]:
    """The traces, with a number behind each text that several steps share, such as that of steps without a text.

    People find what happens in a step by its text. They cannot find it by its number: a planted step stands in a
    foreign procedure, and a cleaning stage removes steps and renumbers the others.
    """
    found = list(traces)
    known = Counter(fold(text) for trace in found for text in trace.procedure.steps)
    numbers = count(1)

    def unique(text: str) -> str:
        if known[fold(text)] == 1:
            return text
        return next(made for number in numbers if fold(made := f"{text} ({number})") not in known)

    return [
        trace.replace(procedure=trace.procedure.replace(steps=tuple(map(unique, trace.procedure.steps))))
        for trace in found
    ]


@dataclass
class Truth:
    """What gold traces say is right. The texts of their steps must be unique."""

    procedures: set[str] = field(default_factory=set)
    steps: set[tuple[str, str]] = field(default_factory=set)
    """(procedure, text of the step)."""
    changes: dict[str, list[StateChange]] = field(default_factory=dict)
    """By the text of a step: what happens in it, even if it was planted in another procedure."""
    words: dict[str, set[tuple[Any, ...]]] = field(default_factory=dict)
    """The same, as compared."""
    clusters: dict[tuple[str, str], int] = field(default_factory=dict)
    """(procedure, name of an entity) → number of its cluster."""
    attributes: dict[tuple[str, str], int] = field(default_factory=dict)
    salience: dict[tuple[str, str, int | None], float] = field(default_factory=dict)

    @classmethod
    def of(cls, traces: Iterable[Trace]) -> Truth:
        truth = cls()
        for trace in traces:
            truth.procedures.add(trace.id)
            for number, text in enumerate(trace.procedure.steps, start=1):
                truth.steps.add((trace.id, fold(text)))
                happening = truth.changes.setdefault(fold(text), [])
                known = truth.words.setdefault(fold(text), set())
                for change in trace.at(number):
                    if is_writable(change) and words_of(change) not in known:
                        happening.append(change)
                        known.add(words_of(change))
            truth._take_names(trace)
        return truth

    def _take_names(self, trace: Trace) -> None:
        for number, cluster in enumerate(trace.clusters):
            for name in (cluster.name, *cluster.mentions):
                self.clusters.setdefault((trace.id, name), number)
            for place, attribute in enumerate(cluster.attributes):
                for name in (attribute.name, *attribute.mentions):
                    self.attributes.setdefault((trace.id, name), place)
        for rating in trace.salience:
            if rating.value is not None:
                self.salience.setdefault((trace.id, rating.entity, rating.step), rating.value)

    def is_right(self, text: str, change: StateChange) -> bool:
        """Whether the change happens in a step of this text."""
        return words_of(change) in self.words.get(fold(text), set())


def words_of(change: StateChange) -> tuple[Any, ...]:
    """What a change says, without its step, whose number may change."""
    return same_words(change_payload(change))[1:]


# Mistakes in the material


def planted(traces: Sequence[Trace], shares: PlantedShares, seed: int) -> list[Trace]:
    """The traces with foreign changes, steps and procedures among their own, so that these shares of them are wrong."""
    if len(traces) < 2:
        return list(traces)
    chance = random.Random(f"{seed} planted")
    found = [
        _with_foreign_changes(_with_foreign_steps(one, traces, shares, chance), traces, shares, chance)
        for one in traces
    ]
    for number in range(_added(shares.procedures, len(traces), chance)):
        count = len(chance.choice(traces).procedure.steps)
        steps = [chance.choice(chance.choice(traces).procedure.steps) for _ in range(count)]
        found.append(Trace(procedure=Procedure(id=f"planted-{number + 1}", goal="Various things", steps=tuple(steps))))
    return found


def _added(share: float, count: int, chance: random.Random) -> int:
    """How many must be added to `count` so that they are this share of all, rounded up or down by chance."""
    exact = count * share / (1 - share)
    return int(exact) + (chance.random() < exact % 1)


def _with_foreign_steps(trace: Trace, traces: Sequence[Trace], shares: PlantedShares, chance: random.Random) -> Trace:
    own = [(text, trace.at(number)) for number, text in enumerate(trace.procedure.steps, start=1)]
    for _ in range(_added(shares.steps, len(own), chance)):
        other = chance.choice(traces)
        number = chance.randint(1, len(other.procedure.steps))
        if other.id != trace.id:
            own.insert(chance.randint(0, len(own)), (other.procedure.steps[number - 1], other.at(number)))
    if len(own) == len(trace.procedure.steps):
        return trace
    changes = [one.replace(step=number) for number, (_, found) in enumerate(own, start=1) for one in found]
    return Trace(
        procedure=trace.procedure.replace(steps=tuple(text for text, _ in own), images=(), extra={}),
        changes=tuple(changes),
    )


def _with_foreign_changes(trace: Trace, traces: Sequence[Trace], shares: PlantedShares, chance: random.Random) -> Trace:
    changes = list(trace.changes)
    for _ in range(_added(shares.changes, len(changes), chance)):
        other = chance.choice(traces)
        if other.changes and other.id != trace.id:
            changes.append(chance.choice(other.changes).replace(step=chance.randint(1, len(trace.procedure.steps))))
    return trace.replace(changes=tuple(sorted(changes, key=lambda one: one.step)))


# People


@dataclass(frozen=True)
class ScriptedAnnotator:
    """Somebody who knows the truth and errs at given rates, the same way each time an item is shown."""

    name: str
    rates: ErrorRates
    truth: Truth
    inventions: Sequence[StateChange] = ()
    """What wrong changes are taken from."""
    seed: int = 0

    def answer(self, item: Item) -> dict[str, Any]:
        """The answer to an item of any kind."""
        chance = random.Random(f"{self.seed} {item.id} {self.name}")
        return _ANSWERS[item.kind](self, item, chance)

    def _says(self, right: bool, chance: random.Random) -> bool:
        return right != (chance.random() < self.rates.flip)

    def _one_of(self, right: str, choices: Sequence[str], chance: random.Random) -> str:
        if chance.random() >= self.rates.flip:
            return right
        return chance.choice([choice for choice in choices if choice != right])

    def _is_right(self, item: Item, value: Mapping[str, Any]) -> bool:
        text = item.payload["procedure"]["steps"][value["step"] - 1]
        return self.truth.is_right(text, _change(value))

    def _written(self, item: Item, chance: random.Random, most: int, known: Iterable[Any] = ()) -> list[dict[str, Any]]:
        """Changes that happen and are not known yet, less those missed, and inventions among them."""
        seen = set(known)
        found: list[dict[str, Any]] = []
        for number, text in enumerate(item.payload["procedure"]["steps"], start=1):
            true = [one.replace(step=number) for one in self.truth.changes.get(fold(text), ())]
            new = [change_payload(one) for one in true if same_words(change_payload(one)) not in seen]
            said = [value for value in new if chance.random() >= self.rates.miss]
            for _ in new:
                if self.inventions and chance.random() < self.rates.invent:
                    said.append(change_payload(chance.choice(self.inventions).replace(step=number)))
            found += chance.sample(said, most) if len(said) > most else said
        return found

    def select(self, item: Item, chance: random.Random) -> dict[str, Any]:
        return {"keep": self._says(item.procedure in self.truth.procedures, chance)}

    def author(self, item: Item, chance: random.Random) -> dict[str, Any]:
        return {"changes": self._written(item, chance, item.payload["max_changes"])}

    def audit(self, item: Item, chance: random.Random) -> dict[str, Any]:
        known = [same_words(value) for value in item.payload["changes"]]
        missing = self._written(item, chance, MAX_ADDED, known)[:MAX_ADDED]
        return {"missing": [{**value, "type": "indirect"} for value in missing]}

    def vet(self, item: Item, chance: random.Random) -> dict[str, Any]:
        return {"valid": self._says(self._is_right(item, item.payload["change"]), chance), "reason": None}

    def clean_procedures(self, item: Item, chance: random.Random) -> dict[str, Any]:
        return {"procedure": self._says(item.procedure in self.truth.procedures, chance)}

    def clean_steps(self, item: Item, chance: random.Random) -> dict[str, Any]:
        right = [(item.procedure, fold(text)) in self.truth.steps for text in item.payload["procedure"]["steps"]]
        return {"valid": [self._says(one, chance) for one in right]}

    def clean_changes(self, item: Item, chance: random.Random) -> dict[str, Any]:
        right = "certain" if self._is_right(item, item.payload["change"]) else "uncertain"
        return {"verdict": self._one_of(right, CHANGE_VERDICTS, chance)}

    def clusters(self, item: Item, chance: random.Random) -> dict[str, Any]:
        """By the gold's clusters, or by the suggestion where it has none. A wrong answer puts a name with another's."""
        names = [entry["name"] for entry in item.payload["names"]]
        known = self.truth.clusters if item.kind == "entities" else self.truth.attributes
        suggested = {name: -1 - place for place, group in enumerate(item.payload["suggestion"]) for name in group}
        homes = {name: known.get((item.procedure, name), suggested[name]) for name in names}
        groups: dict[int, list[str]] = {}
        for name in names:
            wrong = chance.random() < self.rates.flip
            groups.setdefault(homes[chance.choice(names) if wrong else name], []).append(name)
        return {"clusters": list(groups.values())}

    def expansions(self, item: Item, chance: random.Random) -> dict[str, Any]:
        return {"accepted": [name for name in item.payload["expansions"] if self._says(True, chance)]}

    def salience(self, item: Item, chance: random.Random) -> dict[str, Any]:
        """The gold's score, or 3; a wrong answer is one more or less."""
        scores = {}
        for name in item.payload["entities"]:
            right = round(self.truth.salience.get((item.procedure, name, item.payload.get("step")), 3))
            wrong = right + chance.choice([-1, 1]) if chance.random() < self.rates.flip else right
            scores[name] = min(5, max(0, wrong))
        return {"scores": scores}

    def judge(self, item: Item, chance: random.Random) -> dict[str, Any]:
        text = item.payload["procedure"]["steps"][item.payload["step"] - 1]
        changing = {
            (bare_name(one.entity), bare_name(one.attribute)): one for one in self.truth.changes.get(fold(text), ())
        }
        shown = [(bare_name(pair["entity"]), bare_name(pair["attribute"])) for pair in item.payload["pairs"]]
        missing = [one for pair, one in changing.items() if pair not in shown and chance.random() >= self.rates.miss]
        return {
            "verdicts": [
                self._one_of("right" if pair in changing else "no change", PAIR_VERDICTS, chance) for pair in shown
            ],
            "missing": [{"entity": one.entity, "attribute": one.attribute} for one in missing[:MAX_ADDED]],
        }

    def hallucinations(self, item: Item, chance: random.Random) -> dict[str, Any]:
        return {"hallucinated": self._says(not self._is_right(item, item.payload["change"]), chance)}

    def correct(self, item: Item, chance: random.Random) -> dict[str, Any]:
        draft = item.payload["changes"]
        blind = self._written(item, chance, MAX_ADDED) if item.payload["blind_first"] else None
        kept = [
            {**{name: value for name, value in one.items() if name != "position"}, "from": one["position"]}
            for one in draft
            if self._says(self._is_right(item, one), chance) and is_writable(_change(one))
        ]
        added = self._written(item, chance, MAX_ADDED, [same_words(one) for one in draft])[:MAX_ADDED]
        return {"changes": [*kept, *({**one, "from": None} for one in added)], "blind": blind}


def _change(value: Mapping[str, Any]) -> StateChange:
    return StateChange(**{name: one for name, one in value.items() if name != "position"})


_ANSWERS: Mapping[str, Callable[[ScriptedAnnotator, Item, random.Random], dict[str, Any]]] = {
    "select": ScriptedAnnotator.select,
    "author": ScriptedAnnotator.author,
    "audit": ScriptedAnnotator.audit,
    "vet": ScriptedAnnotator.vet,
    "clean-procedures": ScriptedAnnotator.clean_procedures,
    "clean-steps": ScriptedAnnotator.clean_steps,
    "clean-changes": ScriptedAnnotator.clean_changes,
    "entities": ScriptedAnnotator.clusters,
    "attributes": ScriptedAnnotator.clusters,
    "expansions": ScriptedAnnotator.expansions,
    "salience": ScriptedAnnotator.salience,
    "judge": ScriptedAnnotator.judge,
    "hallucinations": ScriptedAnnotator.hallucinations,
    "correct": ScriptedAnnotator.correct,
}
