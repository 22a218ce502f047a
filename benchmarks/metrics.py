"""The original metric, plainly and as fluents computes it, side by side; and the bootstrap on top of it.

    FLUENTS_DATA_MIRROR=<folder of published files> python benchmarks/metrics.py

The plain implementation below follows the definition word for word: it normalises both sentences again for every pair,
in both directions and for every matcher, and remembers nothing. The tests hold fluents' numbers against it.
"""

from __future__ import annotations

import json
import math
import os
import string
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fluents.text.names import porter_stem

DROPPED = {"and", "was", "is", "before", "afterwards", "after", "of"}
GOLD = "allenai/openpi-dataset/data/gold/test/id_answers.jsonl"
PREDICTED = "allenai/openpi-dataset/emnlp2020-predictions/predictions/on_openpi_v1.0/test.predictions.jsonl"

Steps = Mapping[str, Sequence[str]]
Figures = tuple[float, float, float]


def plain_tokens(text: str) -> list[str]:
    letters = "".join(letter for letter in text.strip().lower() if letter not in string.punctuation)
    stems = [porter_stem(word) for word in letters.split() if word not in DROPPED]
    return [stem for stem in stems if stem]


def plain_exact(gold: list[str], pred: list[str]) -> float:
    return 1.0 if gold == pred else 0.0


def plain_bleu(gold: list[str], pred: list[str]) -> float:
    product = 1.0
    for size in (1, 2):
        said = Counter(tuple(pred[i : i + size]) for i in range(len(pred) - size + 1))
        meant = Counter(tuple(gold[i : i + size]) for i in range(len(gold) - size + 1))
        clipped = sum(min(count, meant[gram]) for gram, count in said.items())
        product *= (clipped + 1e-15) / (max(0, len(pred) - size + 1) + 1e-9)
    ratio = (len(pred) + 1e-15) / (len(gold) + 1e-9)
    return math.sqrt(product) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1.0)


def plain_rouge(gold: list[str], pred: list[str]) -> float:
    table = [[0] * (len(pred) + 1) for _ in range(len(gold) + 1)]
    for i, meant in enumerate(gold, start=1):
        for j, said in enumerate(pred, start=1):
            longer = max(table[i - 1][j], table[i][j - 1])
            table[i][j] = table[i - 1][j - 1] + 1 if meant == said else longer
    common = table[-1][-1]
    if not common:
        return 0.0
    precision, recall, beta = common / len(pred), common / len(gold), 1.2
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)


PLAIN: dict[str, Callable[[list[str], list[str]], float]] = {
    "exact": plain_exact,
    "bleu": plain_bleu,
    "rouge": plain_rouge,
}


def plain_match(gold: str, pred: str, matcher: str) -> float:
    meant, said = plain_tokens(gold), plain_tokens(pred)
    if not meant or not said:
        return float(meant == said)
    return PLAIN[matcher](meant, said)


def plain_step(gold: Sequence[str], pred: Sequence[str], matcher: str) -> Figures:
    if len(pred) == 1 and pred[0].lower().strip().startswith("there will be no change"):
        pred = []
    if not gold or not pred:
        return float(not pred), float(not gold), float(not gold and not pred)
    unique = set(pred)
    precision = sum(max(plain_match(g, p, matcher) for g in gold) for p in unique) / len(unique)
    recall = sum(max(plain_match(g, p, matcher) for p in unique) for g in gold) / len(gold)
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def plain_original(gold: Steps, pred: Steps) -> dict[str, Figures]:
    scores = {}
    for matcher in PLAIN:
        steps = [plain_step(answers, pred[step], matcher) for step, answers in gold.items()]
        precision, recall, f1 = (100 * sum(column) / len(steps) for column in zip(*steps, strict=True))
        scores[matcher] = precision, recall, f1
    return scores


def read(path: Path) -> dict[str, list[str]]:
    with path.open(encoding="utf-8") as lines:
        return {line["id"]: line["answers"] for line in map(json.loads, lines)}


def main() -> None:
    folder = os.environ.get("FLUENTS_DATA_MIRROR")
    if not folder:
        sys.exit("set FLUENTS_DATA_MIRROR to a folder with the published files")
    from fluents.metrics.original import original
    from fluents.scoring.bootstrap import intervals
    from fluents.text.matchers import stem

    gold, pred = read(Path(folder, GOLD)), read(Path(folder, PREDICTED))
    started = time.perf_counter()
    plain = plain_original(gold, pred)
    plain_seconds = time.perf_counter() - started

    runs = []
    for _ in range(3):
        stem.cache_clear()  # as cold as a first run; imports alone are left out
        started = time.perf_counter()
        score = original(gold, pred)
        runs.append(time.perf_counter() - started)
    seconds = sorted(runs)[1]

    started = time.perf_counter()
    found = intervals(score, resamples=10_000)
    bootstrap_seconds = time.perf_counter() - started

    print(f"{len(gold)} steps, {sum(map(len, gold.values()))} gold answers, {sum(map(len, pred.values()))} predicted\n")
    print(f"{'F1':8}{'plain':>10}{'fluents':>10}   95 % interval")
    for name, (_, _, f1) in plain.items():
        low, high = found[name]["f1"]
        print(f"{name:8}{f1:10.4f}{score[name]['f1']:10.4f}   {low:.2f} to {high:.2f}")
    faster = plain_seconds / seconds
    print(f"\n{'seconds':8}{plain_seconds:10.2f}{seconds:10.3f}   {faster:.0f} times faster (median of 3 runs)")
    print(f"10,000 bootstrap resamples over {score.n_procedures} procedures: {bootstrap_seconds:.3f} s")


if __name__ == "__main__":
    main()
