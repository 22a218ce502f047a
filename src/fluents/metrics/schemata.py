"""OpenPI2.0's schemata: which attributes of which entities change, in the whole procedure and in each step.

A predicted (entity, attribute) is right if both are names of one gold pair: inside the product of an entity cluster and
one of its attribute clusters. Rows "+exp" let the paraphrases added to the clusters count as names.

strict: gold pairs are those of the changes; precision is over distinct predicted pairs, recall over distinct gold ones.

compat is the released script. It differs in that
- over the whole procedure, gold is every attribute of every cluster, changed or not; one is found again in every step
  that names it; a prediction is right anew as long as its gold pair's own names were not predicted before;
- in a step, gold pairs are counted once for every predicted entity, which divides recall by their number;
- gold looks for predicted names as they were written, with or without an article or a capital.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from fluents.records import Trace
from fluents.scoring import Mode
from fluents.scoring.alignment import ProcedurePairs
from fluents.scoring.gold_vocabulary import (
    GoldVocabulary,
    Pair,
    clusters_of,
    has_expansions,
    normalised,
    without_article,
)
from fluents.scoring.score import Figures, Ratio, Score, Signature, Statistics, StepRow, micro

SCOPES = ("global", "local")
PLAIN, EXPANDED = "", " +exp"
BAR = " | "
"""Stands between an entity and the attribute it lacks in the text of a reject."""


class Counts(NamedTuple):
    right: int = 0
    """Predictions that match; `found`: gold that is matched."""
    predicted: int = 0
    found: int = 0
    gold: int = 0


Said: TypeAlias = Mapping[int, Mapping[str, list[str]]]
"""Step → predicted entity → its predicted attributes; an entity may have none."""

Count: TypeAlias = Callable[[Trace, Said, bool], tuple[Counts, dict[int, Counts]]]
"""From gold, predictions, and whether expansions are names, to the counts of the whole and of each step."""


def schemata(gold: Iterable[Trace], pred: Iterable[Trace], *, mode: Mode = "compat") -> Score:
    """Score predicted (entity, attribute) pairs: rows "global", "local", and both "+exp" if the gold has expansions."""
    pairs = ProcedurePairs(gold, pred, mode)
    variants = [PLAIN]
    statistics = Statistics.collect(_COLUMNS, _rows(pairs, _published if mode == "compat" else _strict, variants))
    signature = Signature.of("schemata", mode, avg="micro", data=pairs.data_hash)
    return Score("schemata", statistics, _figures(variants), signature, tuple(pairs.warnings))


_COLUMNS = tuple(
    f"{scope}{variant}.{part}" for variant in (PLAIN, EXPANDED) for scope in SCOPES for part in Counts._fields
)


def _figures(variants: Iterable[str]) -> Figures:
    return {
        row: micro(Ratio(f"{row}.right", f"{row}.predicted"), Ratio(f"{row}.found", f"{row}.gold"))
        for row in (f"{scope}{variant}" for scope in SCOPES for variant in variants)
    }


def _rows(pairs: ProcedurePairs[Trace], count: Count, variants: list[str]) -> Iterator[StepRow]:
    """One row for the whole procedure, and one for each step. Adds to the variants what turns up in the gold."""
    nothing = Counts()
    for gold, pred in pairs:
        said = _said(pred)
        whole, steps = count(gold, said, False)
        whole_expanded, steps_expanded = count(gold, said, True)
        if EXPANDED not in variants and has_expansions(gold):
            variants.append(EXPANDED)
        yield gold.id, 0, (*whole, *nothing, *whole_expanded, *nothing)
        for step in gold.covered_steps:
            yield gold.id, step, (*nothing, *steps[step], *nothing, *steps_expanded[step])


def _said(pred: Trace) -> Said:
    said: dict[int, dict[str, list[str]]] = {}
    for change in pred.changes:
        said.setdefault(change.step, {}).setdefault(change.entity, []).append(change.attribute)
    for reject in pred.rejects:
        entity, bar, attribute = reject.text.partition(BAR)
        if reject.step is not None and bar and entity.strip() and not attribute.strip():
            said.setdefault(reject.step, {}).setdefault(entity, [])
    return said


def _strict(gold: Trace, said: Said, expanded: bool) -> tuple[Counts, dict[int, Counts]]:
    vocabulary = GoldVocabulary(clusters_of(gold), expanded=expanded, entity_key=normalised, attribute_key=normalised)
    meant: dict[int, set[Pair]] = {}
    for change in gold.changes:
        meant.setdefault(change.step, set()).add((change.entity, change.attribute))
    pairs = {
        step: {(normalised(e), normalised(a)) for e, attributes in said.get(step, {}).items() for a in attributes}
        for step in gold.covered_steps
    }
    whole = _matched(set().union(*pairs.values()), set().union(*meant.values()), vocabulary)
    return whole, {step: _matched(pairs[step], meant.get(step, set()), vocabulary) for step in pairs}


def _matched(said: set[Pair], meant: set[Pair], vocabulary: GoldVocabulary) -> Counts:
    matches = [meant.intersection(vocabulary.find(*pair)) for pair in said]
    return Counts(sum(map(bool, matches)), len(said), len(set().union(*matches)), len(meant))


def _published(gold: Trace, said: Said, expanded: bool) -> tuple[Counts, dict[int, Counts]]:
    """The released script's counts; see the top of this file for what is odd about them."""
    clusters = clusters_of(gold)
    plain = GoldVocabulary(clusters, expanded=expanded, entity_key=without_article, attribute_key=without_article)
    exact_attributes = GoldVocabulary(clusters, expanded=expanded, entity_key=without_article, attribute_key=str)
    meant: dict[int, Counter[Pair]] = {step: Counter() for step in gold.covered_steps}
    for change in gold.changes:
        meant.setdefault(change.step, Counter())[change.entity, change.attribute] += 1
    seen: set[Pair] = set()
    right = predicted = found = 0
    steps: dict[int, Counts] = {}
    for step in gold.covered_steps:
        entities = said.get(step, {})
        pairs = [(entity, attribute) for entity, attributes in entities.items() for attribute in attributes]
        right_here = 0
        for entity, attribute in pairs:
            pair = without_article(entity), without_article(attribute)
            predicted += pair not in seen
            if matches := plain.find(*pair):
                right_here += 1
                right += (without_article(matches[0][0]), without_article(matches[0][1])) not in seen
            seen.add(pair)
        for entity, attributes in entities.items():
            found += len({match for attribute in attributes for match in exact_attributes.find(entity, attribute)})
        found_here = sum(meant[step][match] for pair in pairs for match in plain.find(*pair))
        steps[step] = Counts(right_here, len(pairs), found_here, len(entities) * meant[step].total())
    gold_pairs = sum(len(cluster.attributes) for cluster in clusters)
    return Counts(right, predicted, found, gold_pairs), steps
