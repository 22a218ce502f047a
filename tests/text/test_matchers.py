"""Normalisation and matchers, by hand and against the plain definitions of the benchmark."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.meteor_score import single_meteor_score

from fluents.errors import UnknownNameError
from fluents.records import StateChange
from fluents.text.matchers import MATCHERS, TEMPLATE_WORDS, Answer, named, words

PLAIN = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "metrics.py"))

vocabulary = [
    "water",
    "Boiling",
    "boiled",
    "the",
    "was",
    "before",
    "and",
    "hot",
    "s",
    "knife's",
    "skies",
    "y",
    "?",
    "é",
]
sentences = st.lists(st.sampled_from(vocabulary), max_size=12).map(" ".join)


def change(attribute: str = "color", entity: str = "tea", before: str = "clear", after: str = "dark") -> StateChange:
    return StateChange(step=1, attribute=attribute, entity=entity, before=before, after=after)


def match(name: str, gold: str, pred: str) -> float:
    return MATCHERS[name](Answer.of_sentence(gold), Answer.of_sentence(pred))


def test_normalisation_follows_the_published_evaluator() -> None:
    """Lower case, no punctuation, template words gone wherever they stand — but not "were" or the articles —, stems."""
    text = "  The COLOR of knife's blades,\twere (un-cooked) before and  after. "
    assert words(text, TEMPLATE_WORDS) == ("the", "color", "knife", "blade", "were", "uncook")


def test_punctuation_alone_is_no_word() -> None:
    assert words("' - ?", TEMPLATE_WORDS) == ()


@pytest.mark.parametrize("name", MATCHERS)
def test_two_empty_answers_match_and_one_does_not(name: str) -> None:
    assert (match(name, "of", "was ?"), match(name, "tea", ""), match(name, "and", "tea")) == (1, 0, 0)


def test_bleu_by_hand() -> None:
    """3 of 4 words and 2 of 3 pairs are right; the prediction is one word shorter than the gold."""
    expected = math.sqrt(3 / 4 * 2 / 3) * math.exp(1 - 5 / 4)
    assert match("bleu", "color tea clear dark brown", "color tea clear sweet") == pytest.approx(expected, abs=1e-8)


def test_bleu_of_one_word_is_nearly_nothing_as_published() -> None:
    assert match("bleu", "wet", "wet") == pytest.approx(1e-3, rel=1e-6)


def test_rouge_by_hand() -> None:
    """The longest common subsequence is "color tea dark": 3 of 4 predicted words, 3 of 5 gold words."""
    precision, recall = 3 / 4, 3 / 5
    expected = 2.44 * precision * recall / (recall + 1.44 * precision)
    assert match("rouge", "color tea clear dark brown", "color red tea dark") == pytest.approx(expected, abs=1e-12)


def test_meteor_by_hand() -> None:
    """Three of four words match, in two chunks: "color tea" and "dark"."""
    precision, recall = 3 / 4, 3 / 4
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    expected = mean * (1 - 0.5 * (2 / 3) ** 3)
    assert match("meteor-stem", "color tea clear dark", "color tea red dark") == pytest.approx(expected)


def test_the_printed_formula_averages_the_two_states_and_ignores_the_names() -> None:
    gold = "color of tea was clear before and very dark afterwards"
    pred = "shade of coffee was clear before and dark afterwards"
    rouge_after = 2.44 * 1 * 0.5 / (0.5 + 1.44)
    assert match("exact-states", gold, pred) == 0.5
    assert match("rouge-states", gold, pred) == pytest.approx((1 + rouge_after) / 2)


def test_the_printed_formula_takes_fields_from_the_record_where_it_has_one() -> None:
    gold, pred = change(before=""), change(attribute="shade", before="")
    assert MATCHERS["exact-states"](Answer.of_change(gold), Answer.of_change(pred)) == 1


def test_unreadable_answers_have_no_states() -> None:
    gold = "color of tea was clear before and dark afterwards"
    assert match("rouge-states", gold, "tea gets dark") == 0
    assert match("rouge-states", "tea gets dark", "The tea gets dark!") == 0
    assert match("rouge-states", "tea gets dark", "Tea gets dark!") == 1


def test_fields_are_compared_one_by_one_in_strict_reading() -> None:
    """Run together the words of these two are the same."""
    one, other = change(entity="red tea", attribute="color"), change(entity="tea", attribute="color red")
    assert Answer.of_change(one).tokens == Answer.of_change(other).tokens
    assert MATCHERS["exact"](Answer.of_change(one), Answer.of_change(other)) == 0
    assert Answer.of_change(change(entity="the tea")).fields == Answer.of_change(change(entity="Tea")).fields


class NoSynonyms:
    def synsets(self, _word: str) -> list[str]:
        return []


class NoStemmer:
    def stem(self, word: str) -> str:
        return word


@given(sentences.filter(str.strip), sentences.filter(str.strip))
def test_meteor_equals_nltk_without_wordnet(gold: str, pred: str) -> None:
    one, other = Answer.of_sentence(gold), Answer.of_sentence(pred)
    if one.tokens and other.tokens:
        expected = single_meteor_score(one.tokens, other.tokens, str, NoStemmer(), NoSynonyms())
        assert MATCHERS["meteor-stem"](one, other) == pytest.approx(expected)


@given(sentences, sentences)
def test_matchers_equal_their_plain_definitions(gold: str, pred: str) -> None:
    for name in ("exact", "bleu", "rouge"):
        assert match(name, gold, pred) == pytest.approx(PLAIN["plain_match"](gold, pred, name), abs=1e-12)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_scores_between_0_and_1(gold: str, pred: str) -> None:
    for name in MATCHERS:
        assert 0 <= match(name, gold, pred) <= 1 + 1e-12


def test_unknown_matchers_are_refused_and_doubled_ones_counted_once() -> None:
    assert list(named(["rouge", "exact", "rouge"])) == ["rouge", "exact"]
    with pytest.raises(UnknownNameError, match="unknown matcher 'levenshtein'"):
        named(["exact", "levenshtein"])
    with pytest.raises(UnknownNameError, match="no matcher given"):
        named([])
