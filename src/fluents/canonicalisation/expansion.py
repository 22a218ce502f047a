"""Other names for a trace's clusters that nobody wrote: they make an evaluation fairer to paraphrases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from fluents.canonicalisation.name_facts import Fact, Field, NameGroup, fact_of, names_in, wordings_of
from fluents.canonicalisation.pair_features import Matrix, PairFeatures
from fluents.data.file_formats import read_traces
from fluents.errors import InputError
from fluents.llm import LanguageModel, Question, open_model
from fluents.llm.answers import Unreadable, UnreadableAnswer, ask_all, json_in
from fluents.prompts.llm import JSON_TEXT, json_list, json_object, quoted_name, render, system, whole_scene
from fluents.records import AttributeCluster, EntityCluster, Reject, StateChange, Trace
from fluents.scoring import Level
from fluents.text.embedders import Embedder, StaticEmbedder
from fluents.text.names import bare_name

MOST = 5
"""New names for a cluster, by default."""

REASON = "expansion: "
"""What the reason of a reject begins with where an answer about other names could not be read."""


@dataclass(frozen=True)
class ClusterNames:
    """The names of one cluster."""

    level: Level
    names: tuple[str, ...]
    facts: frozenset[Fact]
    """What the trace says under them."""
    entity: str = ""
    """Whose attribute it is."""


class Suggested(NamedTuple):
    names: list[list[str]]
    """For each cluster, the best first."""
    rejects: tuple[Reject, ...] = ()


class Thesaurus(Protocol):
    """A source of other names."""

    @property
    def name(self) -> str:
        """As a trace's provenance records it."""
        ...

    def suggest(self, trace: Trace, clusters: Sequence[ClusterNames], most: int) -> Suggested: ...


def expand(trace: Trace, thesaurus: Thesaurus, most: int = MOST) -> Trace:
    """The trace with up to `most` new names beside those of each cluster and of each of its attributes.

    Names that were there stay. One that some cluster of the kind already goes by is no expansion of another.
    """
    if trace.changes and not trace.clusters:
        raise InputError(
            "this trace has no clusters of names to expand", where=trace.id, fix="run `fluents canonicalise` first"
        )
    asked = [names for cluster in trace.clusters for names in _cluster_names(cluster, trace.changes)]
    suggested, rejects = thesaurus.suggest(trace, asked, most)
    suggestions = iter(suggested)
    clusters = []
    taken = _plain(name for cluster in trace.clusters for name in (cluster.name, *cluster.mentions))
    for cluster in trace.clusters:
        expansions = _added(cluster.expansions, next(suggestions), taken, most)
        of_attributes = _plain(name for one in cluster.attributes for name in (one.name, *one.mentions))
        attributes = tuple(
            one.replace(expansions=_added(one.expansions, next(suggestions), of_attributes, most))
            for one in cluster.attributes
        )
        clusters.append(cluster.replace(expansions=expansions, attributes=attributes))
    kept = tuple(reject for reject in trace.rejects if not reject.reason.startswith(REASON))
    return trace.replace(
        clusters=tuple(clusters),
        rejects=(*kept, *rejects),
        provenance=trace.provenance.replace(decoding={**trace.provenance.decoding, "expansions": thesaurus.name}),
    )


def parse_failures(trace: Trace) -> list[str]:
    """Why answers about other names could not be read; the answers are among the rejects."""
    return [reject.reason for reject in trace.rejects if reject.reason.startswith(REASON)]


def _cluster_names(cluster: EntityCluster, changes: Sequence[StateChange]) -> Iterable[ClusterNames]:
    names = {cluster.name, *cluster.mentions}
    mine = [change for change in changes if change.entity in names]
    yield ClusterNames("entities", _names(cluster), _facts(mine))
    for one in cluster.attributes:
        called = {one.name, *one.mentions}
        facts = _facts(change for change in mine if change.attribute in called)
        yield ClusterNames("attributes", _names(one), facts, cluster.name)


def _names(cluster: EntityCluster | AttributeCluster) -> tuple[str, ...]:
    return tuple(dict.fromkeys((cluster.name, *cluster.mentions)))


def _facts(changes: Iterable[StateChange]) -> frozenset[Fact]:
    return frozenset(fact_of(change) for change in changes)


def _added(old: tuple[str, ...], new: Sequence[str], taken: set[str], most: int) -> tuple[str, ...]:
    found = list(old)
    seen = taken | _plain(old)
    for name in new[:most]:
        if name.strip() and bare_name(name) not in seen:
            seen.add(bare_name(name))
            found.append(" ".join(name.split()))
    return tuple(found)


def _plain(names: Iterable[str]) -> set[str]:
    return {bare_name(name) for name in names}


