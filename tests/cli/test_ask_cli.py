"""fluents ask: from texts, traces and CREPE to tables and files, and from there to scores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from command_run import Run
from faulty_server import Body, FaultyServer, in_turn, prompt_of
from fluents import jsonl
from fluents.records import Procedure, StateChange, Trace
from fluents.task_records import CrepeCase, Likelihood

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTION = "Can she see what is in the room?"
TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water in the kettle.", "Pour it."))
GOLD = CrepeCase(procedure=TEA, likelihoods=(Likelihood(step=1, change="more likely", event="The kettle steams."),))
HEAT = StateChange(step=1, entity="kettle", attribute="heat", before="cold", after="hot")


@pytest.fixture
def crepe(tmp_path: Path) -> tuple[Path, Path]:
    """Gold with one event, and traces of its procedure."""
    gold, traces = tmp_path / "gold.jsonl", tmp_path / "traces.jsonl"
    jsonl.write([GOLD], gold)
    jsonl.write([Trace(procedure=TEA, changes=(HEAT,))], traces)
    return gold, traces


def test_a_person_gets_a_table_and_a_pipe_a_line(run: Run) -> None:
    table = run("ask", EXAMPLES / "windy_room.jsonl", "The room is bright enough to read in.", "--table").out
    assert "before" in table
    assert "brightness of room" in table
    [line] = run("ask", EXAMPLES / "windy_room.jsonl", QUESTION).out.splitlines()
    assert [one["step"] for one in json.loads(line)["likelihoods"]] == [0, 1, 2, 3, 4]


def test_a_text_needs_no_model_where_no_states_are_wanted(run: Run) -> None:
    done = run("ask", EXAMPLES / "windy_room.md", QUESTION, "--states", "none", "--table")
    assert done.status == 0, done.err
    assert "cannot tell" in done.out


@pytest.mark.slow
@pytest.mark.usefixtures("model_cache")
def test_a_text_is_tracked_first(run: Run, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "windy_room.md", tmp_path / "room.md")
    done = run("ask", tmp_path / "room.md", QUESTION, "-o", tmp_path / "answer.jsonl")
    assert done.status == 0, done.err
    [answer] = jsonl.read(tmp_path / "answer.jsonl")
    assert isinstance(answer, CrepeCase)
    assert answer.asked == (QUESTION,)


def test_crepe_is_answered_in_every_setting_and_scored_in_one_table(
    run: Run, crepe: tuple[Path, Path], tmp_path: Path
) -> None:
    """Through a server with faults; an interrupted run, or another one, asks nothing twice."""
    gold, traces = crepe

    def answer(body: Body) -> str:
        return '{"change": "more"}' if "number 1" in prompt_of(body) else '{"change": "same"}'

    asked = ("--method", "prompted", "--model", "parrot", "--cache", tmp_path / "cache.db", "--workers", "1")
    files = []
    with FaultyServer(answer, in_turn("500", None, "prose")) as server:
        for states in ("none", "all", "salient"):
            files += ["--pred", tmp_path / f"{states}.jsonl"]
            more = ("--states", states, "--traces", traces, "--base-url", server.base_url, "-o", files[-1])
            assert run("ask", gold, *asked, *more).status == 0
        count = len(server.bodies)
        assert run("ask", gold, *asked, *more).status == 0
        assert len(server.bodies) == count
    shown = run("eval", "crepe", *files, "--price-in", "1000000", "--price-out", "1000000")
    assert shown.status == 0, shown.err
    assert "states: salient ≥ 3" in shown.out
    assert shown.out.count("100.00") == 3
    values = json.loads(run("eval", "crepe", *files, "--json", "--price-in", "1000000").out)["runs"]
    assert [one["states"] for one in values] == ["none", "all", "salient ≥ 3"]
    assert values[0]["entities_per_step"] is None
    assert values[1]["entities_per_step"] == 0.5
    assert values[0]["cost"] == values[0]["tokens_in"] > 0


def test_a_language_model_that_thinks_about_states_sees_the_torch_go_out(run: Run) -> None:
    """The windy room through an endpoint: the answer rests on the brightness of the room, where states are shown."""

    def answer(body: Body) -> str:
        lit = '"lit" after it' in prompt_of(body)
        return json.dumps({"states": [1], "reason": "Light." if lit else "No light.", "rating": 5 if lit else 1})

    asked = ("--method", "prompted", "--model", "parrot", "--no-cache", "--json")
    ratings = {}
    with FaultyServer(answer) as server:
        for states in ("none", "salient", "all"):
            more = (*asked, "--base-url", server.base_url, "--states", states)
            found = json.loads(run("ask", EXAMPLES / "windy_room.jsonl", QUESTION, *more).out)
            ratings[states] = [one["rating"] for one in found["likelihoods"]]
    assert ratings == {"none": [1] * 5, "salient": [1, 1, 5, 1, 5], "all": [1, 1, 5, 1, 5]}


def test_gold_is_named_where_the_answers_do_not_say(run: Run, tmp_path: Path, crepe: tuple[Path, Path]) -> None:
    jsonl.write([GOLD], tmp_path / "anonymous.jsonl")
    done = run("eval", "crepe", "--pred", tmp_path / "anonymous.jsonl")
    assert (done.status, "--gold" in done.err) == (2, True)
    assert run("eval", "crepe", "--pred", tmp_path / "anonymous.jsonl", "--gold", crepe[0]).status == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((EXAMPLES / "windy_room.jsonl",), "no question given"),
        (
            (EXAMPLES / "windy_room.jsonl", QUESTION, "--min-salience", "3"),
            "--min-salience works only with --states salient",
        ),
        ((EXAMPLES / "windy_room.jsonl", QUESTION, "--model", "any"), "--method prompted"),
        (("no.md", QUESTION), "no such file"),
        (("crepe:train",), "no split"),
    ],
)
def test_what_people_get_wrong(run: Run, arguments: tuple[str | Path, ...], expected: str) -> None:
    done = run("ask", *arguments)
    assert (done.status, expected in done.err) == (2, True), done.err


def test_traces_of_other_steps_are_refused(run: Run, crepe: tuple[Path, Path]) -> None:
    gold, traces = crepe
    jsonl.write([Trace(procedure=TEA.replace(steps=("Wait.",)))], traces)
    done = run("ask", gold, "--traces", traces)
    assert (done.status, "in --traces differ from" in done.err) == (2, True)


def test_a_procedure_without_a_trace_is_an_error(run: Run, crepe: tuple[Path, Path], tmp_path: Path) -> None:
    """The states of the source, or of a new run of the tracker, would not be those that were asked for."""
    gold, traces = crepe
    others = [Trace(procedure=TEA.replace(id=f"tea-{number}"), changes=(HEAT,)) for number in range(3)]
    jsonl.write(others, tmp_path / "source.jsonl")
    done = run("ask", tmp_path / "source.jsonl", "Is the kettle hot?", "--traces", traces)
    assert (done.status, done.out) == (2, "")
    assert "--traces contains no trace for tea-0, nor for 2 others" in done.err
    jsonl.write(others[:1], traces)
    done = run("ask", gold, "--traces", traces, "-o", tmp_path / "answers.jsonl")
    assert (done.status, "--traces contains no trace for tea\n" in done.err) == (2, True), done.err


@pytest.mark.usefixtures("mirror")
def test_the_offline_method_answers_crepe_beside_the_published_systems(run: Run, tmp_path: Path) -> None:
    """Without states, so that nothing has to be tracked. The weights were learnt from this split."""
    out = tmp_path / "none.jsonl"
    assert "was trained on crepe:dev" in run("ask", "crepe:dev", "--states", "none", "-o", out).err
    table = run("eval", "crepe", "--pred", out, "--pred", "crepe:codex-events", "--gold", "crepe:dev").out
    assert "58.49" in table
    assert "87.00" in table
    found = json.loads(run("eval", "crepe", "--pred", out, "--json").out)
    assert found["scores"]["macro"]["f1"] == pytest.approx(42, abs=1)
