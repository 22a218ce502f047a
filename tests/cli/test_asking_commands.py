"""What all commands that ask a language model have in common: room for answers, and word of those that went wrong."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faulty_server import Body, FaultyServer, prompt_of
from fluents import jsonl
from fluents.cli import main
from fluents.records import AttributeCluster, EntityCluster, Procedure, StateChange, Trace
from scripted import water_heats

NAMES = ("kettle", "the kettle pot", "pot")
TEA = Trace(
    procedure=Procedure(id="tea", goal="Make tea", steps=("Boil the water.",)),
    changes=tuple(
        StateChange(step=1, entity=name, attribute="temperature", before="cold", after="hot") for name in NAMES
    ),
    clusters=(
        EntityCluster(
            name="kettle",
            mentions=NAMES,
            attributes=(AttributeCluster(name="temperature", mentions=("temperature",)),),
        ),
    ),
)
COMMANDS = {
    "track states": ("track-llm", "--verify"),
    "track complete": ("track-llm", "--form", "complete"),
    "track whole": ("track-llm", "--form", "whole"),
    "canonicalise prompted": ("canonicalise", "--method", "prompted", "--again"),
    "canonicalise verified": ("canonicalise", "--method", "verified", "--again"),
    "expand": ("expand", "--most", "3"),
    "salience": ("salience", "--method", "prompted"),
    "ask": ("ask", "--method", "prompted"),
}
USUAL = {
    "track states": {1024},
    "track complete": {1024},
    "track whole": {1024},
    "canonicalise prompted": {64 + sum(len(name) + 8 for name in NAMES)},
    "canonicalise verified": {32},
    "expand": {32 + 32 * 3},
    "salience": {256},
    "ask": {256},
}
"""What each question has room for when nobody says."""

Run = Callable[..., str]


def answer(body: Body) -> str:
    prompt = prompt_of(body)
    if "same" in str(body.get("response_format")):
        return '{"same": true}'
    if "groups" in str(body.get("response_format")):
        return '{"groups": []}'
    if "names" in str(body.get("response_format")):
        return '{"names": ["boiler"]}'
    if "rating" in str(body.get("response_format")):
        return '{"states": [], "reason": "It boils.", "rating": 5}'
    return "5" if "from 1" in prompt else water_heats(prompt)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(answer) as running:
        yield running


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """A command on the trace, in this process; its output is a file, and what it tells comes back."""
    jsonl.write([TEA], tmp_path / "tea.jsonl")

    def call(command: str, *more: str | Path) -> str:
        asked = ["Does it steam?"] if command == "ask" else []
        arguments = [*COMMANDS[command], tmp_path / "tea.jsonl", *asked, "--model", "any"]
        arguments += ["-o", tmp_path / "out.jsonl", *more]
        monkeypatch.setattr(sys, "argv", ["fluents", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capfd.readouterr().err
        assert ended.value.code in (None, 0, 1), told  # 1: steps got no answer
        return told

    return call


@pytest.mark.parametrize("command", COMMANDS)
def test_max_tokens_reaches_every_question_and_the_cache_alone_repeats_the_run(
    command: str, run: Run, server: FaultyServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    ask: tuple[str | Path, ...] = ("--base-url", server.base_url)
    assert "cut off" not in run(command, *ask, "--no-cache")
    assert {body["max_tokens"] for body in server.bodies} == USUAL[command]
    server.bodies.clear()
    ask = (*ask, "--max-tokens", "4321", "--cache", tmp_path / "kept.sqlite")
    run(command, *ask)
    assert {body["max_tokens"] for body in server.bodies} == {4321}
    first, asked = out.read_bytes(), len(server.bodies)
    run(command, *ask, "--cached-only")
    assert (out.read_bytes(), len(server.bodies)) == (first, asked)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_answer_without_room_is_told_with_what_gives_it_more(
    command: str, run: Run, server: FaultyServer, tmp_path: Path
) -> None:
    """Also when the cut answer comes from the cache. More room is another question there, and asked anew."""
    ask = ("--base-url", server.base_url, "--cache", tmp_path / "answers.sqlite")
    server.fault = lambda number, body: "length" if body["max_tokens"] < 2000 else None  # noqa: ARG005
    for _ in range(2):
        told = run(command, *ask)
        assert "cut off at the maximum length" in told
        assert "--max-tokens" in told
    assert "cut off" not in run(command, *ask, "--max-tokens", "2000")


@pytest.mark.parametrize("command", COMMANDS)
def test_answers_nobody_could_read_are_told_with_a_reason(command: str, run: Run, server: FaultyServer) -> None:
    """Else a model that cannot do it would look like one that finds nothing."""
    ask = ("--base-url", server.base_url, "--no-cache")
    assert "could not be parsed" not in run(command, *ask)
    server.fault = lambda number, body: "empty"  # noqa: ARG005
    assert re.search(r"\d answers? could not be parsed .*the answer is empty", run(command, *ask))
    said = "max_tokens is too large: this model's \x1b[31mcontext length is 9"
    server.refuse = lambda body: (400, {"error": {"message": said}})  # noqa: ARG005
    told = run(command, *ask)
    assert re.search(r"answers? could not be parsed .*max_tokens is too large", told)
    assert "\x1b[31m" not in told
