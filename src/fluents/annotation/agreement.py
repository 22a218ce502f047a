"""How far the people who decided on a stage's items agree: in all, by person, by item, and modulo paraphrase."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from fluents.annotation.design import StageKind
from fluents.annotation.forms import check_answer, same_words
from fluents.annotation.history import HistoryDecision, HistoryItem, history_records
from fluents.annotation.items import Decision, Item, ItemAnswers, standing
from fluents.annotation.labels import WRITTEN, Label, labels, majority_answer, mode, yes_or_no
from fluents.annotation.paraphrase import change_clusters, overlap_f1
from fluents.annotation.writing import written_changes
from fluents.errors import InputError
from fluents.jsonl import read_lines
from fluents.records import StateChange

if TYPE_CHECKING:
    from fluents.evaluation import Evaluation
    from fluents.metrics.agreement import MeasurementLevel
    from fluents.scoring import Scope


@dataclass(frozen=True)
class PersonAgreement:
    """How often one person says what most of the others say."""

    author: str
    items: int
    units: int
    """Questions on which most of the others agree."""
    share: float | None
    f1: float | None = None
    """Of what this person wrote, modulo paraphrase, against each of the others."""


@dataclass(frozen=True)
class Agreement:
    """The share of questions on which all agree, and Krippendorff's alpha; None where nothing can be compared."""

    units: int = 0
    """Questions that at least two people answered."""
    full: float | None = None
    alpha: float | None = None


@dataclass(frozen=True)
class ParaphraseAgreement:
    """Agreement on what was written where other words for the same thing count as the same."""

    alpha: float | None
    """Over every change that anybody wrote and every step: whether a person has the change in the step. Without
    paraphrase, the alpha of these stages is computed in the same way."""
    f1: float | None
    """Of every two people, on average."""


@dataclass(frozen=True)
class ExpertCheck:
    """How often an expert says what most judges say; ties and rulings are left out."""

    items: int
    matching: int

    @property
    def share(self) -> float | None:
        return self.matching / self.items if self.items else None


@dataclass(frozen=True)
class StageAgreement:
    """How far people agree on the items of a stage."""

    level: str
    """What alpha takes answers for: "nominal", or "ordinal" for scores."""
    overall: Agreement
    by_person: Sequence[PersonAgreement] = ()
    by_item: Mapping[str, float] = field(default_factory=dict)
    """The share of the most frequent answer, for items with at least two answers."""
    by_scope: Mapping[str, Agreement] = field(default_factory=dict)
    """Of salience: to the goal ("global") and in a step ("local"), as `fluents eval agreement` has them."""
    paraphrase: ParaphraseAgreement | None = None
    """Where people write."""
    expert: ExpertCheck | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {**asdict(self.overall), "level": self.level}
        values["by_person"] = [asdict(one) for one in self.by_person]
        values["by_item"] = dict(self.by_item)
        values["by_scope"] = {name: asdict(one) for name, one in self.by_scope.items()}
        values["paraphrase"] = asdict(self.paraphrase) if self.paraphrase else None
        values["expert"] = {**asdict(self.expert), "share": self.expert.share} if self.expert else None
        return values


def stage_agreement(items: Sequence[Item], decisions: Iterable[Decision]) -> StageAgreement:
    """How far people agree on these items. Rulings of adjudicators are left out: nobody made them blind."""
    answered = [one for one in standing(items, decisions) if one.by_author or one.check]
    kind: StageKind = items[0].kind if items else "vet"
    level = "ordinal" if kind == "salience" else "nominal"
    units = {one.item.id: _units(one) for one in answered}
    found = [(one, question, by_author) for one in answered for question, by_author in units[one.item.id].items()]
    rows = [(one.item.procedure, list(by_author.values())) for one, _, by_author in found]
    overall = _agreement(rows, level)
    clustered: list[Clustered] = []
    if kind in WRITTEN:
        clustered = [_clustered(one, change_clusters) for one in answered]
        overall = replace(overall, alpha=_grid_alpha(answered, [_clustered(one, _same_words) for one in answered]))
    scopes: dict[str, list[tuple[str, list[Label]]]] = {}
    if kind == "salience":
        for (one, _, _), row in zip(found, rows, strict=True):
            scopes.setdefault(one.item.payload["scope"], []).append(row)
    return StageAgreement(
        level,
        overall,
        _by_person(answered, [by_author for _, _, by_author in found], clustered),
        {item: share for item, of_item in units.items() if (share := _item_share(of_item)) is not None},
        {scope: _agreement(of_scope, level) for scope, of_scope in scopes.items()},
        _paraphrase(answered, clustered) if kind in WRITTEN else None,
        _expert_check(answered),
    )


