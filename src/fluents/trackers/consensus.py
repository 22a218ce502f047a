"""Consensus over samples: the set of changes that would score best if each sampled set in turn were the truth.

Sampled answers vary far more than they err: what many of them say, in whatever words, is likely so. This is minimum
Bayes risk over sets. Candidates are the changes of all samples; one after the other is added, each time the one that
raises the expected F1 most, until none does.

With an embedder, changes that mean the same count as one in that score, as OpenPI-C's metric counts them: then other
wordings of what is already said cost nothing, and are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from fluents.records import StateChange
from fluents.text.matchers import Answer, named
from fluents.text.names import plain_name

if TYPE_CHECKING:
    from fluents.text.embedders import Embedder

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Consensus:
    """How the expected score is reckoned, and when to stop."""

    exact: float = 1.0
    """Weights of the three matchers in the expected score."""
    bleu: float = 1.0
    rouge: float = 1.0
    most: int = 12
    """At most so many changes a step."""
    distinct: bool = False
    """For readers: one change only for each attribute of an entity, and each pair of its states under one attribute
    only. The published metrics reward saying the same in other words."""
    paired: bool = False
    """For readers: each change of a sample is met by one of the chosen only, as the metric `readers` counts them, so
    that another wording of what is chosen already costs more than it brings."""
    candidates: int = 80
    """Only the most supported candidates are considered."""
    no_change: float = 1.0
    """More than 1 makes "nothing changes" dearer: it must beat the best set by this factor."""
    recall: float = 1.0
    """How many times as much recall counts as precision in the expected score: the beta of an F measure."""
    grouped: bool = False
    """For the cluster metric: changes that mean the same count as one, so that each is said in many wordings."""
    one_wording: bool = False
    """Of changes that mean the same, only one is chosen. For `grouped` settings."""

    @property
    def weights(self) -> dict[str, float]:
        given = {"exact": self.exact, "bleu": self.bleu, "rouge": self.rouge}
        return {name: weight for name, weight in given.items() if weight}


def consensus(
    samples: Sequence[Sequence[StateChange]], settings: Consensus, embedder: Embedder | None = None
) -> list[StateChange]:
    """The changes of one step that the samples agree on, best first, each with its support.

    Support is the share of samples that hold the change, other wordings counted by their likeness. A single sample
    supports nothing but itself: its changes have none. The embedder is for `grouped` settings.
    """
    pool = Pool(samples, settings, embedder)
    chosen = pool.choose()
    if len(samples) == 1:
        return [pool.changes[index] for index in chosen]
    return [pool.changes[index].replace(support=round(float(pool.support[index]), 3)) for index in chosen]


class Pool:
    """All samples' distinct changes, how alike they are, and which sample holds which."""

    def __init__(
        self, samples: Sequence[Sequence[StateChange]], settings: Consensus, embedder: Embedder | None = None
    ) -> None:
        self.settings = settings
        if settings.grouped and embedder is None:
            raise ValueError("a grouped consensus needs an embedder, to find changes with the same meaning")
        self.embedder = embedder if settings.grouped else None
        first: dict[tuple[str, ...], int] = {}
        self.changes: list[StateChange] = []
        rows: list[list[int]] = []
        for sample in samples:
            places = []
            for change in sample:
                key = tuple(f.lower() for f in (change.entity, change.attribute, change.before, change.after))
                if key not in first:
                    first[key] = len(self.changes)
                    self.changes.append(change)
                places.append(first[key])
            rows.append(places)
        self.empty_share = sum(not row for row in rows) / len(rows) if rows else 1.0
        self.rows = [row for row in rows if row]
        self.holds = np.zeros((len(self.rows), len(self.changes)))
        for row, places in enumerate(self.rows):
            self.holds[row, places] = 1
        self.sizes = self.holds.sum(axis=1)
        self.alike = self._similarities()
        self.met = {name: self._met(matrix) for name, matrix in self.alike.items()}
        self.support = self.met["bleu"].mean(axis=1) * (1 - self.empty_share) if self.rows else np.zeros(0)
        order = np.argsort(-self.support, kind="stable")
        self.considered = [int(index) for index in order[: settings.candidates]]
        self.same = self._means_the_same()
        self.paired: Floats = np.sum([weight * self.alike[name] for name, weight in settings.weights.items()], axis=0)

    def _similarities(self) -> dict[str, Floats]:
        """Matcher → how well each change (row) would meet each other (column)."""
        answers = [Answer.of_sentence(change) for change in self.changes]
        found = {}
        for name, match in named([*self.settings.weights, "bleu"]).items():
            matrix = np.eye(len(answers))
            for row, said in enumerate(answers):
                for column, meant in enumerate(answers):
                    if said.unigrams & meant.unigrams and row != column:
                        matrix[row, column] = match(meant, said)
            found[name] = matrix
        return found

    def _met(self, alike: Floats) -> Floats:
        """How well each sample (column) meets each change (row)."""
        return np.stack([alike[:, row].max(axis=1) for row in self.rows], axis=1) if self.rows else np.zeros((0, 0))

    def choose(self) -> list[int]:
        """Indices of the chosen changes, in the order in which they were added."""
        chosen, reached = self._chosen(self._expected_paired if self.settings.paired else self._expected)
        # With no change predicted, every empty sample would be met in full and every other not at all.
        nothing = self.empty_share * sum(self.settings.weights.values())
        return [] if nothing > reached * self.settings.no_change else chosen

    def _chosen(self, expected: Callable[[list[int], list[int]], Floats]) -> tuple[list[int], float]:
        """Changes added one by one, the best first, while the score `expected` of them rises; and that score."""
        chosen: list[int] = []
        reached = 0.0
        while len(chosen) < self.settings.most:
            left = [index for index in self.considered if index not in chosen and self._is_new(index, chosen)]
            if not left:
                break
            scores = expected(chosen, left)
            best = int(np.argmax(scores))
            if scores[best] <= reached:
                break
            reached = float(scores[best])
            chosen.append(left[best])
        return chosen, reached

    def _expected_paired(self, chosen: list[int], left: list[int]) -> Floats:
        """The score with each of those left, chosen changes and those of each sample matched one to one."""
        square = self.settings.recall**2
        met = np.array([[_matched(self.paired[np.ix_([*chosen, one], row)]) for row in self.rows] for one in left])
        # Of P = met / chosen and R = met / size.
        scores = (1 + square) * met / (len(chosen) + 1 + square * self.sizes)
        found: Floats = scores.mean(axis=1) * (1 - self.empty_share)
        return found

    def _means_the_same(self) -> NDArray[np.bool_]:
        """Which of the considered changes mean the same; without an embedder none does."""
        same = np.zeros((len(self.changes), len(self.changes)), dtype=bool)
        if self.embedder is not None and self.considered:
            vectors = self.embedder([self.changes[index].templated for index in self.considered])
            same[np.ix_(self.considered, self.considered)] = vectors @ vectors.T > self.embedder.threshold
        return same

    def _group(self, index: int, groups: list[list[int]]) -> int:
        """The first group all of whose members mean the same as a change: OpenPI-C's metric groups so. As many as there
        are groups if there is none."""
        found = (number for number, group in enumerate(groups) if self.same[index, group].all())
        return next(found, len(groups))

    def _grouped(self, chosen: list[int]) -> list[list[int]]:
        groups: list[list[int]] = []
        for index in chosen:
            number = self._group(index, groups)
            if number == len(groups):
                groups.append([])
            groups[number].append(index)
        return groups

    def _is_new(self, index: int, chosen: list[int]) -> bool:
        """Whether neither the meaning, nor the entity's attribute, nor its pair of states is chosen already, where that
        matters."""
        if self.settings.one_wording and self.same[index, chosen].any():
            return False
        if not self.settings.distinct:
            return True
        mine = self._says(index)
        return all(one != other for i in chosen for one, other in zip(mine, self._says(i), strict=True))

    def _says(self, index: int) -> tuple[tuple[str, str], tuple[str, str, str]]:
        change = self.changes[index]
        entity = plain_name(change.entity)
        return (entity, plain_name(change.attribute)), (entity, plain_name(change.before), plain_name(change.after))

    def _expected(self, chosen: list[int], left: list[int]) -> Floats:
        """The expected score of the chosen set with each of the candidates left added to it."""
        groups = self._grouped(chosen)
        joined = [self._group(index, groups) for index in left]
        total = np.zeros(len(left))
        for name, weight in self.settings.weights.items():
            precision = self._precision(self.met[name], groups, joined, left)
            recall = self._recall(self.alike[name], chosen, left)
            total += weight * self._f_measure(precision, recall).mean(axis=1)
        return total * (1 - self.empty_share)

    def _precision(self, met: Floats, groups: list[list[int]], joined: list[int], left: list[int]) -> Floats:
        """How well each sample (columns) meets the chosen groups, of each its best wording, once a candidate (rows) has
        joined its group."""
        # One row more than there are groups: where a candidate begins one, nothing has been met before.
        best = np.stack([*(met[group].max(axis=0) for group in groups), np.zeros(met.shape[1])])
        begins = np.array([number == len(groups) for number in joined])[:, None]
        precision: Floats = (best.sum(axis=0) + np.maximum(met[left] - best[joined], 0)) / (len(groups) + begins)
        return precision

    def _recall(self, alike: Floats, chosen: list[int], left: list[int]) -> Floats:
        """How well the chosen set and a candidate (rows) meet each sample (columns)."""
        so_far = alike[chosen].max(axis=0) if chosen else np.zeros(alike.shape[1])
        recall: Floats = np.maximum(alike[left], so_far) @ self.holds.T / self.sizes
        return recall

    def _f_measure(self, precision: Floats, recall: Floats) -> Floats:
        square = self.settings.recall**2
        below = square * precision + recall
        product = (1 + square) * precision * recall
        measure: Floats = np.divide(product, below, out=np.zeros_like(recall), where=below > 0)
        return measure


def _matched(table: Floats) -> float:
    """The most that rows and columns can add up to, matched one to one."""
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum())
