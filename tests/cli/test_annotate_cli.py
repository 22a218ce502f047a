"""fluents annotate: a project on the command line, from its beginning to its exports."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from annotated import API, TEA, Annotating, ServedProject, annotated
from command_run import Run
from faulty_server import FaultyServer
from fluents import jsonl
from fluents.annotation import ErrorRates, Item
from fluents.annotation.scripted_people import ScriptedAnnotator, Truth
from fluents.data.file_formats import read_traces
from fluents.data.inputs import traces
from fluents.records import StateChange

HOT = StateChange(step=1, entity="water", attribute="temperature", before="cold", after="hot")
WET = StateChange(step=2, entity="leaves", attribute="wetness", before="dry", after="wet")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "annotation.sqlite")


@pytest.fixture
def tea(tmp_path: Path) -> Path:
    file = tmp_path / "tea.jsonl"
    jsonl.write([TEA.replace(changes=(HOT, WET))], file)
    return file


@contextmanager
def serving(store: str, *options: str) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """The program as a person starts it, and what it printed."""
    command = [sys.executable, "-m", "fluents", "annotate", "serve", *options, "--port", "0", "--no-open", "--json"]
    process = subprocess.Popen([*command, "--store", store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        printed = ""
        while "\n}" not in printed:
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            printed += line
        yield json.loads(printed), process
    finally:
        process.kill()
        process.communicate()


def test_a_new_project_prints_the_link_of_its_owner(run: Run, store: str, tea: Path) -> None:
    made = run("annotate", "new", "tea", tea, "--stages", "vet", "--store", store)
    assert made.status == 0, made.err
    assert "its first stage has 2 questions" in made.out
    assert "http://127.0.0.1:8766/?join#" in made.out
    again = run("annotate", "new", "tea", tea, "--stages", "vet", "--store", store)
    assert again.status == 2
    assert "already" in again.err


def test_texts_and_folders_are_sources_too(run: Run, store: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / f"{name}.md").write_text("# Toast\n\n1. Cut the bread.\n2. Toast it.\n")
    made = run("annotate", "new", "toast", tmp_path / "texts", "--stages", "author", "--store", store, "--json").json
    assert made["items"] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--stages", "vet,nonsense"], "nonsense"),
        ([], "--stages"),
        (["--stages", "vet", "--system", "mine"], "--system"),
        (["--stages", "vet", "--guideline", "missing.md"], "missing.md"),
    ],
)
def test_what_is_no_project_is_an_error(run: Run, store: str, tea: Path, options: list[str], said: str) -> None:
    done = run("annotate", "new", "tea", tea, *options, "--store", store)
    assert done.status == 2
    assert said in done.err
    assert run("annotate", "status", "--store", store).status == 2


@pytest.mark.filterwarnings("always::fluents.errors.FluentsWarning")
def test_a_project_without_any_question_is_not_created(run: Run, store: str, tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_text("Goal: Make tea\nBoil the water.\nPour it over the tea bag.\n")
    new = ("annotate", "new", "tea", tmp_path / "tea.txt", "--store", store, "--stages")
    for stages, said in (("vet", "no changes"), ("judge", "--system"), ("select", "1 with fewer than 4 steps")):
        done = run(*new, stages)
        assert done.status == 2
        assert said in done.err
    assert "this store contains no project" in run("annotate", "status", "--store", store).err
    corrected = run(*new, "correct")
    assert corrected.status == 0
    assert "warning: in the stage correct" in corrected.err
    assert "add --draft" in corrected.err


def test_a_design_and_texts_come_from_files(run: Run, store: str, tea: Path, tmp_path: Path) -> None:
    (tmp_path / "design.json").write_text(json.dumps({"name": "x", "stages": [{"kind": "vet", "judges": 5}]}))
    (tmp_path / "guide.md").write_text("Look closely.")
    files = ["--design", tmp_path / "design.json", "--guideline", tmp_path / "guide.md"]
    assert run("annotate", "new", "tea", tea, *files, "--store", store).status == 0
    history = run("annotate", "export", "--format", "history", "--store", store).out.splitlines()
    assert json.loads(history[0])["design"]["stages"] == [{"kind": "vet", "judges": 5}]
    assert "Look closely." in history[1]


def test_a_design_needs_no_name_of_its_own(run: Run, store: str, tea: Path, tmp_path: Path) -> None:
    (tmp_path / "design.json").write_text(json.dumps({"stages": [{"kind": "vet"}]}))
    made = run("annotate", "new", "pot", tea, "--design", tmp_path / "design.json", "--store", store)
    assert "created the project pot" in made.out, made.err
    simulated = ("annotate", "simulate", tea, "--design", tmp_path / "design.json", "--json")
    assert run(*simulated).json["stages"][0]["kind"] == "vet"
    for options in (["--stages", "vet"], ["--design", tmp_path / "design.json"]):
        unnamed = run("annotate", "new", "", tea, *options, "--store", store)
        assert unnamed.status == 2
        assert "where: NAME" in unnamed.err


GUIDE = Path(__file__).parents[2] / "docs" / "annotate.md"


def guide_blocks() -> list[str]:
    """The blocks of the guide of ten minutes: a text, the commands before people work, and those after."""
    section = GUIDE.read_text(encoding="utf-8").partition("## From nothing to a dataset")[2].partition("\n## ")[0]
    return [dedent(block) for block in re.findall(r"^ *```\w+\n(.*?)^ *```$", section, re.M | re.S)]


def work_alone(address: str, code: str, person: ScriptedAnnotator) -> list[str]:
    """Join as the owner, answer every question and open every stage; the kinds of the stages that asked something."""
    asked = []
    with Annotating(base_url=address, timeout=60) as owner:
        owner.call("POST", "/join", {"invitation": code, "name": person.name}, status=201)
        while (stage := owner.call("GET", "/me")["stage"]) is not None:
            while (given := owner.next()) is not None:
                asked.append(stage["kind"])
                owner.decide(given, person.answer(Item(**given["item"])))
            owner.call("POST", "/stages/open", {})
        for name in ("openpi", "openpi-c", "openpi2", "fluents"):
            assert owner.get(f"{API}/export", params={"format": name}).is_success
    return list(dict.fromkeys(asked))


def test_the_commands_of_the_guide_lead_to_a_dataset(
    run: Run, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are written, from `new` to `data show`; only the server's port is another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLUENTS_STORE", store)
    text, before, after = guide_blocks()
    Path("texts").mkdir()
    Path("texts/tea.txt").write_text(text)
    Path("texts/coffee.txt").write_text(text.replace("tea bag", "coffee").replace("tea", "coffee"))
    new, serve = before.splitlines()
    made = run(*shlex.split(new)[1:])
    assert "its first stage has 2 questions" in made.out, made.err
    assert serve == "fluents annotate serve"
    gold = [trace.replace(changes=(HOT, WET)) for trace in traces(["texts"])]
    with serving(store) as (told, _):
        code = made.out.rpartition("#")[2].strip()
        asked = work_alone(told["address"], code, ScriptedAnnotator("Ada", ErrorRates(), Truth.of(gold)))
        assert asked == ["author", "vet", "entities", "salience"]
        for command in after.splitlines():
            done = run(*shlex.split(command)[1:])
            assert done.status == 0, done.err
    assert "water" in done.out
    dataset = list(read_traces("chores.jsonl"))
    assert len(dataset) == 2
    assert all(len(trace.changes) == 2 and trace.clusters and trace.salience for trace in dataset)


def test_commands_work_beside_a_running_server_and_ctrl_c_ends_it(run: Run, store: str, tea: Path) -> None:
    run("annotate", "new", "tea", tea, "--stages", "vet", "--store", store)
    with serving(store, "tea") as (told, process):
        assert list(told["owner_links"]) == ["tea"]
        link = run("annotate", "invite", "--role", "adjudicator", "--uses", "2", "--store", store).out.strip()
        assert "/?join#" in link
        status = run("annotate", "status", "--store", store, "--json").json
        assert status["stages"][0] == {"number": 1, "kind": "vet", "state": "open", "items": 2, "decided": 0}
        second = run("annotate", "serve", "--port", "0", "--store", store)
        assert second.status == 2
        assert "another server" in second.err
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "stored" in said


def test_links_are_revoked_and_access_is_ended(run: Run, store: str) -> None:
    with annotated(store, "vet", [TEA.replace(changes=(HOT,))]) as served:
        member = served.client("annotator", "Ada")
        run("annotate", "invite", "--uses", "3", "--store", store)
        status = run("annotate", "status", "--store", store, "--json").json
        [invitation] = status["invitations"]
        assert (invitation["role"], invitation["uses"]) == ("annotator", 3)
        assert status["people"][0]["access"] is True
        assert invitation["invitation"] in run("annotate", "status", "--store", store).out
        done = run("annotate", "revoke", "--member", "A1", "--invitation", invitation["invitation"], "--store", store)
        assert "ended the access of A1" in done.out, done.err
        member.call("GET", "/me", status=401)
        status = run("annotate", "status", "--store", store, "--json").json
        assert (status["invitations"], status["people"][0]["access"]) == ([], False)
        for options, said in (([], "--member"), (["--member", "A9"], "A9"), (["--invitation", "x"], "'x'")):
            done = run("annotate", "revoke", *options, "--store", store)
            assert done.status == 2
            assert said in done.err


def test_an_owner_who_joined_needs_no_second_link(store: str) -> None:
    with annotated(store, "vet", [TEA.replace(changes=(HOT,))]) as served:
        served.token("owner")
    with serving(store) as (told, _):
        assert told["owner_links"] == {}


def judged(served: ServedProject) -> None:
    """Three people say that the first change is valid."""
    for client in [served.client() for _ in range(3)]:
        while (item := client.next()) is not None:
            client.decide(item, {"valid": item["item"]["payload"]["change"]["entity"] == "water"})


def test_results_are_exported_and_a_history_comes_back(run: Run, store: str, tmp_path: Path) -> None:
    with annotated(store, "vet", [TEA.replace(changes=(HOT, WET))]) as served:
        judged(served)
    assert run("annotate", "export", "--format", "openpi-c", "-o", tmp_path / "c.jsonl", "--store", store).status == 0
    [trace] = read_traces(tmp_path / "c.jsonl")
    assert [change.entity for change in trace.changes] == ["water"]
    whole = run("annotate", "export", "--format", "history", "-o", tmp_path / "h.jsonl", "--store", store)
    assert whole.status == 0
    other = str(tmp_path / "other.sqlite")
    imported = run("annotate", "import", tmp_path / "h.jsonl", "--store", other)
    assert "/?join#" in imported.out
    again = run("annotate", "export", "--format", "history", "--store", other).out
    assert again == (tmp_path / "h.jsonl").read_text()
    unnamed = run("annotate", "import", tmp_path / "h.jsonl", "--name", "", "--store", other)
    assert (unnamed.status, "where: --name" in unnamed.err) == (2, True)
    shown = run("annotate", "status", "--store", other)
    assert "vet" in shown.out
    (tmp_path / "cut.jsonl").write_text(again[:-30])
    assert run("annotate", "import", tmp_path / "cut.jsonl", "--name", "x", "--store", other).status == 2


def test_a_language_model_works_among_people(run: Run, store: str, tmp_path: Path) -> None:
    def answer(body: Any) -> str:
        return json.dumps({"valid": '"water"' in str(body), "reason": "factual"})

    with annotated(store, "vet", [TEA.replace(changes=(HOT, WET))]) as served, FaultyServer(answer) as endpoint:
        token = tmp_path / "token"
        options = ["--model", "any", "--base-url", endpoint.base_url, "--no-cache", "--token-file", token, "--json"]
        assert run("annotate", "model", served.link(), *options, "--limit", "1").json == {"decided": 1, "left_out": 0}
        assert token.stat().st_mode & 0o077 == 0
        assert run("annotate", "model", served.address, *options).json == {"decided": 1, "left_out": 0}
        owner = served.client("owner")
        assert {one["answer"]["valid"] for one in owner.call("GET", "/audit")["items"]} == {True, False}
        assert [one["name"] for one in owner.call("GET", "/people")] == ["any", "owner"]


def test_an_item_without_a_readable_answer_is_left_to_others(run: Run, store: str) -> None:
    with (
        annotated(store, "vet", [TEA.replace(changes=(HOT,))]) as served,
        FaultyServer(lambda _: "I cannot say.") as endpoint,
    ):
        done = run("annotate", "model", served.link(), "--model", "shy", "--base-url", endpoint.base_url, "--no-cache")
        assert done.status == 0
        assert "1 answer could not be parsed" in done.err
        assert "the model answered no questions" in done.err
        assert served.client().next() is not None


def test_a_model_that_can_answer_nothing_stops(run: Run, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if there are more such items than a request to the server can name."""
    from fluents.annotation import remote_project

    monkeypatch.setattr(remote_project, "MAX_BESIDES", 1)
    with (
        annotated(store, "vet", [TEA.replace(changes=(HOT, WET))]) as served,
        FaultyServer(lambda _: "I cannot say.") as endpoint,
    ):
        options = ["--model", "shy", "--base-url", endpoint.base_url, "--no-cache", "--json"]
        assert run("annotate", "model", served.link(), *options).json == {"decided": 0, "left_out": 2}


