"""What people earned, and how long they took, computed from their decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fluents.annotation.design import Pay, ProjectDesign
from fluents.annotation.items import Decision, FormAnswer, Item, latest

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class PersonPay:
    """What one person did and earned in one currency."""

    author: str
    items: int
    changes: int
    """That the person wrote."""
    seconds: float | None
    """In all, for the decisions whose time is known; None where none is."""
    amount: float | None
    """None where no stage pays."""
    currency: str | None

    @property
    def per_hour(self) -> float | None:
        """What an hour earns; None where time or pay is not known."""
        return self.amount / self.seconds * SECONDS_PER_HOUR if self.amount is not None and self.seconds else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "per_hour": self.per_hour}


def pay_for(pay: Pay, answer: FormAnswer) -> float:
    """What one answer earns. The tiers count the changes of each step."""
    after = pay.per_change if pay.per_change_after is None else pay.per_change_after
    amount = pay.per_item
    for count in Counter(change["step"] for change in written_in(answer)).values():
        amount += pay.per_change * min(count, pay.first) + after * max(0, count - pay.first)
    return amount


def written_in(answer: FormAnswer) -> list[Mapping[str, Any]]:
    """The changes that the author of an answer wrote; those that a draft brought are not among them."""
    changes = [one for one in answer.get("changes", ()) if one.get("from") is None]
    return changes + [one for one in answer.get("missing", ()) if "step" in one]


def pay_of(design: ProjectDesign, items: Iterable[Item], decisions: Iterable[Decision]) -> list[PersonPay]:
    """What each person earned with the decisions that count; decisions that were undone or replaced earn nothing.

    Rulings and experts' checks have a price of their own, which is zero in most designs. The time of all decisions
    counts, undone or not: it was spent.
    """
    by_id = {item.id: item for item in items}
    made = [decision for decision in decisions if decision.item in by_id]
    seconds: dict[str, float] = {}
    for decision in made:
        if decision.seconds is not None:
            seconds[decision.author] = seconds.get(decision.author, 0.0) + decision.seconds
    counts: dict[str, Counter[str]] = {}
    amounts: dict[str, float] = {}
    for decision in latest(made):
        count = counts.setdefault(decision.author, Counter())
        count["items"] += 1
        is_ruling = decision.adjudicates or decision.checks
        count["changes"] += 0 if is_ruling else len(written_in(decision.answer))  # those of a ruling are the authors'
        pay = design.stage(by_id[decision.item].stage).pay
        if pay is not None:
            earned = pay.per_ruling if is_ruling else pay_for(pay, decision.answer)
            amounts[decision.author] = amounts.get(decision.author, 0.0) + earned
    currency = next((stage.pay.currency for stage in design.stages if stage.pay is not None), None)
    return [
        PersonPay(
            author,
            count["items"],
            count["changes"],
            seconds.get(author),
            round(amounts[author], 6) if author in amounts else None,
            currency,
        )
        for author, count in sorted(counts.items())
    ]
