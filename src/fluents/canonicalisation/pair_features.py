"""Features of two names that tell whether they mean one thing: each is a square matrix over all names, from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fluents.canonicalisation.name_facts import NameGroup
from fluents.text.embedders import Embedder, Vectors, normalised
from fluents.text.names import name_parts

Matrix: TypeAlias = NDArray[np.float32]


class PairFeatures:
    """The features of every pair of these names, each computed when first used."""

    def __init__(self, names: Sequence[NameGroup], embedder: Embedder) -> None:
        self.names = names
        self._embedder = embedder
        self._parts = [name_parts(one.name) for one in names]

    def of(self, kind: str) -> Matrix:
        """One feature, of every name with every name."""
        return KINDS[kind](self)

    @cached_property
    def words(self) -> sparse.csr_matrix:
        return incidence([set(parts.words) for parts in self._parts])

    @cached_property
    def heads(self) -> sparse.csr_matrix:
        return incidence([{parts.head} - {""} for parts in self._parts])

    @cached_property
    def letters(self) -> sparse.csr_matrix:
        """Rows of length 1 over letter triples, white space left out: "glove box" is "glovebox"."""
        return _unit_rows(incidence([_triples("".join(parts.words)) for parts in self._parts]))

    @cached_property
    def meanings(self) -> Vectors:
        return self._embedder([" ".join(parts.words) for parts in self._parts])

    @cached_property
    def states(self) -> Vectors:
        """The mean meaning of the states a name's changes lead from, beside that of those they lead to."""
        texts = sorted({state for one in self.names for fact in one.facts for state in (fact.before, fact.after)})
        place = {text: row for row, text in enumerate(texts)}
        vectors = self._embedder(texts) if texts else np.zeros((1, 1), dtype=np.float32)
        sides = np.zeros((len(self.names), 2 * vectors.shape[1]), dtype=np.float32)
        for row, one in zip(sides, self.names, strict=True):
            if one.facts:
                ordered = sorted(one.facts)  # sums of floats depend on the order, and a set has none
                before = vectors[[place[fact.before] for fact in ordered]].mean(axis=0)
                after = vectors[[place[fact.after] for fact in ordered]].mean(axis=0)
                row[:] = np.concatenate([before, after])
        return normalised(sides)

    @cached_property
    def facts(self) -> sparse.csr_matrix:
        return incidence([one.facts for one in self.names])

    @cached_property
    def steps(self) -> sparse.csr_matrix:
        return incidence([{fact.step for fact in one.facts} for one in self.names])


def incidence(sets: Sequence[Iterable[Hashable]]) -> sparse.csr_matrix:
    """Which row has which item: a matrix of ones."""
    column: dict[Hashable, int] = {}
    indices = [[column.setdefault(item, len(column)) for item in items] for items in sets]
    starts = np.cumsum([0, *map(len, indices)])
    flat = np.fromiter(chain.from_iterable(indices), dtype=np.int64)
    ones = np.ones(len(flat), dtype=np.float32)
    return sparse.csr_matrix((ones, flat, starts), shape=(len(sets), max(1, len(column))))


def _unit_rows(ones: sparse.csr_matrix) -> sparse.csr_matrix:
    lengths = np.sqrt(np.maximum(_sizes(ones), 1))
    return sparse.diags(1 / lengths).dot(ones).tocsr().astype(np.float32)


def _triples(text: str) -> set[str]:
    padded = f"^{text}$"
    return {padded[start : start + 3] for start in range(len(padded) - 2)} if text else set()


def _sizes(ones: sparse.csr_matrix) -> Matrix:
    return _numbers(ones.sum(axis=1)).ravel()


def _shared(ones: sparse.csr_matrix) -> Matrix:
    """How many items every two rows have in common."""
    return _numbers((ones @ ones.T).toarray())


def _alike(vectors: Vectors) -> Matrix:
    """The cosine of every two rows, negative ones as 0."""
    return _numbers(np.maximum(vectors @ vectors.T, 0))


def _numbers(values: Any) -> Matrix:
    return np.asarray(values, dtype=np.float32)


def _contained(evidence: PairFeatures) -> Matrix:
    """1 where all words of one name are in the other."""
    common, sizes = _shared(evidence.words), _sizes(evidence.words)
    least = np.minimum(sizes[:, None], sizes[None, :])
    return _numbers((common == least) & (least > 0))


def _steps(evidence: PairFeatures) -> Matrix:
    """They change in the same steps: the share of steps in common."""
    common, sizes = _shared(evidence.steps), _sizes(evidence.steps)
    together = sizes[:, None] + sizes[None, :] - common
    return _numbers(common / np.where(together > 0, together, 1))


KINDS: dict[str, Callable[[PairFeatures], Matrix]] = {
    # One name is the other with words before it: a kitchen towel and a towel.
    "inside": lambda evidence: _contained(evidence) * _shared(evidence.heads),
    # One name's words are in the other's, which is of another kind: a towel and a towel rail.
    "part": lambda evidence: _contained(evidence) * (1 - _shared(evidence.heads)),
    # One kind of thing, told apart by other words: a left foot and a right foot.
    "head": lambda evidence: _shared(evidence.heads) * (1 - _contained(evidence)),
    # Spelled alike.
    "letters": lambda evidence: _shared(evidence.letters),
    # Other words for the same: alike as vectors. A word that both share is counted elsewhere.
    "meaning": lambda evidence: _alike(evidence.meanings) * _numbers(_shared(evidence.words) == 0),
    # Their states are alike.
    "states": lambda evidence: _alike(evidence.states),
    "steps": _steps,
    # In one step at least both go from the same state to the same state.
    "fact": lambda evidence: _numbers(_shared(evidence.facts) > 0),
}
"""Every feature by its name."""
