"""`fluents canonicalise` and `fluents expand` as a person meets them: files in, files out, errors without traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from faulty_server import Body, FaultyServer, prompt_of
from fluents import jsonl
from fluents.canonicalisation import canonicalise
from fluents.records import Procedure, StateChange, Trace

TRACE = Trace(
    procedure=Procedure(id="bike", goal="Clean a <b>bike</b>", steps=("Wet the bike.", "Dry it.")),
    changes=(
        StateChange(step=1, entity="bike", attribute="wetness", before="dry", after="wet"),
        StateChange(step=1, entity="the bicycle", attribute="moisture", before="dry", after="wet"),
        StateChange(step=2, entity="towel", attribute="wetness", before="dry", after="damp"),
    ),
)


def run(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "fluents", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.jsonl"
    jsonl.write([TRACE], path)
    return path


def read(data: bytes) -> Trace:
    [line] = data.splitlines()
    record = jsonl.loads(line)
    assert isinstance(record, Trace)
    return record


def test_stages_pipe(plain: Path) -> None:
    named = run("canonicalise", "-", stdin=plain.read_bytes())
    assert named.returncode == 0, named.stderr
    assert [set(cluster.mentions) for cluster in read(named.stdout).clusters] == [{"bike", "the bicycle"}, {"towel"}]
    assert read(named.stdout).changes == TRACE.changes
    expanded = run("expand", "-", "--vocabulary", plain, stdin=named.stdout)
    assert expanded.returncode == 0, expanded.stderr
    assert read(expanded.stdout).clusters == read(named.stdout).clusters  # too small a vocabulary to learn from


def test_two_processes_say_the_same(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets have another order in every process, unless their seed is fixed: none may show."""
    said = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        said.append(run("canonicalise", plain).stdout)
    assert said[0] == said[1] != b""


