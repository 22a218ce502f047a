"""Gold and predicted procedures are paired by id, and what does not agree is told."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.errors import InputError, UnknownNameError
from fluents.records import Procedure, Provenance, StateChange, Trace
from fluents.scoring import Mode
from fluents.scoring.alignment import NOTHING_SCORED, ProcedurePairs, first_problems, first_three
from fluents.task_records import CrepeCase


def trace(name: str, steps: int = 2, entity: str = "tea") -> Trace:
    change = StateChange(step=1, entity=entity, attribute="heat", before="cold", after="hot")
    return Trace(procedure=Procedure(id=name, steps=("Do it.",) * steps), changes=(change,))


def ids(gold: list[Trace], pred: list[Trace], mode: Mode = "strict") -> list[tuple[str, str]]:
    return [(g.id, p.id) for g, p in ProcedurePairs(gold, pred, mode)]


@given(st.sets(st.text(min_size=1).filter(str.strip), min_size=1, max_size=8), st.randoms())
def test_any_order_gives_every_pair_once(names: set[str], random: Random) -> None:
    gold = [trace(name) for name in sorted(names)]
    pred = random.sample(gold, len(gold))
    assert sorted(ids(gold, pred)) == [(name, name) for name in sorted(names)]


def test_strict_names_the_first_three_missing_procedures() -> None:
    gold = [trace(name) for name in "abcdef"]
    with pytest.raises(InputError, match="no prediction for 5 of 6 gold procedures: a, b, c and 2 more"):
        ids(gold, [trace("f")])


def test_strict_asks_whether_it_is_another_split() -> None:
    with pytest.raises(InputError, match="are for this dataset and split"):
        ids([trace("a")], [trace("b")])


def test_compat_says_where_a_score_says_nothing() -> None:
    pairs = ProcedurePairs([trace("a")], [trace("b")], "compat")
    assert len(list(pairs)) == 1
    assert pairs.warnings[-1] == NOTHING_SCORED


def test_strict_refuses_procedures_of_another_length() -> None:
    told = "either the gold or the prediction does not cover these steps of procedure a: 2, 3"
    with pytest.raises(InputError, match=told):
        ids([trace("a", steps=3)], [trace("a", steps=1)])


def test_compat_warns_of_what_strict_refuses() -> None:
    pairs = ProcedurePairs([trace("a"), trace("b")], [trace("a", steps=1), trace("c")], "compat")
    (a, said_of_a), (b, said_of_b) = pairs
    assert (a.id, said_of_a.id, b.id, said_of_b.id) == ("a", "a", "b", "b")
    assert said_of_b.changes == ()
    assert [warning.partition(":")[0] for warning in pairs.warnings] == [
        "either the gold or the prediction does not cover these steps of procedure a",
        "no prediction for 1 of 2 gold procedures",
        "1 prediction without a gold procedure",
    ]


@pytest.mark.parametrize("mode", ["compat", "strict"])
@pytest.mark.parametrize("side", [0, 1])
def test_an_id_that_comes_twice_is_refused(mode: Mode, side: int) -> None:
    sides = [[trace("a")], [trace("a")]]
    sides[side].append(trace("a"))
    with pytest.raises(InputError, match=r"these ids occur in several .*s: a"):
        ids(sides[0], sides[1], mode)


@pytest.mark.parametrize("mode", ["compat", "strict"])
def test_gold_without_a_procedure_is_an_error(mode: Mode) -> None:
    with pytest.raises(InputError, match="the gold contains no procedure"):
        ids([], [trace("a")], mode)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="compat, strict"):
        ProcedurePairs([trace("a")], [trace("a")], cast(Mode, "lenient"))


def test_a_missing_case_becomes_an_empty_case() -> None:
    gold = CrepeCase(procedure=Procedure(id="a", steps=("Do it.",)), annotator="me")
    ((_, pred),) = ProcedurePairs([gold], [], "compat")
    assert pred == CrepeCase(procedure=gold.procedure)


def test_the_hash_is_of_what_the_gold_says() -> None:
    def data_hash(*gold: Trace) -> str:
        pairs = ProcedurePairs(gold, gold, "strict")
        list(pairs)
        return pairs.data_hash

    a, b = trace("a"), trace("b")
    assert data_hash(a, b) == data_hash(b, a) == data_hash(a.replace(provenance=Provenance(dataset="x")), b)
    assert len({data_hash(a), data_hash(a, b), data_hash(trace("a", entity="cup"))}) == 3


def test_only_unpaired_procedures_are_held() -> None:
    """Memory must not grow with the files where they are in the same order."""
    read = 0

    def stream() -> Iterator[Trace]:
        nonlocal read
        for number in range(200):
            read += 1
            yield trace(str(number))

    for count, _ in enumerate(ProcedurePairs(stream(), stream(), "strict"), start=1):
        assert read == 2 * count


def test_a_long_list_is_cut_short() -> None:
    assert first_three(["a", "b"]) == "a, b"
    assert first_three(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert first_problems(["no a", "no b"]) == "no a; no b"
    assert first_problems(["no a", "no b", "no c", "no d"]) == "no a; no b; no c; and 1 more problem"
