"""The original metric: the published numbers, the plain definition, and what must hold of any input."""

from __future__ import annotations

import doctest
import json
import runpy
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.errors import InputError
from fluents.metrics.original import original
from fluents.records import Procedure, Trace
from fluents.scoring import Mode
from fluents.text.template import parse_all

PLAIN = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "metrics.py"))

FIELDS = ["tea", "the tea", "Water", "cup of tea", "hot", "cold", "very hot", "on the table", "before", "wet"]
fields = st.sampled_from(FIELDS)
templated = st.builds("{} of {} was {} before and {} afterwards".format, fields, fields, fields, fields)
sentences = templated | st.sampled_from(["", "nonsense", "There will be no change.", "the state of hot"])
answers = st.lists(sentences, max_size=5)
steps = st.dictionaries(st.sampled_from([f"{p}||{k}" for p in "ab" for k in (1, 2, 3)]), answers, min_size=1)
both = steps.flatmap(lambda gold: st.tuples(st.just(gold), st.fixed_dictionaries(dict.fromkeys(gold, answers))))
Steps = dict[str, list[str]]


def read(path: Path) -> Steps:
    with path.open(encoding="utf-8") as lines:
        return {line["id"]: line["answers"] for line in map(json.loads, lines)}


@pytest.fixture(scope="module")
def published(mirror: Path) -> tuple[Steps, Steps]:
    return read(mirror / PLAIN["GOLD"]), read(mirror / PLAIN["PREDICTED"])


def test_gpt2_gets_its_published_scores(published: tuple[Steps, Steps]) -> None:
    score = original(*published)
    assert {name: tuple(f"{value:.2f}" for value in row.values()) for name, row in score.rows.items()} == {
        "exact": ("10.44", "6.53", "4.24"),
        "bleu": ("24.43", "17.67", "16.07"),
        "rouge": ("41.10", "33.78", "32.38"),
    }
    assert (score.n_steps, score.n_procedures, score.warnings) == (560, 111, ())


def test_traces_of_the_published_answers_score_the_same(published: tuple[Steps, Steps]) -> None:
    """Answers the parser cannot read are held as rejects, and still count."""
    gold, pred = ([_trace(*item) for item in side.items()] for side in published)
    assert original(gold, pred).rows == original(*published).rows


def _trace(step_id: str, said: list[str]) -> Trace:
    procedure_id, _, step = step_id.rpartition("||")
    changes, rejects = parse_all(said, int(step))
    procedure = Procedure(id=procedure_id, steps=("(text)",) * int(step))
    return Trace(procedure=procedure, covered=(int(step),), changes=tuple(changes), rejects=tuple(rejects))


def test_published_gold_scores_full_marks_against_itself_in_strict(published: tuple[Steps, Steps]) -> None:
    gold, _ = published
    assert {value for row in original(gold, gold, mode="strict").rows.values() for value in row.values()} == {100.0}


@given(both)
def test_compat_equals_the_plain_definition(data: tuple[Steps, Steps]) -> None:
    score, plain = original(*data), PLAIN["plain_original"](*data)
    for name, figures in plain.items():
        assert tuple(score[name].values()) == pytest.approx(figures, abs=1e-10)


@pytest.mark.parametrize("mode", ["compat", "strict"])
@given(data=both, random=st.randoms())
def test_order_does_not_matter(mode: Mode, data: tuple[Steps, Steps], random: Random) -> None:
    shuffled = []
    for side in data:
        items = [(step, random.sample(said, len(said))) for step, said in side.items()]
        random.shuffle(items)
        shuffled.append(dict(items))
    one, other = original(*data, mode=mode), original(*shuffled, mode=mode)
    assert str(one.signature) == str(other.signature)
    for row in one.rows:
        assert one[row] == pytest.approx(other[row])


@pytest.mark.parametrize("mode", ["compat", "strict"])
@given(data=both)
def test_scores_lie_between_0_and_100(mode: Mode, data: tuple[Steps, Steps]) -> None:
    score = original(*data, mode=mode, matchers=["exact", "bleu", "rouge", "meteor-stem", "rouge-states"])
    assert all(0 <= value <= 100 + 1e-9 for row in score.rows.values() for value in row.values())


@given(steps)
def test_strict_gives_full_marks_to_the_gold_itself(gold: Steps) -> None:
    assert {value for row in original(gold, gold, mode="strict").rows.values() for value in row.values()} == {100.0}