def test_clusters_that_are_there_stay_unless_asked_for_again(plain: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert run("canonicalise", plain, "-o", first).returncode == 0
    edited = read(first.read_bytes())
    jsonl.write([edited.replace(clusters=edited.clusters[:1])], first)
    kept = run("canonicalise", first, "-o", second)
    assert b"kept its existing clusters" in kept.stderr
    assert second.read_bytes() == first.read_bytes()
    assert run("canonicalise", first, "--again", "-o", second).returncode == 0
    assert len(read(second.read_bytes()).clusters) == 2


def test_a_person_sees_a_table_and_nothing_in_it_is_markup(plain: Path) -> None:
    shown = run("canonicalise", plain, "--table").stdout.decode()
    assert "Clean a <b>bike</b>" in shown
    assert "the bicycle" in shown


def test_the_command_and_the_library_say_the_same_of_a_model(plain: Path, tmp_path: Path) -> None:
    def answer(body: Body) -> str:
        is_of_attributes = "Thing:" in prompt_of(body).rpartition("Goal:")[2]
        names = ["wetness", "moisture"] if is_of_attributes else ["bike", "the bicycle", "towel"]
        return json.dumps({"groups": [names]})

    with FaultyServer(answer) as server:
        expected = canonicalise(TRACE, "prompted", model="parrot", base_url=server.base_url)
        model = ("--model", "parrot", "--base-url", server.base_url, "--cache", tmp_path / "kept.sqlite")
        done = run("canonicalise", plain, "--method", "prompted", *model)
    assert done.returncode == 0, done.stderr
    assert read(done.stdout) == expected
    assert set(expected.clusters[0].mentions) == {"bike", "the bicycle", "towel"}
    again = run("canonicalise", plain, "--method", "prompted", *model, "--cached-only")
    assert read(again.stdout) == expected
    other = run("canonicalise", plain, "--method", "verified", *model, "--cached-only")
    assert (other.returncode, b"the cache contains no answer" in other.stderr) == (2, True)


def test_examples_of_the_users_own_are_shown_with_each_question(plain: Path, tmp_path: Path) -> None:
    puncture = Procedure(id="own", goal="Mend a puncture", steps=("Find the hole.",))
    jsonl.write([Trace(procedure=puncture, changes=TRACE.changes[:2])], tmp_path / "own.jsonl")
    assert run("canonicalise", tmp_path / "own.jsonl", "-o", tmp_path / "own.jsonl").returncode == 0
    with FaultyServer(lambda body: '{"groups": []}') as server:  # noqa: ARG005
        model = ("--method", "prompted", "--model", "parrot", "--base-url", server.base_url, "--no-cache")
        done = run("canonicalise", plain, *model, "--examples", tmp_path / "own.jsonl", "--shots", "1")
        assert done.returncode == 0, done.stderr
        assert all('Goal: "Mend a puncture"' in prompt for prompt in server.prompts)
        assert any('Answer: {"groups": [["bike", "the bicycle"]]}' in prompt for prompt in server.prompts)
        few = run("canonicalise", plain, *model, "--examples", tmp_path / "own.jsonl")
    assert (few.returncode, b"but only 1 procedure in --examples can be" in few.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["canonicalise", "none.jsonl"], "no such file or dataset"),
        (["canonicalise", "{plain}", "--model", "x"], "--model works only with --method"),
        (["canonicalise", "{plain}", "--workers", "2"], "--workers works only with --method prompted or verified"),
        (["salience", "{plain}", "--form", "likert"], "--form works only with --method prompted"),
        (
            ["expand", "{plain}", "--vocabulary", "{plain}", "--workers", "2"],
            "--workers works only without --vocabulary",
        ),
        (["canonicalise", "{plain}", "--method", "prompted"], "no language model given"),
        (["canonicalise", "{plain}", "--examples", "{plain}"], "--examples works only with --method prompted"),
        (["canonicalise", "{plain}", "--pairs", "3"], "--pairs works only with --method verified"),
        (
            ["canonicalise", "{plain}", "--method", "prompted", "--model", "x", "--base-url", "{free}", "--shots", "2"],
            "--shots has no effect without --examples",
        ),
        (["expand", "{plain}", "--vocabulary", "{plain}"], "no clusters of names to expand"),
        (["expand", "{plain}"], "a source of paraphrases is required"),
        (["expand", "{plain}", "--vocabulary", "{plain}", "--model", "x"], "--model works only without --vocabulary"),
        (
            ["expand", "{plain}", "--vocabulary", "{plain}", "--base-url", "{free}"],
            "--base-url works only without --vocabulary",
        ),
        (
            ["expand", "{plain}", "--model", "x", "--base-url", "{free}", "--near", "0.5"],
            "--near has no effect without --vocabulary",
        ),
        (["expand", "{plain}", "--vocabulary", "none"], "no such file or dataset"),
    ],
)
def test_what_a_user_can_mend_is_told(plain: Path, arguments: list[str], what: str) -> None:
    done = run(*(argument.format(plain=plain, free="http://127.0.0.1:9/v1") for argument in arguments))
    assert done.returncode == 2, done
    assert what in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert done.stdout == b""


def test_a_broken_file_leaves_the_old_output_alone(tmp_path: Path) -> None:
    broken, output = tmp_path / "broken.jsonl", tmp_path / "out.jsonl"
    broken.write_bytes(jsonl.dumps(TRACE) + b"\n\xff\xfe{")
    output.write_text("mine")
    assert run("canonicalise", broken, "-o", output).returncode == 2
    assert output.read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize(("pred", "f1"), [("single", 62.0), ("same-words", 73.5), ("openpi2-outputs:votes", 55.2)])
def test_what_clustering_is_held_against(mirror: Path, pred: str, f1: float) -> None:  # noqa: ARG001
    done = run("eval", "clustering", "--pred", pred, "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert value["scores"]["exact"]["f1"] == pytest.approx(f1, abs=0.05)
