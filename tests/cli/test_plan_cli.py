"""fluents plan, pddl and eval plan: from files to plans, and what people can get wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from faulty_server import Body, FaultyServer, prompt_of
from fluents import jsonl
from fluents.cli import main
from fluents.planning import planners
from fluents.planning.planners import Solution
from fluents.planning.worker import NO_FACT
from fluents.records import Procedure, StateChange, Trace
from fluents.task_records import PddlTask

CHANGES = (
    StateChange(step=1, entity="kettle", attribute="place", before="in sink", after="on hob"),
    StateChange(step=2, entity="water", attribute="heat", before="cold", after="hot"),
    StateChange(step=3, entity="[red]cup\x1b[31m", attribute="content", before="empty", after="full"),
)
TEA = Trace(
    procedure=Procedure(id="tea", goal="Make tea", steps=("Move it.", "Boil the water.", "Fill the cup.")),
    changes=CHANGES,
)
DOMAIN = """(define (domain kettle) (:predicates (hot ?k -kettle))
  (:action boil :parameters (?k - kettle) :effect (hot ?k)))
"""
PROBLEM = "(define (problem tea) (:domain kettle) (:objects pot - kettle) (:init) (:goal (hot pot)))"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fluents", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = (text.decode() for text in capsysbinary.readouterr())
        assert "Traceback" not in err
        return int(ended.value.code or 0), out, err

    return call


@pytest.fixture
def tea(tmp_path: Path) -> Path:
    jsonl.write([TEA], tmp_path / "tea.jsonl")
    return tmp_path / "tea.jsonl"


def test_a_plan_is_shown_and_written_as_a_trace_with_its_pddl(run: Run, tea: Path, tmp_path: Path) -> None:
    output = tmp_path / "plan.jsonl"
    status, out, _ = run("plan", tea, "--goal", "water hot", "--planner", "built-in", "-o", output, "--pddl", tmp_path)
    assert status == 0
    assert out == "water hot\n  goal: heat of water is hot\n  2. Boil the water.\n"
    [trace] = jsonl.read(output)
    assert isinstance(trace, Trace)
    assert [change.after for change in trace.changes] == ["hot"]
    assert (tmp_path / "tea-domain.pddl").read_text().startswith("(define (domain make-tea)")
    assert run("pddl", tmp_path / "tea-domain.pddl", tmp_path / "tea-problem.pddl", "--strict", "--solve")[0] == 0


def test_json_is_one_line_for_each_trace(run: Run, tea: Path) -> None:
    status, out, _ = run("plan", tea, "--order", "--planner", "built-in", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["status"], found["steps"]) == ("solved", [1, 2, 3])


def test_a_goal_that_no_state_says_is_told_with_what_could_be_said(run: Run, tea: Path) -> None:
    status, _, err = run("plan", tea, "--goal", "water red")
    assert status == 1
    assert "no state in the trace matches 'water red'" in err
    assert "set --goal to an entity" in err
    assert "water hot" in err


def test_a_goal_that_is_true_at_the_beginning_needs_no_step(run: Run, tea: Path) -> None:
    status, out, _ = run("plan", tea, "--goal", "water cold", "--planner", "built-in")
    assert status == 0
    assert "goal: heat of water is cold\n  the goal is true at the beginning: no step is needed\n" in out


def test_options_for_a_language_model_need_the_method(run: Run, tea: Path) -> None:
    status, _, err = run("plan", tea, "--model", "NAME")
    assert status == 2
    assert "--model works only with --method prompted" in err


def test_a_language_model_writes_the_domain(run: Run, tea: Path) -> None:
    def answer(body: Body) -> str:
        return PROBLEM if "\nDomain:" in prompt_of(body) else DOMAIN

    with FaultyServer(answer) as server:
        model = ("--method", "prompted", "--model", "m", "--base-url", server.base_url, "--no-cache")
        status, out, _ = run("plan", tea, *model, "--planner", "built-in")
    assert status == 0
    assert "repaired: text, line 1, column 46: no space after the hyphen of -kettle: added" in out
    assert "1. (boil pot)" in out


def test_pddl_is_repaired_and_printed(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "kettle.pddl"
    file.write_text(DOMAIN + PROBLEM)
    status, out, err = run("pddl", file)
    assert status == 0
    assert "type kettle is not declared: added" in err
    (tmp_path / "again.pddl").write_text(out)
    assert run("pddl", tmp_path / "again.pddl", "--strict") == (0, out, "")
    assert run("pddl", file, "--strict")[0] == 2
    assert json.loads(run("pddl", file, "--solve", "--json", "--planner", "built-in")[1])["plan"] == ["(boil pot)"]
    file.write_text((DOMAIN + PROBLEM).replace("(:goal (hot pot))", "(:goal (and (hot pot) (cold pot)))"))
    status, out, _ = run("pddl", file, "--solve", "--planner", "built-in")
    assert status == 1
    assert "(cold pot): no action makes it true" in out


def test_a_proof_that_names_no_fact_is_shown_as_one(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kettle.pddl").write_text(DOMAIN + PROBLEM)
    without = Solution("unsolvable", "fast-downward", reason=NO_FACT)
    monkeypatch.setattr(planners, "solve", lambda *_, **__: without)
    status, out, _ = run("pddl", tmp_path / "kettle.pddl", "--solve")
    assert (status, out) == (1, f"  no plan: there is no way to reach the goal\n    {NO_FACT}\n")


def test_a_file_with_a_byte_order_mark_is_valid(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plain.pddl").write_text(DOMAIN.replace("-kettle", "- kettle") + PROBLEM)
    valid = run("pddl", tmp_path / "plain.pddl")[1]
    (tmp_path / "marked.pddl").write_text(valid, encoding="utf-8-sig")
    assert run("pddl", tmp_path / "marked.pddl", "--strict") == (0, valid, "")


@pytest.mark.parametrize(
    ("domain", "problem", "wrong", "message"),
    [
        (DOMAIN, PROBLEM, "domain.pddl", "domain.pddl, line 1, column 46: no space after the hyphen of -kettle: added"),
        ("", PROBLEM, "domain.pddl", "contains no domain"),
        ("\x00\x01\ufffd", PROBLEM, "domain.pddl", "contains no domain"),
        (DOMAIN, "", "problem.pddl", "contains no problem"),
        (DOMAIN, PROBLEM.replace("(:goal (hot pot))", ""), "problem.pddl", "the problem has no goal"),
    ],
)
def test_an_error_in_pddl_names_the_file(
    run: Run, tmp_path: Path, domain: str, problem: str, wrong: str, message: str
) -> None:
    (tmp_path / "domain.pddl").write_text(domain)
    (tmp_path / "problem.pddl").write_text(problem)
    status, _, err = run("pddl", tmp_path / "domain.pddl", tmp_path / "problem.pddl", "--strict")
    assert status == 2
    assert message in err
    assert str(tmp_path / wrong) in err


def test_domains_are_scored(run: Run, tmp_path: Path) -> None:
    one = PddlTask(
        procedure=TEA.procedure,
        text="",
        domain=DOMAIN,
        domain_header="(define (domain kettle) (:predicates (hot ?k -kettle))",
        actions="(:action boil",
        action_step_map="",
        problems={"tea": PROBLEM},
    )
    file, predicted = tmp_path / "tasks.jsonl", tmp_path / "predicted.jsonl"
    jsonl.write([one], file)
    with FaultyServer(lambda _: "(:action boil :parameters (?k - kettle) :effect (hot ?k))") as server:
        model = ("--method", "prompted", "--model", "m", "--base-url", server.base_url, "--no-cache")
        assert run("plan", file, *model, "-o", predicted)[0] == 0
    status, out, _ = run("eval", "plan", "--gold", file, "--pred", predicted, "--planner", "built-in", "--json")
    assert status == 0
    assert json.loads(out)["scores"]["problems solved"]["share"] == 100
