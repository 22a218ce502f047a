"""Complete sentences: the published scores, the gold they are held against, and what must hold of any answer."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.data.datasets import load_traces
from fluents.metrics.complete import EXPANDED, PLAIN, complete, gold_units
from fluents.records import Alternatives, AttributeCluster, EntityCluster, Procedure, StateChange, Trace
from fluents.scoring import Mode
from fluents.text.template import parse_all

PROCEDURE = Procedure(id="tea", steps=("Boil.", "Pour."))
POT = EntityCluster(
    name="pot",
    mentions=("pot", "kettle"),
    expansions=("boiler",),
    attributes=(AttributeCluster(name="heat", mentions=("heat", "temperature")),),
)
HEAT = StateChange(
    step=1,
    entity="pot",
    attribute="heat",
    before="cold",
    after="hot",
    alternatives=Alternatives(before=("cold", "cool"), after=("hot", "the boiling point")),
)
PLACE = StateChange(step=1, entity="pot", attribute="place", before="shelf", after="stove")
GOLD = Trace(procedure=PROCEDURE, changes=(HEAT, PLACE), clusters=(POT,))
RELEASED = "allenai/openpi-dataset/v2.0/output/dev_schema_gold_2{}.json"


def said(*sentences: str) -> Trace:
    changes, rejects = parse_all(sentences, 1)
    return Trace(procedure=PROCEDURE, changes=tuple(changes), rejects=tuple(rejects))


@pytest.mark.parametrize(
    ("model", "mode", "plain", "expanded"),
    [
        ("davinci", "compat", "3.4", "3.9"),
        ("gpt-3.5", "compat", "1.6", "1.9"),
        ("davinci", "strict", "4.3", "5.1"),
        ("gpt-3.5", "strict", "2.2", "2.8"),
    ],
)
@pytest.mark.usefixtures("mirror")
def test_released_outputs_get_their_known_scores(model: str, mode: Mode, plain: str, expanded: str) -> None:
    pred = load_traces(f"openpi2-outputs:{model}-sentences")
    score = complete(load_traces("openpi2:dev"), pred, mode=mode)
    assert [f"{score[row]['f1']:.1f}" for row in (PLAIN, EXPANDED)] == [plain, expanded]


@pytest.mark.parametrize("expanded", [False, True])
def test_units_made_from_the_trace_are_the_released_ones(mirror: Path, expanded: bool) -> None:
    released = json.loads((mirror / RELEASED.format("_og" if expanded else "")).read_bytes())
    for trace in load_traces("openpi2:dev"):
        units = gold_units(trace, expanded=expanded)
        assert [[set(unit) for unit in units[step]] for step in units] == [
            [set(unit) for unit in step] for step in released[trace.id]
        ]


@pytest.mark.usefixtures("mirror")
def test_published_gold_scores_1_against_itself_in_strict() -> None:
    gold = list(load_traces("openpi2:dev"))
    assert complete(gold, gold, mode="strict")[PLAIN] == {"precision": 100, "recall": 100, "f1": 100}


def test_a_unit_is_one_entity_in_one_step() -> None:
    (unit,) = gold_units(GOLD)[1]
    assert set(unit) == {
        "heat of pot was cold before and hot after",
        "temperature of pot was cold before and hot after",
        "heat of kettle was cold before and hot after",
        "temperature of kettle was cold before and hot after",
        "place of pot was shelf before and stove after",
        "place of kettle was shelf before and stove after",
    }
    assert gold_units(GOLD)[2] == []


def test_compat_takes_a_part_of_a_sentence_for_the_sentence() -> None:
    """Even of the empty sentence, and however often it is said; the unit is found once."""
    sums = complete([GOLD], [said("pot was cold before", "", "", "place of pot")]).statistics.sums()
    assert [sums[f"{PLAIN}.{part}"] for part in ("right", "predicted", "found", "gold")] == [4, 4, 1, 1]


def test_compat_knows_only_the_first_wording_of_a_state() -> None:
    assert complete([GOLD], [said("heat of pot was cool before and hot after")])[PLAIN]["f1"] == 0


def test_strict_takes_all_wordings_and_no_parts() -> None:
    answers = ("Heat of the Kettle was cool before and boiling point afterwards", "pot was cold before", "", "no idea")
    sums = complete([GOLD], [said(*answers)], mode="strict").statistics.sums()
    assert [sums[f"{PLAIN}.{part}"] for part in ("right", "predicted", "found", "gold")] == [1, 3, 1, 2]


def test_expansions_have_a_row_of_their_own() -> None:
    score = complete([GOLD], [said("heat of boiler was cold before and hot afterwards")], mode="strict")
    assert (score[PLAIN]["recall"], score[EXPANDED]["recall"]) == (0, 50)
    assert list(complete([GOLD.replace(clusters=())], [GOLD]).rows) == [PLAIN]


words = st.sampled_from(["pot", "the pot", "kettle", "cup", "heat", "cold", "Hot", "cool", "shelf"])
templated = st.builds("{} of {} was {} before and {} afterwards".format, words, words, words, words)
sentences = templated | st.sampled_from(["", " ", "nonsense", "There will be no change.", "pot"])
answers = st.lists(sentences, max_size=6)


@given(answers, answers, st.randoms())
def test_strict_is_bounded_and_knows_no_order(meant: list[str], told: list[str], random: Random) -> None:
    gold = said(*meant).replace(clusters=(POT,))
    score = complete([gold], [said(*told)], mode="strict")
    assert all(0 <= value <= 100 for row in score.rows.values() for value in row.values())
    assert complete([gold], [said(*random.sample(told, len(told)))], mode="strict").rows == score.rows
    assert complete([gold], [said(*told, *told)], mode="strict").rows == score.rows


@given(answers)
def test_strict_gold_scores_1_against_itself(meant: list[str]) -> None:
    gold = said(*meant).replace(clusters=(POT,))
    assert all(v == 100 for row in complete([gold], [gold], mode="strict").rows.values() for v in row.values())


@given(answers, answers)
def test_compat_is_bounded(meant: list[str], told: list[str]) -> None:
    score = complete([said(*meant)], [said(*told)])
    assert all(0 <= value <= 100 for row in score.rows.values() for value in row.values())
