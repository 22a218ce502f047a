"""The metric of OpenPI (2020): every answer is held against the best match on the other side.

`compat` is the published evaluator to the last digit; `strict` is the same idea with unique answers on both sides, read
field by field, and pooled ("micro") figures beside the means over steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fluents.records import Reject, StateChange
from fluents.scoring import Mode
from fluents.scoring.alignment import Alignment, Answers, StepAnswers
from fluents.scoring.score import Score, Signature, Statistics, StepRow, matcher_figures
from fluents.text.matchers import PUBLISHED, Answer, Matcher, named
from fluents.text.template import is_no_change


def original(gold: Answers, pred: Answers, *, mode: Mode = "compat", matchers: Sequence[str] = PUBLISHED) -> Score:
    """Score predictions against gold, step by step: a row of precision, recall and F1 in percent for every matcher.

    >>> meant = {"tea||1": ["color of tea was clear before and dark afterwards"]}
    >>> said = {"tea||1": ["color of tea was clear before and brown afterwards"]}
    >>> round(original(meant, said)["rouge"]["f1"], 1)
    75.0
    """
    by_name = named(matchers)
    alignment = Alignment(gold, pred, mode)
    statistics = Statistics.collect(_columns(by_name), _rows(alignment, by_name, mode))
    signature = Signature.of(
        "original",
        mode,
        matchers="+".join(by_name),
        avg="macro+micro" if mode == "strict" else "macro",
        data=alignment.data_hash,
    )
    figures = matcher_figures(by_name, mode, "predicted-matched", "gold-matched")
    return Score("original", statistics, figures, signature, tuple(alignment.warnings))


def _columns(matchers: Mapping[str, Matcher]) -> tuple[str, ...]:
    """For each matcher the step's figures and the summed best matches they come from; the numbers of answers."""
    parts = ("precision", "recall", "f1", "predicted-matched", "gold-matched")
    return (*(f"{name}.{part}" for name in matchers for part in parts), "predicted", "gold")


def _rows(alignment: Alignment, matchers: Mapping[str, Matcher], mode: Mode) -> Iterator[StepRow]:
    for gold_step, pred_step in alignment:
        if mode == "strict":
            gold, pred = read_answers(gold_step), read_answers(pred_step)
        else:
            gold, pred = [Answer.of_sentence(answer) for answer in gold_step.answers], published_predictions(pred_step)
        values: list[float] = []
        for match in matchers.values():
            values += step_statistics(gold, pred, match, identical_is_one=mode == "strict")
        yield gold_step.procedure_id, gold_step.step, (*values, len(pred), len(gold))


def published_predictions(step: StepAnswers) -> list[Answer]:
    """Unique sentences. One that says nothing changes is no answer, but only where it stands alone."""
    sentences = step.sentences
    if len(sentences) == 1 and is_no_change(sentences[0]):
        return []
    unique = dict(zip(sentences, step.answers, strict=True))
    return [Answer.of_sentence(answer) for answer in unique.values()]


def read_answers(step: StepAnswers) -> list[Answer]:
    """Unique answers by their four fields. A text without them is still an answer; "no change" never is."""
    answers = []
    for parsed in step.parsed():
        if isinstance(parsed, StateChange):
            answers.append(Answer.of_change(parsed))
        elif isinstance(parsed, Reject):
            answers.append(Answer.of_text(parsed.text))
    return list({answer.fields: answer for answer in answers}.values())


def step_statistics(
    gold: Sequence[Answer], pred: Sequence[Answer], match: Matcher, *, identical_is_one: bool
) -> tuple[float, float, float, float, float]:
    """Precision, recall, F1, and the sums of best matches over the predictions and over the gold."""
    if not gold or not pred:
        return float(not pred), float(not gold), float(not pred and not gold), 0.0, 0.0
    best_for_gold = [0.0] * len(gold)
    pred_matched = 0.0
    for said in pred:
        best = 0.0
        for index, meant in enumerate(gold):
            value = 1.0 if identical_is_one and said.fields == meant.fields else match(meant, said)
            if value > best:
                best = value
            if value > best_for_gold[index]:
                best_for_gold[index] = value
        pred_matched += best
    gold_matched = sum(best_for_gold)
    precision, recall = pred_matched / len(pred), gold_matched / len(gold)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return precision, recall, f1, pred_matched, gold_matched