@given(both, st.data())
def test_a_repeated_prediction_never_raises_the_strict_score(data: tuple[Steps, Steps], draw: st.DataObject) -> None:
    """Not even when it is repeated in other words that mean the same to the metric."""
    gold, pred = data
    step = draw.draw(st.sampled_from(sorted(pred)))
    if not pred[step]:
        return
    again = draw.draw(st.sampled_from(pred[step]))
    longer = pred | {step: [*pred[step], again.upper().replace("OF ", "OF THE ")]}
    before, after = original(gold, pred, mode="strict"), original(gold, longer, mode="strict")
    assert all(after[row][f] <= before[row][f] + 1e-9 for row in before.rows for f in before[row])


WET, DRY = "moisture of cup was dry before and wet afterwards", "moisture of cup was wet before and dry afterwards"


@pytest.mark.parametrize(
    ("gold", "pred", "expected"),
    [([], [], (100, 100, 100)), ([], [WET], (0, 100, 0)), ([WET], [], (100, 0, 0)), ([WET], ["zzz"], (0, 0, 0))],
)
@pytest.mark.parametrize("mode", ["compat", "strict"])
def test_the_rules_for_empty_steps(
    mode: Mode, gold: list[str], pred: list[str], expected: tuple[float, float, float]
) -> None:
    score = original({"p||1": gold}, {"p||1": pred}, mode=mode, matchers=["exact"])
    assert tuple(score["exact"].values()) == expected


def test_no_change_is_an_answer_only_in_company_in_compat_and_never_in_strict() -> None:
    none = "There will be no change in anything"

    def precision(pred: list[str], mode: Mode) -> float:
        return original({"p||1": [WET]}, {"p||1": pred}, mode=mode)["exact"]["precision"]

    assert precision([none], "compat") == precision([none], "strict") == 100
    assert precision([none, WET], "compat") == 50
    assert precision([none, WET], "strict") == 100


def test_strict_does_what_compat_gets_wrong() -> None:
    """Repeated gold counts once, articles do not count, and a field may contain the template's words."""
    gold = {"p||1": [WET, WET, DRY]}
    assert original(gold, {"p||1": [WET]})["exact"]["recall"] == pytest.approx(200 / 3)
    assert original(gold, {"p||1": [WET]}, mode="strict")["exact"]["recall"] == 50
    articled = {"p||1": ["the moisture of the cup was dry before and wet afterwards"]}
    assert original(articled, {"p||1": [WET]})["exact"]["f1"] == 0
    assert original(articled, {"p||1": [WET]}, mode="strict")["exact"]["f1"] == 100
    told_apart = (
        "time of cup was day before before and now afterwards",
        "time of cup was day before and now afterwards",
    )
    assert original({"p||1": [told_apart[0]]}, {"p||1": [told_apart[1]]})["exact"]["f1"] == 100
    assert original({"p||1": [told_apart[0]]}, {"p||1": [told_apart[1]]}, mode="strict")["exact"]["f1"] == 0


def test_micro_pools_the_answers_of_all_steps() -> None:
    gold = {"p||1": [WET], "p||2": [WET, DRY, "size of cup was big before and small afterwards"]}
    score = original(gold, {"p||1": [WET], "p||2": [DRY]}, mode="strict", matchers=["exact"])
    assert tuple(score["exact"].values()) == pytest.approx((100, 200 / 3, (100 + 50) / 2))
    assert tuple(score["exact micro"].values()) == pytest.approx((100, 50, 200 / 3))


def test_strict_refuses_a_missing_step_and_compat_warns() -> None:
    gold = {"p||1": [WET], "p||2": []}
    with pytest.raises(InputError, match=r"no prediction for 1 of 2 gold steps: p\|\|2"):
        original(gold, {"p||1": [WET]}, mode="strict")
    score = original(gold, {"p||1": [WET]})
    assert score["exact"]["f1"] == 100
    assert score.warnings == ("no prediction for 1 of 2 gold steps: p||2",)


def test_scoring_a_stream_holds_numbers_not_sentences() -> None:
    size, count = 8_000, 150

    def stream() -> Iterator[tuple[str, list[str]]]:
        for step in range(1, count + 1):
            yield f"p||{step}", ["tea " * (size // 4)]

    original(stream(), stream(), matchers=["exact"])  # caches of words and imports do not count
    tracemalloc.start()
    original(stream(), stream(), matchers=["exact"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size * count / 4


def test_the_example_in_the_docstring_holds() -> None:
    assert doctest.testmod(sys.modules[original.__module__]) == (0, 3)
