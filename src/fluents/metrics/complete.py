"""OpenPI2.0's complete sentences: entity, attribute and both states, in one answer.

compat is the released script: an answer is right if it is part of any sentence of a gold unit, and that unit is found;
precision is over answers, recall over units. A unit is one entity in one step: each of its changes, in every wording of
entity and attribute and in the first of the states. An empty answer is part of every sentence, and so right.

strict: a unit is one change, and an answer is right if its four fields, normalised, are wordings of that change's
(all alternatives of the states count). Answers are counted once each; empty ones, and "no change", not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from fluents.records import Reject, StateChange, Trace
from fluents.scoring import Mode
from fluents.scoring.alignment import ProcedurePairs, StepAnswers, steps_of
from fluents.scoring.gold_vocabulary import GoldVocabulary, Pair, clusters_of, has_expansions, normalised, pair_names
from fluents.scoring.score import Figures, Ratio, Score, Signature, Statistics, StepRow, micro

PLAIN, EXPANDED = "sentences", "sentences +exp"
PARTS = ("right", "predicted", "found", "gold")

Counts: TypeAlias = tuple[int, int, int, int]
"""In the order of PARTS: answers that match, answers; gold that is matched, gold."""


def complete(gold: Iterable[Trace], pred: Iterable[Trace], *, mode: Mode = "compat") -> Score:
    """Score whole answers: a row for the gold's own wordings, and one with its expansions if it has any."""
    pairs = ProcedurePairs(gold, pred, mode)
    variants = [PLAIN]
    columns = [f"{variant}.{part}" for variant in (PLAIN, EXPANDED) for part in PARTS]
    statistics = Statistics.collect(columns, _rows(pairs, mode, variants))
    figures: Figures = {
        name: micro(Ratio(f"{name}.right", f"{name}.predicted"), Ratio(f"{name}.found", f"{name}.gold"))
        for name in variants
    }
    signature = Signature.of("complete", mode, avg="micro", data=pairs.data_hash)
    return Score("complete", statistics, figures, signature, tuple(pairs.warnings))


def _rows(pairs: ProcedurePairs[Trace], mode: Mode, variants: list[str]) -> Iterator[StepRow]:
    """One row a step. Adds to the variants what turns up in the gold."""
    count = _published if mode == "compat" else _strict
    for gold, pred in pairs:
        expanded = has_expansions(gold)
        if expanded and EXPANDED not in variants:
            variants.append(EXPANDED)
        plain_counts = count(gold, pred, False)
        expanded_counts = count(gold, pred, True) if expanded else plain_counts
        for step in gold.covered_steps:
            yield gold.id, step, (*plain_counts[step], *expanded_counts[step])


def gold_units(trace: Trace, *, expanded: bool = False) -> dict[int, list[list[str]]]:
    """The released gold's units: for every step, the sentences of each entity that changes in it."""
    names = pair_names(trace, expanded=expanded)
    units: dict[int, dict[str, list[str]]] = {step: {} for step in trace.covered_steps}
    for change in trace.changes:
        units.setdefault(change.step, {}).setdefault(change.entity, []).extend(
            f"{attribute} of {entity} was {change.before} before and {change.after} after"
            for entity, attribute in names[change.entity, change.attribute]
        )
    return {step: list(by_entity.values()) for step, by_entity in units.items()}


def _published(gold: Trace, pred: Trace, expanded: bool) -> dict[int, Counts]:
    answers = {step.step: step.sentences for step in steps_of([pred])}
    counts = {}
    for step, units in gold_units(gold, expanded=expanded).items():
        said = answers.get(step, ())
        units_of_answers = ([i for i, unit in enumerate(units) if any(answer in s for s in unit)] for answer in said)
        first_units = [matching[0] for matching in units_of_answers if matching]
        counts[step] = (len(first_units), len(said), len(set(first_units)), len(units))
    return counts


Fields: TypeAlias = tuple[str, str, str, str]


def _strict(gold: Trace, pred: Trace, expanded: bool) -> dict[int, Counts]:
    vocabulary = GoldVocabulary(clusters_of(gold), expanded=expanded, entity_key=normalised, attribute_key=normalised)
    predicted = {step.step: _distinct(step) for step in steps_of([pred])}
    counts = {}
    for step in steps_of([gold]):
        units = _Units(step, vocabulary)
        said = predicted.get(step.step, set())
        matches = [units.matched_by(answer) for answer in said]
        counts[step.step] = (sum(map(bool, matches)), len(said), len(set().union(*matches)), units.count)
    return counts


def _distinct(step: StepAnswers) -> set[Fields | str]:
    """Answers by their normalised fields, or as text where they have none. Blanks and "no change" are none."""
    found: set[Fields | str] = set()
    for parsed in step.parsed():
        if isinstance(parsed, StateChange):
            entity, attribute, before, after = parsed.entity, parsed.attribute, parsed.before, parsed.after
            found.add((normalised(entity), normalised(attribute), normalised(before), normalised(after)))
        elif isinstance(parsed, Reject) and parsed.text.strip():
            found.add(normalised(parsed.text))
    return found


class _Units:
    """The distinct changes of a gold step, and which of them an answer matches."""

    def __init__(self, step: StepAnswers, vocabulary: GoldVocabulary) -> None:
        self._vocabulary = vocabulary
        self._texts = {answer for answer in _distinct(step) if isinstance(answer, str)}
        changes = {
            (c.entity, c.attribute, normalised(c.before), normalised(c.after)): c for c in step.changes
        }  # a change is one unit however its wordings are capitalised
        self._changes: dict[Pair, list[StateChange]] = {}
        for change in changes.values():
            self._changes.setdefault((change.entity, change.attribute), []).append(change)
        self.count = len(changes) + len(self._texts)

    def matched_by(self, answer: Fields | str) -> set[Fields | str]:
        if isinstance(answer, str):
            return {answer} if answer in self._texts else set()
        entity, attribute, before, after = answer
        return {
            (*pair, normalised(change.before), normalised(change.after))
            for pair in self._vocabulary.find(entity, attribute)
            for change in self._changes.get(pair, ())
            if before in map(normalised, (change.before, *change.alternatives.before))
            and after in map(normalised, (change.after, *change.alternatives.after))
        }
