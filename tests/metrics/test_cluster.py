"""The cluster metric: by hand, with an embedder whose clusters are plain to see, and on the published gold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.metrics.cluster import cluster, cluster_statistics
from fluents.records import Procedure, StateChange, Trace
from fluents.scoring import Mode
from fluents.text.embedders import Vectors


class ByEntity:
    """Sentences about the same thing are alike, all others are not."""

    name = "by-entity"
    threshold = 0.5
    things = ("cup", "pan", "towel", "tea", "oven")

    def __call__(self, texts: Sequence[str]) -> Vectors:
        rows = [[float(thing in text) for thing in self.things] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), len(self.things))


def said(entity: str, before: str = "dry", after: str = "wet", attribute: str = "moisture") -> str:
    return f"{attribute} of {entity} was {before} before and {after} afterwards"


WORKED_GOLD = [said("cup"), said("cup", attribute="wetness"), said("pan"), said("towel")]
WORKED_PRED = [said("cup"), said("cup", attribute="dampness"), said("pan", after="soaked"), said("tea"), said("pan")]


def test_a_worked_case() -> None:
    """Gold clusters {cup cup} {pan} {towel}, predicted {cup cup} {pan pan} {tea}.

    Exact: cup and pan match through their best pair, tea and towel do not: 2 of 3 either way.
    ROUGE: tea's sentence shares 3 of 4 words with towel's, the only cluster left for it: (1 + 1 + 3/4) / 3.
    """
    score = cluster({"p||1": WORKED_GOLD}, {"p||1": WORKED_PRED}, embedder=ByEntity(), matchers=["exact", "rouge"])
    assert tuple(score["exact"].values()) == pytest.approx((200 / 3,) * 3)
    assert tuple(score["rouge"].values()) == pytest.approx((100 * 2.75 / 3,) * 3)


def test_saying_it_again_in_other_words_gains_nothing() -> None:
    gold = {"p||1": [said("cup"), said("pan")]}
    once = cluster(gold, {"p||1": [said("cup"), said("oven")]}, embedder=ByEntity())
    often = cluster(gold, {"p||1": [said("cup"), said("cup", attribute="wetness"), said("oven")]}, embedder=ByEntity())
    assert once["exact"] == often["exact"] == pytest.approx({"precision": 50, "recall": 50, "f1": 50})


def test_clusters_are_assigned_one_to_one_for_the_greatest_sum() -> None:
    """Row 0 takes its second-best so that row 1 can have its only one: .6 + .9 beats .8 + .1."""
    found = cluster_statistics([[0.8, 0.6], [0.9, 0.1]], [0, 1], [0, 1])
    assert found == pytest.approx((0.75, 0.75, 0.75, 1.5))
    assert cluster_statistics([[0.8, 0.6], [0.9, 0.1]], [7, 7], [0, 1]) == pytest.approx((0.45, 0.9, 0.6, 0.9))


def test_given_gold_clusters_are_used_and_said_so() -> None:
    """The gold calls cup and pan the same thing, which the embedder would not."""
    change = StateChange(step=1, entity="cup", attribute="moisture", before="dry", after="wet", cluster=3)
    other = change.replace(entity="pan")
    procedure = Procedure(id="p", steps=("Rinse.",))
    given_gold = Trace(procedure=procedure, changes=(change, other))
    pred = {"p||1": [said("cup")]}
    score = cluster([given_gold], pred, embedder=ByEntity())
    assert tuple(score["exact"].values()) == (100, 100, 100)
    assert "|embedder:by-entity|threshold:0.5|clusters:given|" in str(score.signature)
    made_gold = Trace(procedure=procedure, changes=(change.replace(cluster=None), other))
    score = cluster([made_gold], pred, embedder=ByEntity())
    assert tuple(score["exact"].values()) == pytest.approx((100, 50, 200 / 3))
    assert "|clusters:computed|" in str(score.signature)
    both = [given_gold, made_gold.replace(procedure=procedure.replace(id="q"))]
    mixed = cluster(both, pred | {"q||1": []}, embedder=ByEntity())
    assert "|clusters:computed+given|" in str(mixed.signature)


@pytest.mark.parametrize(
    ("gold", "pred", "expected"),
    [([], [], (100, 100, 100)), ([], ["x"], (0, 100, 0)), (["x"], [], (100, 0, 0)), (["x"], ["y"], (0, 0, 0))],
)
def test_the_rules_for_empty_steps(gold: list[str], pred: list[str], expected: tuple[float, float, float]) -> None:
    score = cluster({"p||1": gold}, {"p||1": pred}, embedder=ByEntity(), matchers=["exact"])
    assert tuple(score["exact"].values()) == expected


def test_no_change_is_no_answer() -> None:
    none = "There will be no change"
    gold = {"p||1": [said("cup")]}
    for pred in ([none], [none, none]):
        assert cluster(gold, {"p||1": pred}, embedder=ByEntity())["exact"]["precision"] == 100
    company = {"p||1": [none, said("cup")]}
    assert cluster(gold, company, embedder=ByEntity())["exact"]["precision"] == 50
    assert cluster(gold, company, embedder=ByEntity(), mode="strict")["exact"]["precision"] == 100


def test_strict_pools_clusters_and_reads_fields() -> None:
    gold = {"p||1": [said("cup")], "p||2": [said("the pan"), said("tea"), said("towel")]}
    pred = {"p||1": [said("oven")], "p||2": [said("pan")]}
    score = cluster(gold, pred, embedder=ByEntity(), mode="strict", matchers=["exact"])
    assert tuple(score["exact micro"].values()) == pytest.approx((50, 25, 100 / 3))
    assert tuple(score["exact"].values()) == pytest.approx((50, 50 / 3, 25))


entities = st.sampled_from([*ByEntity.things, "the cup", "the tea"])
states = st.sampled_from(["wet", "dry", "very wet"])
answers = st.lists(st.builds(said, entities, states, states) | st.just("gibberish"), max_size=6)
Steps = dict[str, list[str]]
both_sides = st.tuples(*[st.fixed_dictionaries({"p||1": answers, "p||2": answers, "q||1": answers})] * 2)


@given(answers, answers)
def test_strict_gives_full_marks_to_the_gold_itself(first: list[str], second: list[str]) -> None:
    gold = {"p||1": first, "q||1": second}
    score = cluster(gold, gold, embedder=ByEntity(), mode="strict")
    assert all(value == pytest.approx(100) for row in score.rows.values() for value in row.values())


@pytest.mark.parametrize("mode", ["compat", "strict"])
@given(data=both_sides, random=st.randoms())
def test_order_does_not_matter_and_scores_are_bounded(mode: Mode, data: tuple[Steps, Steps], random: Random) -> None:
    turned = [{step: random.sample(said, len(said)) for step, said in reversed(side.items())} for side in data]
    one, other = (cluster(*sides, embedder=ByEntity(), mode=mode) for sides in (data, turned))
    assert one.signature == other.signature
    for row in one.rows:
        assert one[row] == pytest.approx(other[row])
        assert all(0 <= value <= 100 + 1e-9 for value in one[row].values())


def test_published_gold_against_itself(mirror: Path) -> None:
    """With the vectors that come with the installation; BLEU of a one-word answer is not 1, but none stands alone."""
    path = mirror / "allenai/openpi-dataset/data/gold/test/id_answers.jsonl"
    with path.open(encoding="utf-8") as lines:
        gold = {line["id"]: line["answers"] for line in map(json.loads, lines)}
    score = cluster(gold, gold)
    for matcher in ("exact", "bleu", "rouge"):
        assert tuple(score[matcher].values()) == pytest.approx((100, 100, 100), abs=1e-5)
    assert "|embedder:wordllama-256|threshold:0.65|clusters:computed|" in str(score.signature)