def history_agreement(
    path: str | Path,
    stage: int,
    *,
    raters: Sequence[str] = (),
    scope: Scope = "global",
    level: MeasurementLevel = "ordinal",
) -> Evaluation:
    """How far people agree on a stage of the project whose history this file is, with confidence intervals.

    `raters` are the annotators to compare, by default all. `scope` and `level` are for salience; other answers are
    names. Where people write changes, other words for the same change count as the same.
    """
    from fluents.evaluation import Evaluation
    from fluents.metrics.agreement import item_agreement
    from fluents.scoring.score import Signature

    items, decisions = _of_stage(path, stage)
    found = [one for one in standing(items, decisions) if one.by_author]
    known = dict.fromkeys(author for one in found for author in one.by_author)
    if unknown := [rater for rater in raters if rater not in known]:
        raise InputError(
            f"the annotator {unknown[0]!r:.80} answered no question of stage {stage}",
            fix=f"choose `raters` from: {', '.join(known)}" if known else "choose a stage that has answers",
        )
    chosen = [
        ItemAnswers(one.item, {name: said for name, said in one.by_author.items() if not raters or name in raters})
        for one in found
        if one.item.kind != "salience" or one.item.payload["scope"] == scope
    ]
    rows = [(one.item.procedure, list(said.values())) for one in chosen for said in _units(one).values()]
    kind = items[0].kind
    if kind in WRITTEN:
        rows = _grid(chosen, [_clustered(one, change_clusters) for one in chosen])
    used = level if kind == "salience" else "nominal"
    entries = {"scope": scope} if kind == "salience" else {}
    signature = Signature.of("agreement", "strict", level=used, stage=kind, raters="+".join(raters or known), **entries)
    score = replace(item_agreement(rows, level=used), signature=signature)
    return Evaluation(score, str(path), score.intervals() if score.n_procedures > 1 else None)


def _of_stage(path: str | Path, stage: int) -> tuple[list[Item], list[Decision]]:
    items: list[Item] = []
    decisions: list[Decision] = []
    with closing(read_lines(path)) as lines:
        for record in history_records(lines):
            if isinstance(record, HistoryItem) and record.item.stage == stage:
                items.append(record.item)
            elif isinstance(record, HistoryDecision):
                decisions.append(record.decision)
    if not items:
        raise InputError(
            f"this history contains no questions of stage {stage}",
            where=path,
            fix=f"choose an earlier stage, or open stage {stage} and then export the history again",
        )
    known = {item.id: item for item in items}
    made = [decision for decision in decisions if decision.item in known]
    for decision in made:
        if decision.answer:
            check_answer(known[decision.item], decision.answer)  # anybody can write a file
    return items, made


def _agreement(rows: Sequence[tuple[str, list[Label]]], level: str) -> Agreement:
    from fluents.metrics.agreement import item_agreement

    try:
        score = item_agreement(rows, level="ordinal" if level == "ordinal" else "nominal")
    except InputError:  # nothing was answered by two
        return Agreement()
    alpha = score["alpha"][level]
    return Agreement(
        sum(len(labels) > 1 for _, labels in rows),
        score["agreement"]["share"],
        alpha if math.isfinite(alpha) else None,
    )


# What was asked, and what was said


def _units(one: ItemAnswers) -> dict[str, dict[str, Label]]:
    """Every question of an item with everybody's answer to it."""
    found: dict[str, dict[str, Label]] = {}
    if one.item.kind in WRITTEN:
        written = written_changes([_unruled(one)], _written_field(one.item.kind))
        for place in written:
            key = repr(same_words(place.change.model_dump()))
            found.setdefault(key, dict.fromkeys(one.by_author, "no"))[place.author] = "yes"
        return found
    for author, answer in one.by_author.items():
        for question, label in labels(one.item, answer).items():
            found.setdefault(question, {})[author] = label
    return found


