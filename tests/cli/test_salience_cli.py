"""fluents salience: from traces to rated traces, in files and pipes, and what people can get wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_run import Run
from faulty_server import Body, FaultyServer, in_turn, prompt_of
from fluents import jsonl
from fluents.records import Procedure, StateChange, Trace


@pytest.fixture
def soup(tmp_path: Path) -> Path:
    changes = [
        StateChange(step=step, entity=entity, attribute="place", before="out", after="in")
        for step, entity in ((1, "leek"), (1, "knife"), (2, "leek"), (2, "[red]pot\x1b[31m"))
    ]
    procedure = Procedure(id="soup", goal="Make leek soup", steps=("Cut the leek.", "Boil it in the pot."))
    path = tmp_path / "soup.jsonl"
    jsonl.write([Trace(procedure=procedure, changes=tuple(changes))], path)
    return path


def read(path: Path) -> Trace:
    [trace] = jsonl.read(path)
    assert isinstance(trace, Trace)
    return trace


def test_a_file_is_rated_into_another_and_in_place(run: Run, soup: Path, tmp_path: Path) -> None:
    output = tmp_path / "rated.jsonl"
    assert run("salience", soup, "-o", output).status == 0
    rated = read(output)
    assert {one.rater for one in rated.salience} == {"offline-1"}
    assert {one.step for one in rated.salience} == {None, 1, 2}
    assert run("salience", soup, "-o", soup).status == 0
    assert read(soup) == rated


def test_a_pipe_gets_lines_and_a_person_a_table(run: Run, soup: Path) -> None:
    [line] = run("salience", soup, "--scope", "global").out.splitlines()
    assert [one["entity"] for one in json.loads(line)["salience"]] == ["leek", "knife", "[red]pot\x1b[31m"]
    table = run("salience", soup, "--table").out
    assert table.index("leek") < table.index("[red]pot"), "what matters most comes first; names are no markup"
    assert "\x1b[31m" not in table
    assert "goal" in table and "step 2" in table  # noqa: PT018


def test_an_empty_file_and_one_that_is_missing(run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    done = run("salience", empty)
    assert (done.status, "the file is empty" in done.err) == (2, True), "as an empty standard input is"
    assert run("salience", tmp_path / "no.jsonl").status == 2


def test_a_model_is_for_the_prompted_method(run: Run, soup: Path) -> None:
    done = run("salience", soup, "--model", "gpt-4")
    assert (done.status, "--method prompted" in done.err) == (2, True)
    done = run("salience", soup, "--method", "prompted")
    assert (done.status, "no language model given" in done.err) == (2, True)


def test_a_language_model_rates_through_a_server_with_faults_and_is_not_asked_twice(
    run: Run, soup: Path, tmp_path: Path
) -> None:
    """Faults of the connection are got over, an unreadable answer has no value, and a cache answers the second run."""

    def answer(body: Body) -> str:
        return "hard to say" if '"knife"' in prompt_of(body) else "4. The soup needs it."

    asked = ("--method", "prompted", "--model", "parrot", "--cache", tmp_path / "cache.db", "--workers", "2")
    with FaultyServer(answer, in_turn("500", None, "empty")) as server:
        for _ in range(2):
            done = run("salience", soup, *asked, "--base-url", server.base_url, "-o", soup)
            assert done.status == 0, done.err
            count = len(server.bodies)
        assert count == len(server.bodies)
    values = {(one.entity, one.step): one.value for one in read(soup).salience if one.rater == "parrot"}
    assert len(values) == 9
    assert {value for (entity, _), value in values.items() if entity == "knife"} == {None}
    assert {value for (entity, _), value in values.items() if entity != "knife"} == {4}


def test_the_second_form_rates_under_a_name_of_its_own(run: Run, soup: Path) -> None:
    with FaultyServer(lambda body: "0") as server:  # noqa: ARG005
        arguments = ("--method", "prompted", "--form", "likert", "--scope", "global", "--no-cache", "--model", "parrot")
        assert run("salience", soup, *arguments, "--base-url", server.base_url, "-o", soup).status == 0
        assert "has nothing to do with the procedure" in server.prompts[0]
    assert {(one.rater, one.value) for one in read(soup).salience} == {("parrot, likert", 0)}
