"""compat on prediction files: the definition of OpenPI's evaluator, to the last digit, whatever the file says.

The plain implementation is written from the definition alone, with NLTK's stemmer, and shares no code with fluents.
"""

from __future__ import annotations

import json
import math
import string
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from fluents import jsonl
from fluents.data.file_formats import read_traces
from fluents.metrics import score
from fluents.scoring.alignment import steps_of

Lines = list[tuple[str, list[str]]]
"""(step id, answers), as the lines of a file."""

STEMMER = PorterStemmer()


def tokens(text: str) -> list[str]:
    for mark in string.punctuation:
        text = text.replace(mark, "")
    dropped = ("and", "was", "is", "before", "afterwards", "after", "of")
    stems = (STEMMER.stem(word) for word in text.strip().lower().split() if word not in dropped)
    return [stem for stem in stems if stem]


def match(gold: str, pred: str, matcher: str) -> float:
    meant, said = tokens(gold), tokens(pred)
    if not meant or not said:
        return float(meant == said)
    if matcher == "exact":
        return float(meant == said)
    if matcher == "bleu":
        product = 1.0
        for k in (1, 2):
            grams = [Counter(zip(*(words[i:] for i in range(k)), strict=False)) for words in (meant, said)]
            product *= ((grams[0] & grams[1]).total() + 1e-15) / (max(0, len(said) - k + 1) + 1e-9)
        ratio = (len(said) + 1e-15) / (len(meant) + 1e-9)
        return math.sqrt(product) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1)
    common = longest_common(meant, said)
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(meant)
    return (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)


def longest_common(one: list[str], other: list[str]) -> int:
    row = [0] * (len(other) + 1)
    for word in one:
        new = [0]
        for place, candidate in enumerate(other):
            new.append(row[place] + 1 if word == candidate else max(row[place + 1], new[place]))
        row = new
    return row[-1]


def of_step(gold: list[str], pred: list[str], matcher: str) -> tuple[float, float, float]:
    if len(pred) == 1 and pred[0].strip().lower().startswith("there will be no change"):
        pred = []
    if not gold or not pred:
        return float(not pred), float(not gold), float(not gold and not pred)
    unique = set(pred)
    precision = sum(max(match(meant, said, matcher) for meant in gold) for said in unique) / len(unique)
    recall = sum(max(match(meant, said, matcher) for said in unique) for meant in gold) / len(gold)
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def by_definition(gold: Lines, pred: Lines, matcher: str) -> list[float]:
    said = dict(pred)  # the last of several
    steps = [of_step(answers, said.get(step, []), matcher) for step, answers in gold]
    return [100 * sum(column) / len(steps) for column in zip(*steps, strict=True)]


NO_CHANGE = "There will be no change."
WORDS = [
    "color",
    "of",
    "tea",
    "was",
    "dark",
    "before",
    "and",
    "Hot",
    "afterwards",
    "the",
    "'s",
    "s",
    "|",
    "-",
    "…",
    "É",
]
templated = st.builds("{} of {} was {} before and {} afterwards".format, *[st.sampled_from(WORDS)] * 4)
no_change = st.sampled_from(
    [NO_CHANGE, "there will be no change in this step", " THERE WILL BE NO CHANGE ", "- " + NO_CHANGE]
)
noise = st.lists(st.sampled_from([*WORDS, "1.", "\t", "no change", ""]), max_size=7).map(" ".join)
sentences = templated | no_change | noise
STEPS = [f"www.x.org/{name}||{step}" for name in "ab" for step in (1, 2, 3)]
# A lone no-change sentence in the gold means a step without changes: no published gold has one.
gold_answers = st.lists(templated | noise, max_size=4)
golds = st.dictionaries(st.sampled_from(STEPS), gold_answers, min_size=1).map(lambda found: sorted(found.items()))
predictions = st.lists(st.tuples(st.sampled_from(STEPS), st.lists(sentences, max_size=4)), min_size=1, max_size=8)


def file_of(folder: str | Path, name: str, lines: Lines) -> Path:
    path = Path(folder, name)
    path.write_text("".join(json.dumps({"id": step, "answers": said}) + "\n" for step, said in lines), "utf-8")
    return path


@given(golds, predictions)
def test_every_prediction_file_scores_as_by_the_definition(gold: Lines, pred: Lines) -> None:
    """Steps may stand in any order, be missing, be foreign or come again."""
    with TemporaryDirectory() as folder:
        found = score("original", file_of(folder, "gold.jsonl", gold), file_of(folder, "pred.jsonl", pred))
    for matcher, row in found.rows.items():
        assert list(row.values()) == pytest.approx(by_definition(gold, pred, matcher), abs=1e-9)


@given(st.lists(sentences, max_size=5))
def test_what_was_read_from_a_file_is_what_was_said(said: list[str]) -> None:
    """Also after it was written in our own format and read again; only a lone no-change sentence means nothing."""
    with TemporaryDirectory() as folder:
        path, ours = file_of(folder, "pred.jsonl", [("p||1", said)]), Path(folder, "ours.jsonl")
        jsonl.write(read_traces(path), ours)
        steps = [step for file in (path, ours) for step in steps_of(read_traces(file))]
    alone = len(said) == 1 and said[0].strip().lower().startswith(NO_CHANGE[:-1].lower())
    assert [list(step.sentences) for step in steps] == [[] if alone else said] * 2


def test_no_change_among_answers_costs_precision_and_an_empty_step_its_score(tmp_path: Path) -> None:
    """A released file with such lines scored up to 0.1 higher while they were dropped."""
    right = "color of tea was clear before and dark afterwards"
    gold = file_of(tmp_path, "gold.jsonl", [("p||1", [right]), ("p||2", [])])
    pred = file_of(tmp_path, "pred.jsonl", [("p||1", [right, NO_CHANGE]), ("p||2", [NO_CHANGE, NO_CHANGE])])
    row = score("original", gold, pred)["exact"]
    assert (row["precision"], row["recall"], row["f1"]) == pytest.approx((25, 100, 100 / 3))
    assert score("original", gold, pred, mode="strict")["exact"]["f1"] == 100, "strict takes it for what it says"


def test_files_written_before_are_read(tmp_path: Path) -> None:
    """They hold nothing of a no-change sentence, and score as they did."""
    old = tmp_path / "old.jsonl"
    old.write_text('{"fluents":1,"kind":"trace","procedure":{"id":"p","goal":"p","steps":["(text not given)"]}}\n')
    gold = file_of(tmp_path, "gold.jsonl", [("p||1", [])])
    assert score("original", gold, old)["exact"]["f1"] == 100