def _unruled(one: ItemAnswers) -> ItemAnswers:
    return ItemAnswers(one.item, one.by_author)


def _written_field(kind: StageKind) -> str:
    return "missing" if kind == "audit" else "changes"


# By item and by person


def _item_share(units: Mapping[str, Mapping[str, Label]]) -> float | None:
    shares = [max(Counter(said.values()).values()) / len(said) for said in units.values() if len(said) > 1]
    return fmean(shares) if shares else None


def _by_person(
    answered: Sequence[ItemAnswers], units: Sequence[Mapping[str, Label]], clustered: Sequence[Clustered]
) -> list[PersonAgreement]:
    items = Counter(author for one in answered for author in one.by_author)
    agreed: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for said in units:
        for author, label in said.items():
            others = Counter(other for name, other in said.items() if name != author)
            if (most := mode(others)) is not None:
                compared[author] += 1
                agreed[author] += label == most
    f1 = _f1_by_person(clustered)
    return [
        PersonAgreement(
            author,
            count,
            compared[author],
            agreed[author] / compared[author] if compared[author] else None,
            fmean(f1[author]) if author in f1 else None,
        )
        for author, count in sorted(items.items())
    ]


# Modulo paraphrase


Clustered: TypeAlias = dict[str, set[tuple[int, int]]]
"""(step, cluster) of all that each person wrote about an item."""


def _clustered(one: ItemAnswers, clusters: Callable[[Sequence[StateChange]], list[int]]) -> Clustered:
    """One who wrote nothing is there too."""
    written = written_changes([_unruled(one)], _written_field(one.item.kind))
    found: Clustered = {author: set() for author in one.by_author}
    for place, cluster in zip(written, clusters([place.change for place in written]), strict=True):
        found[place.author].add((place.change.step, cluster))
    return found


def _same_words(changes: Sequence[StateChange]) -> list[int]:
    """Clusters of changes in the same words."""
    numbers: dict[tuple[str, ...], int] = {}
    return [numbers.setdefault(same_words(one.model_dump())[1:], len(numbers)) for one in changes]


def _paraphrase(answered: Sequence[ItemAnswers], clustered: Sequence[Clustered]) -> ParaphraseAgreement:
    f1 = [overlap_f1(these, those) for sets in clustered for these, those in combinations(sets.values(), 2)]
    return ParaphraseAgreement(_grid_alpha(answered, clustered), fmean(f1) if f1 else None)


def _grid_alpha(answered: Sequence[ItemAnswers], clustered: Sequence[Clustered]) -> float | None:
    return _agreement(_grid(answered, clustered), "nominal").alpha


def _grid(answered: Sequence[ItemAnswers], clustered: Sequence[Clustered]) -> list[tuple[str, list[Label]]]:
    """For every change that anybody wrote and every step of the procedure: who has it there.

    With the steps in which somebody has it alone, nobody would ever agree that there is no change.
    """
    rows: list[tuple[str, list[Label]]] = []
    for one, sets in zip(answered, clustered, strict=True):
        clusters = {cluster for found in sets.values() for _, cluster in found}
        for step in range(1, len(one.item.payload["procedure"]["steps"]) + 1):
            for cluster in clusters:
                said = [yes_or_no((step, cluster) in found) for found in sets.values()]
                rows.append((one.item.procedure, list(said)))
    return rows


def _f1_by_person(clustered: Sequence[Clustered]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for sets in clustered:
        for (these, mine), (those, theirs) in combinations(sets.items(), 2):
            for author in (these, those):
                found.setdefault(author, []).append(overlap_f1(mine, theirs))
    return found


# The expert's answer


def _expert_check(answered: Sequence[ItemAnswers]) -> ExpertCheck | None:
    checked = [(one, majority_answer(one)) for one in answered if one.check is not None]
    compared = [(one, most) for one, most in checked if most is not None and one.check is not None]
    if not compared:
        return None
    matching = sum(labels(one.item, most) == labels(one.item, one.check or {}) for one, most in compared)
    return ExpertCheck(len(compared), matching)
