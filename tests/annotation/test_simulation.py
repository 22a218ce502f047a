"""Simulated projects: people without errors make the gold again, and errors cost what theory says."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import fluents as fl
from command_run import Run
from fluents.annotation import check_answer, design_of, items
from fluents.annotation.design import STAGE_KINDS, Pay, ProjectDesign
from fluents.annotation.scripted_people import (
    ErrorRates,
    PlantedShares,
    ScriptedAnnotator,
    Truth,
    planted,
    with_unique_steps,
)
from fluents.annotation.simulation import judges_needed, simulate
from fluents.annotation.simulation_view import simulation_view
from fluents.errors import InputError
from fluents.records import Procedure, Trace


@pytest.fixture(scope="module")
def gold() -> list[Trace]:
    """Eight procedures of our own corpus."""
    return fl.load("fluents:dev")[:8]


PERFECT = [ErrorRates()] * 6


def with_stages(stages: str, **settings: int) -> ProjectDesign:
    design = design_of("test", stages)
    return design.replace(stages=tuple(stage.replace(**settings) for stage in design.stages))


@pytest.mark.parametrize("stages", ["author,vet", "clean-procedures,clean-steps,clean-changes", "correct", "vet,audit"])
def test_people_without_errors_make_the_gold_again(gold: list[Trace], stages: str) -> None:
    """Whatever was planted is found, and nothing else is lost."""
    found = simulate(with_stages(stages, max_changes=50), gold, PERFECT)
    last = found.stages[-1]
    assert (last.noun, last.precision, last.recall) == ("changes", 1, 1)
    assert all(stage.right in (1, None) for stage in found.stages)


STEPS_WITHOUT_TEXT = """id,step,entity,attribute,before,after
tea,1,water,temperature,cold,hot
tea,2,leaves,wetness,dry,wet
tea,3,tea,location,in pot,in cup
shelf,1,wood,shape,whole,cut
shelf,2,nail,location,in box,in wood
shelf,3,board,color,brown,white
"""


def test_steps_without_a_text_are_told_apart(run: Run, tmp_path: Path) -> None:
    """Authors used to write the changes of all these steps at each of them."""
    (tmp_path / "gold.csv").write_text(STEPS_WITHOUT_TEXT)
    perfect = ("--miss", "0", "--invent", "0", "--flip", "0", "--json")
    found = run("annotate", "simulate", tmp_path / "gold.csv", "--stages", "author:1", *perfect).json
    [stage] = found["stages"]
    assert (stage["kept"], stage["precision"], stage["recall"]) == (6, 1, 1)


@pytest.mark.parametrize("stages", ["author,vet", "clean-procedures,clean-steps,clean-changes", "correct", "vet,audit"])
def test_people_without_errors_make_the_gold_again_if_all_steps_have_the_same_text(
    gold: list[Trace], stages: str
) -> None:
    """Also after planted steps were removed and the others renumbered."""
    same = [
        trace.replace(procedure=trace.procedure.replace(steps=("Stir.",) * len(trace.procedure.steps)))
        for trace in gold
    ]
    last = simulate(with_stages(stages, max_changes=50), same, PERFECT).stages[-1]
    assert (last.precision, last.recall) == (1, 1)


def test_a_number_behind_a_text_makes_no_other_text_again() -> None:
    [trace] = with_unique_steps([Trace(procedure=Procedure(id="a", goal="g", steps=("Stir.", "Stir. (1)", "stir.")))])
    assert trace.procedure.steps == ("Stir. (2)", "Stir. (1)", "stir. (3)")


def test_planted_mistakes_are_there_before_anybody_looks(gold: list[Trace]) -> None:
    wrong = planted(gold, PlantedShares(procedures=0, steps=0, changes=0.32), seed=0)
    share = 1 - sum(len(trace.changes) for trace in gold) / sum(len(trace.changes) for trace in wrong)
    assert share == pytest.approx(0.32, abs=0.05)
    assert planted(gold[:1], PlantedShares(), seed=0) == gold[:1]


def test_three_judges_keep_what_theory_says(gold: list[Trace]) -> None:
    """With a tenth of errors, two of three are right in 0.9³ + 3 · 0.9² · 0.1 = 97.2 % of the cases."""
    rates = [ErrorRates(flip=0.1)] * 5
    [stage] = simulate(design_of("test", "vet"), gold, rates).stages
    assert stage.recall == pytest.approx(0.972, abs=0.02)
    assert stage.right == pytest.approx(0.972, abs=0.02)
    assert stage.full == pytest.approx(0.9**3 + 0.1**3, abs=0.04)
    assert stage.decisions == 3 * stage.items


def test_two_authors_find_more_than_one(gold: list[Trace]) -> None:
    """Each misses 40 %, so one finds 60 % and two find 84 %."""
    design = with_stages("author", max_changes=50)
    rates = [ErrorRates(miss=0.4)] * 2
    [two] = simulate(design, gold, rates).stages
    [one] = simulate(with_stages("author", max_changes=50, judges=1), gold, rates).stages
    assert two.recall == pytest.approx(0.84, abs=0.04)
    assert one.recall == pytest.approx(0.6, abs=0.06)
    assert two.precision == one.precision == 1


def test_the_same_seed_gives_the_same_numbers(gold: list[Trace]) -> None:
    design = design_of("test", "author,vet")
    rates = [ErrorRates(miss=0.2, invent=0.2, flip=0.2)] * 4
    assert simulate(design, gold[:3], rates, seed=1) == simulate(design, gold[:3], rates, seed=1)
    assert simulate(design, gold[:3], rates, seed=1) != simulate(design, gold[:3], rates, seed=2)


def test_pay_is_summed_by_stage(gold: list[Trace]) -> None:
    design = design_of("test", "author,vet")
    author, vet = design.stages
    paid = design.replace(stages=(author.replace(pay=Pay(per_change=1)), vet.replace(pay=Pay(per_item=0.5))))
    found = simulate(paid, gold[:2], PERFECT)
    assert found.stages[1].pay == found.stages[1].decisions * 0.5
    assert found.pay == sum(stage.pay or 0 for stage in found.stages)
    assert simulate(design, gold[:2], PERFECT).pay is None


def test_too_few_people_or_procedures_are_an_error(gold: list[Trace]) -> None:
    with pytest.raises(InputError, match="at least 3 annotators, but only 2 are simulated"):
        simulate(design_of("test", "author,vet"), gold, PERFECT[:2])
    with pytest.raises(InputError, match="no procedures"):
        simulate(design_of("test", "vet"), [], PERFECT)
    bare = [Trace(procedure=trace.procedure) for trace in gold]
    with pytest.raises(InputError, match="no changes, but the stage vet needs some"):
        simulate(design_of("test", "clean-steps,vet"), bare, PERFECT)
    assert simulate(design_of("test", "clean-steps"), bare, PERFECT).stages[0].recall == 1
    both = with_stages("author").stages[0].replace(modalities=("with_image", "without_image"))
    with pytest.raises(InputError, match="at least 4 annotators"):
        simulate(design_of("test", "author").replace(stages=(both,)), gold, PERFECT[:3])


def test_more_judges_keep_more_and_the_table_says_so(gold: list[Trace]) -> None:
    """Of an odd number of judges, more are better."""
    found = judges_needed(design_of("test", "vet,salience"), gold[:4], errors=(0.2,))
    assert [(one.kind, one.judges) for one in found] == [("vet", judges) for judges in range(1, 8)]
    recall = {one.judges: one.recall or 0 for one in found}
    assert recall[1] < recall[3] < recall[5] < recall[7]
    assert recall[1] == pytest.approx(0.8, abs=0.06)


def test_the_report_is_a_table_and_json(gold: list[Trace]) -> None:
    told: list[tuple[int, int]] = []
    design = design_of("test", "vet,salience")
    found = simulate(design, gold[:2], PERFECT, table=True, progress=lambda *done: told.append(done))
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(simulation_view(found))
    text = console.export_text()
    assert "1 vet" in text
    assert "20% errors" in text
    assert told == [(done, 30) for done in range(1, 31)]
    values = found.to_dict()
    assert values["stages"][0]["precision"] == 1
    assert len(values["needed"]) == 28


def test_the_command_prints_a_table_or_json(run: Run) -> None:
    source = ("annotate", "simulate", "fluents:dev", "--limit", "2")
    done = run(*source, "--stages", "author,vet", "--annotators", "3")
    assert done.status == 0
    assert "2 vet" in done.out
    assert "pay" not in done.out
    values = run(*source, "--stages", "vet", "--flip", "0", "--json").json
    assert values["stages"][0]["recall"] == 1
    assert run(*source).status == run(*source, "--stages", "author,vet", "--annotators", "2").status == 2


rates = st.builds(ErrorRates, miss=st.floats(0, 1), invent=st.floats(0, 1), flip=st.floats(0, 1))


@given(st.sampled_from(STAGE_KINDS), rates, st.integers(0, 5))
def test_a_scripted_annotator_fills_in_every_form(kind: str, rates: ErrorRates, seed: int) -> None:
    """Whatever the rates, the answers are ones that the server would take."""
    gold = GOLD_PAIR
    truth = Truth.of(gold)
    person = ScriptedAnnotator("S1", rates, truth, gold[0].changes, seed)
    design = design_of("test", kind)
    blind = design.replace(stages=(design.stages[0].replace(blind_first=True),))
    for item in list(items(blind, 1, gold, systems={"one": gold}))[:3]:
        assert check_answer(item, person.answer(item))


GOLD_PAIR = fl.load("fluents:dev")[8:10]