def test_a_model_agrees_to_terms_only_if_told_to(run: Run, store: str) -> None:
    from fluents.annotation.design import design_of

    design = design_of("tea", "vet", consent="Answers are published.")
    with annotated(store, design, [TEA.replace(changes=(HOT,))]) as served:
        done = run("annotate", "model", served.link(), "--model", "any", "--base-url", "http://127.0.0.1:1/v1")
        assert done.status == 2
        assert "Answers are published." in done.err


@pytest.mark.parametrize("link", ["nonsense", "http://127.0.0.1:1/?join", f"http://127.0.0.1:1/?join#{24 * 'a'}"])
def test_a_link_that_leads_nowhere_is_an_error(run: Run, link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fluents.annotation import remote_project

    monkeypatch.setattr(remote_project, "TRIES", 1)
    assert run("annotate", "model", link, "--model", "any").status == 2


def test_a_simulation_says_how_many_judges_a_stage_needs(run: Run, tea: Path) -> None:
    found = run("annotate", "simulate", tea, "--stages", "author,vet", "--json", "--seed", "1").json
    assert [stage["kind"] for stage in found["stages"]] == ["author", "vet"]
    shown = run("annotate", "simulate", tea, "--stages", "vet", "--annotators", "1")
    assert shown.status == 2
    assert "at least 3 annotators" in shown.err