@contextmanager
def open_thesaurus(
    vocabulary: str | Path | None = None,
    *,
    near: float | None = None,
    model: str | LanguageModel | None = None,
    base_url: str | None = None,
) -> Iterator[Thesaurus]:
    """Names near in meaning from the dataset or file `vocabulary`, offline, or from a language model.

    `near`, from 0 to 1 (0.5), is how alike a name of the vocabulary must be.
    """
    if (vocabulary is None) == (model is None):
        what = "a source of paraphrases is required" if model is None else "`vocabulary` and `model` cannot be combined"
        raise InputError(what, fix="give either `vocabulary` or `model`")
    if vocabulary is not None:
        if base_url is not None:
            raise InputError(
                "`base_url` has no effect without `model`",
                fix="leave out `base_url`, or give `model` instead of `vocabulary`",
            )
        yield VocabularyThesaurus(read_traces(vocabulary), str(vocabulary), NEAR if near is None else near)
        return
    if near is not None:
        raise InputError(
            "`near` has no effect without `vocabulary`", fix="leave out `near`, or give `vocabulary` instead of `model`"
        )
    with open_model(model, base_url) as opened:
        yield PromptedThesaurus(opened)


NEAR = 0.5
"""Minimum similarity of a name: the geometric mean of the similarities of meaning and of states."""

LEAST_SAID = 3
"""Names that a dataset uses less often are as likely slips as names."""


class NameVocabulary:
    """The names a dataset has for entities, or for attributes, and the vectors to compare them by."""

    def __init__(self, changes: Sequence[StateChange], field: Field, embedder: Embedder) -> None:
        said = Counter(bare_name(wording) for change in changes for wording in wordings_of(change, field))
        self._embedder = embedder
        self._names = [one for one in names_in(changes, field) if said[bare_name(one.name)] >= LEAST_SAID]
        self._used = {bare_name(one.name): one.facts for one in self._names}
        self._evidence = PairFeatures(self._names, embedder)
        self._words = [set(bare_name(one.name).split()) for one in self._names]

    def near(self, cluster: ClusterNames, least: float) -> list[str]:
        """Names used alike, the nearest first. One that shares a word is a part or a kind of the thing."""
        if not self._names:
            return []
        likeness = np.max([self._likeness(name, cluster.facts) for name in cluster.names], axis=0)
        own = {word for name in cluster.names for word in bare_name(name).split()}
        order = np.argsort(-likeness, kind="stable")
        return [self._names[place].name for place in order if likeness[place] >= least and not self._words[place] & own]

    def _likeness(self, name: str, facts: frozenset[Fact]) -> Matrix:
        # A trace says little of each name; what the dataset says under the same name is taken with it.
        one = PairFeatures([NameGroup((name,), facts | self._used.get(bare_name(name), frozenset()))], self._embedder)
        meaning = self._evidence.meanings @ one.meanings[0]
        states = self._evidence.states @ one.states[0] if facts else np.zeros_like(meaning)
        return np.asarray(np.sqrt(np.maximum(meaning, 0) * np.maximum(states, 0)), dtype=np.float32)


class VocabularyThesaurus:
    """Names from the traces of a dataset, which the user has."""

    def __init__(
        self, traces: Iterable[Trace], source: str, near: float = NEAR, embedder: Embedder | None = None
    ) -> None:
        self._near = near
        self.name = f"neighbours-1 in {source}, {near:g}"
        changes = [change for trace in traces for change in trace.changes]
        embedder = embedder or StaticEmbedder()
        self._vocabulary: dict[Level, NameVocabulary] = {
            "entities": NameVocabulary(changes, "entity", embedder),
            "attributes": NameVocabulary(changes, "attribute", embedder),
        }

    def suggest(self, trace: Trace, clusters: Sequence[ClusterNames], most: int) -> Suggested:  # noqa: ARG002
        return Suggested([self._vocabulary[one.level].near(one, self._near)[:most] for one in clusters])


PROMPTS: dict[Level, str] = {"entities": "expand-entity-1", "attributes": "expand-attribute-1"}
SCHEMA = json_object(names=json_list(JSON_TEXT))
MAX_LETTERS = 80
"""A longer name is probably a sentence."""


@dataclass(frozen=True)
class PromptedThesaurus:
    """Names from a language model, asked about each cluster separately."""

    model: LanguageModel

    @property
    def name(self) -> str:
        return f"prompted-1, {self.model.name}"

    def suggest(self, trace: Trace, clusters: Sequence[ClusterNames], most: int) -> Suggested:
        scene = whole_scene(trace.procedure)
        questions = [
            Question(
                render(
                    PROMPTS[one.level],
                    scene=scene,
                    entity=quoted_name(one.entity),
                    names=[quoted_name(name) for name in one.names],
                    most=most,
                ),
                system=system(),
                schema=SCHEMA,
                name=PROMPTS[one.level],
                max_tokens=32 + 32 * most,
            )
            for one in clusters
        ]
        answers = ask_all(self.model, questions, read)
        rejects = [Reject(text=one.text, reason=REASON + one.reason) for one in answers if isinstance(one, Unreadable)]
        return Suggested([[] if isinstance(one, Unreadable) else one for one in answers], tuple(rejects))


def read(text: str) -> list[str]:
    """The names in an answer."""
    value = json_in(text)
    names = value.get("names") if isinstance(value, dict) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnreadableAnswer("the answer contains no list of names")
    return [name for name in names if name.strip() and len(name) <= MAX_LETTERS]
