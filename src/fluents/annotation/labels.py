"""The questions in an item that is judged, what an answer says to each, and what most answers say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from fluents.annotation.design import StageKind
from fluents.annotation.items import FormAnswer, Item, ItemAnswers
from fluents.annotation.judging import missing_pairs
from fluents.annotation.naming import most_agreed

Label: TypeAlias = str | float
Labels: TypeAlias = dict[str, Label]
"""What was asked → what somebody said."""


WRITTEN: tuple[StageKind, ...] = ("author", "correct", "audit")
"""Stages in which people write changes."""


def labels(item: Item, answer: FormAnswer) -> Labels:
    """The questions of an item that is judged, and what one answer says to each."""
    return dict(_LABELS[item.kind](item, answer))


def _one_field(name: str) -> Callable[[Item, FormAnswer], Iterator[tuple[str, Label]]]:
    def read(_: Item, answer: FormAnswer) -> Iterator[tuple[str, Label]]:
        value = answer[name]
        yield "", value if isinstance(value, str) else yes_or_no(value)

    return read


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _of_steps(_: Item, answer: FormAnswer) -> Iterator[tuple[str, Label]]:
    return ((f"step {step}", yes_or_no(valid)) for step, valid in enumerate(answer["valid"], start=1))


def _of_pairs(_: Item, answer: FormAnswer) -> Iterator[tuple[str, Label]]:
    return ((str(number), verdict) for number, verdict in enumerate(answer["verdicts"]))


def _of_scores(_: Item, answer: FormAnswer) -> Iterator[tuple[str, Label]]:
    return ((name, float(score)) for name, score in answer["scores"].items())


def _of_expansions(item: Item, answer: FormAnswer) -> Iterator[tuple[str, Label]]:
    return ((name, yes_or_no(name in answer["accepted"])) for name in item.payload["expansions"])


def _of_clusters(item: Item, answer: FormAnswer) -> Iterator[tuple[str, Label]]:
    """For every two names whether they mean the same."""
    home = {name: number for number, names in enumerate(answer["clusters"]) for name in names}
    for one, other in combinations([entry["name"] for entry in item.payload["names"]], 2):
        yield repr((one, other)), "same" if home[one] == home[other] else "different"


_LABELS: Mapping[StageKind, Callable[[Item, FormAnswer], Iterator[tuple[str, Label]]]] = {
    "select": _one_field("keep"),
    "vet": _one_field("valid"),
    "clean-procedures": _one_field("procedure"),
    "clean-steps": _of_steps,
    "clean-changes": _one_field("verdict"),
    "entities": _of_clusters,
    "attributes": _of_clusters,
    "expansions": _of_expansions,
    "salience": _of_scores,
    "judge": _of_pairs,
    "hallucinations": _one_field("hallucinated"),
}


def mode(counts: Counter[Label]) -> Label | None:
    """The most frequent label, None where several are."""
    ranked = counts.most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def majority_answer(one: ItemAnswers) -> FormAnswer | None:
    """The answer that most people's answers make together; None where there is none, or where people write.

    Of several clusterings it is the one most like the others, of scores the median (the lower of two).
    """
    answers = list(one.by_author.values())
    if not answers or one.item.kind in WRITTEN:
        return None
    if one.item.kind in ("entities", "attributes"):
        return {"clusters": most_agreed([answer["clusters"] for answer in answers])}
    if one.item.kind == "salience":
        scores = {name: sorted(answer["scores"][name] for answer in answers) for name in answers[0]["scores"]}
        return {"scores": {name: values[(len(values) - 1) // 2] for name, values in scores.items()}}
    said = [labels(one.item, answer) for answer in answers]
    most: Labels = {}
    for question in said[0]:
        common = mode(Counter(one[question] for one in said))
        if common is None:
            return None
        most[question] = common
    return _answer_of(one, most, answers)


def _answer_of(one: ItemAnswers, most: Labels, answers: Sequence[FormAnswer]) -> FormAnswer:
    item = one.item
    if item.kind == "clean-steps":
        return {"valid": [label == "yes" for label in most.values()]}
    if item.kind == "expansions":
        return {"accepted": [name for name, label in most.items() if label == "yes"]}
    if item.kind == "judge":
        return {"verdicts": list(most.values()), "missing": missing_pairs(one)}
    return next(answer for answer in answers if labels(item, answer) == most)
