"""The options that name a model: from the command line to a model that answers, and what is told at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from faulty_server import FaultyServer
from fluents.cli.command import with_options
from fluents.cli.model_options import ModelOptions, open_model
from fluents.errors import FluentsError, InputError
from fluents.llm import EndpointError, Question

KEY = "sk-of-the-user-0123456789"
Run = Callable[..., Result]


@with_options
def ask(prompts: list[str], *, options: ModelOptions) -> None:
    """A command as ours are: asks questions and prints the answers."""
    with open_model(options) as model:
        for prompt in prompts:
            print(*model.answerer.ask(Question(prompt)))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FaultyServer(lambda body: f"hot {body['seed']}") as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        yield running


@pytest.fixture
def run(server: FaultyServer) -> Run:  # noqa: ARG001 - for its environment
    app = typer.Typer()
    app.command()(ask)

    def call(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, list(map(str, arguments)))

    return call


def error_of(result: Result) -> FluentsError:
    assert isinstance(result.exception, FluentsError)
    return result.exception


def test_a_question_is_answered_kept_and_counted(run: Run, server: FaultyServer, tmp_path: Path) -> None:
    prices = ("--price-in", "1000000", "--price-out", "1")
    first, second = run("hot?", "--model", "any", *prices), run("hot?", "--model", "any", *prices)
    assert (first.exit_code, first.stdout, second.stdout) == (0, "hot 1\n", "hot 1\n")
    assert first.stderr.startswith("1 request, ")
    assert "1 input token, 2 output tokens, cost 1.0000" in first.stderr
    assert "no requests" in second.stderr
    assert "1 answer from the cache" in second.stderr
    assert len(server.bodies) == 1
    assert (tmp_path / "cache" / "answers.sqlite").exists()


def test_the_users_openai_key_does_not_go_to_another_server_in_the_clear(run: Run, server: FaultyServer) -> None:
    run("hot?", "--model", "any")
    assert KEY not in str(server.headers)
    run("hot?", "--model", "any", "--no-cache", "--key-variable", "OPENAI_API_KEY")
    assert server.headers[-1]["authorization"] == f"Bearer {KEY}"


def test_without_the_cache_everything_is_asked_again_and_nothing_written(
    run: Run, server: FaultyServer, tmp_path: Path
) -> None:
    for _ in range(2):
        run("hot?", "--model", "any", "--no-cache")
    assert len(server.bodies) == 2
    assert list(tmp_path.iterdir()) == []


def test_the_cache_alone_answers_when_the_endpoint_is_gone(run: Run, server: FaultyServer, tmp_path: Path) -> None:
    cache = tmp_path / "kept.sqlite"
    run("hot?", "--model", "any", "--cache", cache)
    only = ("--model", "any", "--cache", cache, "--cached-only")
    assert run("hot?", *only).stdout == "hot 1\n"
    error = error_of(run("cold?", *only))
    assert "no answer to this prompt" in error.what
    assert "cold?" in error.what
    assert error.where == str(cache)
    assert "no answer to this prompt" in str(error_of(run("hot?", *only[2:], "--model", "another")))
    assert "no language model given" in str(error_of(run("hot?", *only[2:])))
    assert len(server.bodies) == 1


def test_a_run_that_fails_keeps_its_answers(run: Run, server: FaultyServer, tmp_path: Path) -> None:
    cache = tmp_path / "kept.sqlite"
    server.refuse = lambda body: (401, {"error": {"message": "who are you?"}}) if "cold?" in str(body) else None
    result = run("hot?", "cold?", "--model", "any", "--cache", cache)
    assert isinstance(error_of(result), EndpointError)
    assert "2 requests" in result.stderr, "what was used is told nevertheless"
    assert run("hot?", "--model", "any", "--cache", cache, "--cached-only").stdout == "hot 1\n"


def test_what_runs_used_is_found_afterwards_a_line_a_run(run: Run, server: FaultyServer, tmp_path: Path) -> None:
    """A run that fails, and one from the cache, among them: so that a resumed run adds up."""
    account = tmp_path / "usage.jsonl"
    given = ("--model", "any", "--usage", account, "--price-in", "1000000")
    run("hot?", *given)
    run("hot?", *given)
    server.refuse = lambda body: (401, {"error": {"message": "who are you?"}})  # noqa: ARG005
    run("cold?", *given)
    lines = [json.loads(line) for line in account.read_text().splitlines()]
    assert [(line["requests"], line["cached"], line["cost"]) for line in lines] == [(1, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert {(line["model"], line["base_url"]) for line in lines} == {("any", server.base_url)}
    datetime.fromisoformat(lines[0]["ended"])
    no_folder = run("warm?", "--model", "any", "--usage", tmp_path / "none" / "usage.jsonl")
    assert "cannot write the file" in str(error_of(no_folder))
    assert len(server.bodies) == 2, "a file that cannot be written costs nothing"


def test_what_the_endpoint_did_not_take_is_told(run: Run, server: FaultyServer) -> None:
    server.refuse = lambda body: (400, {"error": {"message": "unknown: seed"}}) if body.get("seed") == 1 else None
    server.answer = lambda body: str("seed" in body)
    result = run("hot?", "--model", "any")
    assert result.stdout == "False\n"
    assert "does not support seed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((), "no language model given"),
        (("--model", "any", "--cache", "a.sqlite", "--no-cache"), "--cache and --no-cache"),
        (("--model", "any", "--base-url", "localhost:8080"), "invalid endpoint address"),
        (("--model", "any", "--key-file", "/nowhere/key"), "no such file"),
        (("--model", "any", "--price-in", "inf"), "--price-in must be a finite number"),
        (("--model", "any", "--cached-only", "--cache", "/nowhere/kept.sqlite"), "this cache does not exist"),
        (("--model", "any", "--cached-only", "--no-cache"), "needs a cache"),
        (("--model", "any", "--record", "run.jsonl"), "use --cache FILE"),
        (("--model", "any", "--from-record", "run.jsonl"), "--cache FILE --cached-only"),
    ],
)
def test_what_the_user_can_mend_is_told(run: Run, arguments: tuple[str, ...], what: str) -> None:
    error = error_of(run("hot?", *arguments))
    assert isinstance(error, InputError | EndpointError)
    assert what in str(error)
