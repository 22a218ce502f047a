"""How far a draft pulls the people who correct it: their answers after they saw it beside what they wrote before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from fluents.annotation.items import ItemAnswers
from fluents.annotation.paraphrase import change_clusters, overlap_f1
from fluents.annotation.writing import change_of


@dataclass(frozen=True)
class Anchoring:
    """Answers with a blind pass, compared with the draft; other words for the same thing count as the same."""

    answers: int
    blind_f1: float
    """Of what people wrote before they saw the draft, against the draft."""
    final_f1: float
    """Of what they handed in, against the draft."""
    adopted: float | None
    """Of the changes of the draft that a person had not written, the share that the person took over."""
    given_up: float | None
    """Of the changes that a person had written and the draft lacks, the share that the person dropped."""

    @property
    def moved(self) -> float | None:
        """How much of the way to the draft the answers went: 0 where it changed nothing, 1 where they became it."""
        way = 1 - self.blind_f1
        return (self.final_f1 - self.blind_f1) / way if way > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "moved": self.moved}


def anchoring(answers: Iterable[ItemAnswers]) -> Anchoring | None:
    """The anchoring of a correction stage; None where nobody wrote anything blind."""
    blind_f1 = final_f1 = 0.0
    count = 0
    offered = adopted = own = given_up = 0
    for one in answers:
        for answer in one.by_author.values():
            if answer["blind"] is None:
                continue
            values = (answer["blind"], answer["changes"], one.item.payload["changes"])
            changes = [change_of(value) for part in values for value in part]
            clusters = iter(change_clusters(changes))
            blind, final, draft = ({(value["step"], next(clusters)) for value in part} for part in values)
            count += 1
            blind_f1 += overlap_f1(blind, draft)
            final_f1 += overlap_f1(final, draft)
            offered += len(draft - blind)
            adopted += len((draft - blind) & final)
            own += len(blind - draft)
            given_up += len(blind - draft - final)
    if not count:
        return None
    return Anchoring(
        count,
        blind_f1 / count,
        final_f1 / count,
        adopted / offered if offered else None,
        given_up / own if own else None,
    )
