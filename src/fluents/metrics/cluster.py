"""The metric of OpenPI-C (2023): answers that say the same are one, and clusters are assigned one to one.

So a system gains no count by saying a thing in many ways. It still gains: of two clusters the best pair of wordings
counts, so more wordings of one meaning never cost anything (docs/experiments.md shows how much). Gold clusters are
taken from the data where it has them and made otherwise; the predictions' are always made, with the embedder and
threshold the signature names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from fluents.errors import InputError
from fluents.records import Reject, StateChange
from fluents.scoring import Mode
from fluents.scoring.alignment import Alignment, Answers, StepAnswers
from fluents.scoring.greedy_clusters import given_clusters, greedy_clusters
from fluents.scoring.score import Floats, Score, Signature, Statistics, StepRow, matcher_figures
from fluents.text.embedders import STATIC, Embedder, load_embedder
from fluents.text.matchers import PUBLISHED, Answer, Matcher, named
from fluents.text.template import is_no_change

_STEPS_AT_ONCE = 256  # embedded together: encoders are fast in batches


def cluster(
    gold: Answers,
    pred: Answers,
    *,
    mode: Mode = "compat",
    matchers: Sequence[str] = PUBLISHED,
    embedder: Embedder | str = STATIC,
    threshold: float | None = None,
) -> Score:
    """Score clusters of predictions against clusters of gold: a row of precision, recall and F1 for every matcher.

    `embedder` is "wordllama-256", "all-MiniLM-L6-v2", any sentence-transformers model, or an object; answers more
    similar than `threshold` are one cluster. Known embedders have a threshold of their own.
    """
    by_name = named(matchers)
    embed = load_embedder(embedder, threshold) if isinstance(embedder, str) else embedder
    if embed is embedder and threshold is not None:
        raise InputError(
            "`threshold` works only with an embedder given by name", fix="set the threshold of the embedder itself"
        )
    alignment = Alignment(gold, pred, mode)
    origins: Counter[str] = Counter()
    statistics = Statistics.collect(_columns(by_name), _rows(alignment, by_name, mode, embed, origins))
    signature = Signature.of(
        "cluster",
        mode,
        matchers="+".join(by_name),
        avg="macro+micro" if mode == "strict" else "macro",
        embedder=embed.name,
        threshold=f"{embed.threshold:g}",
        clusters="+".join(sorted(origins)) or "computed",
        data=alignment.data_hash,
    )
    figures = matcher_figures(by_name, mode, "matched", "matched")
    return Score("cluster", statistics, figures, signature, tuple(alignment.warnings))


def _columns(matchers: Mapping[str, Matcher]) -> tuple[str, ...]:
    parts = ("precision", "recall", "f1", "matched")
    return (*(f"{name}.{part}" for name in matchers for part in parts), "predicted", "gold")


class _Side(NamedTuple):
    """The gold or predicted answers of a step, the texts to embed, and the clusters if they are given."""

    answers: list[Answer]
    texts: list[str]
    given: list[int] | None = None

    def labels(self, vectors: Mapping[str, Floats], threshold: float) -> list[int]:
        if self.given is not None:
            return self.given
        if len(self.texts) < 2:
            return [0] * len(self.texts)
        return greedy_clusters(np.stack([vectors[text] for text in self.texts]), threshold)


def _rows(
    alignment: Alignment, matchers: Mapping[str, Matcher], mode: Mode, embed: Embedder, origins: Counter[str]
) -> Iterator[StepRow]:
    pairs, strict = iter(alignment), mode == "strict"
    while block := list(islice(pairs, _STEPS_AT_ONCE)):
        sides = [(_gold(gold, mode), _predicted(pred, mode)) for gold, pred in block]
        unknown = (side for both in sides for side in both if side.given is None and len(side.texts) > 1)
        texts = list(dict.fromkeys(text for side in unknown for text in side.texts))
        vectors = dict(zip(texts, embed(texts), strict=True)) if texts else {}
        for (step, _), (gold, pred) in zip(block, sides, strict=True):
            if gold.answers:
                origins["computed" if gold.given is None else "given"] += 1
            gold_labels, pred_labels = (side.labels(vectors, embed.threshold) for side in (gold, pred))
            counts = len(set(pred_labels)), len(set(gold_labels))
            values: list[float] = []
            for match in matchers.values():
                scores = [
                    [1.0 if strict and said.fields == meant.fields else match(meant, said) for meant in gold.answers]
                    for said in pred.answers
                ]
                values += cluster_statistics(scores, gold_labels, pred_labels)
            yield step.procedure_id, step.step, (*values, *counts)


def _gold(step: StepAnswers, mode: Mode) -> _Side:
    given = given_clusters(step)
    if given is None:
        return _unique(step, mode)
    changes = step.changes
    read = Answer.of_change if mode == "strict" else Answer.of_sentence
    return _Side([read(change) for change in changes], [], given)


def _predicted(step: StepAnswers, mode: Mode) -> _Side:
    side = _unique(step, mode)
    nothing = mode == "compat" and len(side.texts) == 1 and is_no_change(side.texts[0])
    return _Side([], []) if nothing else side


def _unique(step: StepAnswers, mode: Mode) -> _Side:
    """Unique answers in the order of their texts, on which greedy clustering depends."""
    if mode == "compat":
        found = dict(zip(step.sentences, step.answers, strict=True))
        texts = sorted(found)
        return _Side([Answer.of_sentence(found[text]) for text in texts], texts)
    read: list[tuple[str, Answer]] = []
    for parsed in step.parsed():
        if isinstance(parsed, StateChange):
            read.append((parsed.templated, Answer.of_change(parsed)))
        elif isinstance(parsed, Reject):
            read.append((parsed.text, Answer.of_text(parsed.text)))
    by_fields: dict[tuple[tuple[str, ...], ...], tuple[str, Answer]] = {}
    for text, answer in sorted(read, key=lambda item: item[0]):
        by_fields.setdefault(answer.fields, (text, answer))
    return _Side([answer for _, answer in by_fields.values()], [text for text, _ in by_fields.values()])


def cluster_statistics(
    scores: Sequence[Sequence[float]], gold_labels: Sequence[int], pred_labels: Sequence[int]
) -> tuple[float, float, float, float]:
    """Precision, recall, F1, and the sum of the matches of assigned clusters; `scores` has a row a prediction."""
    if not gold_labels or not pred_labels:
        return float(not pred_labels), float(not gold_labels), float(not pred_labels and not gold_labels), 0.0
    from scipy.optimize import linear_sum_assignment

    gold_names, gold_index = np.unique(gold_labels, return_inverse=True)
    pred_names, pred_index = np.unique(pred_labels, return_inverse=True)
    best = np.zeros((len(pred_names), len(gold_names)))
    np.maximum.at(best, (pred_index[:, None], gold_index[None, :]), np.asarray(scores))
    matched = float(best[linear_sum_assignment(best, maximize=True)].sum())
    precision, recall = matched / len(pred_names), matched / len(gold_names)
    f1 = 2 * precision * recall / (precision + recall) if matched else 0.0
    return precision, recall, f1, matched
