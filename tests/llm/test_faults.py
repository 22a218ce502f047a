"""Runs against a server that misbehaves: nothing is lost, nothing comes twice, nothing is asked twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faulty_server import FAULTS, IN_ANSWER, IN_TRANSPORT, Body, FaultyServer, in_turn, prompt_of, randomly
from fluents.llm import LanguageModel, Question
from fluents.llm.answers import Unreadable, UnreadableAnswer, ask_all, json_in
from fluents.llm.cache import Cache
from fluents.llm.endpoint import Endpoint
from fluents.llm.wire_format import EndpointOptions, RetryPolicy

QUICK = EndpointOptions(timeout=0.5, retry=RetryPolicy(first_wait=0.005, longest_wait=0.02))
STEPS = {"1": ["lid"], "2": ["pot", "water"]}


def echo(body: Body) -> str:
    """The last word of the prompt with its steps: an answer that belongs to one question alone."""
    return json.dumps({"word": prompt_of(body).split()[-1], **STEPS})


def read(text: str) -> tuple[str, dict[str, list[str]]]:
    """By step number, and only for steps that exist: more of them or another order change nothing."""
    found = json_in(text)
    if not isinstance(found, dict) or "word" not in found or not STEPS.keys() <= found.keys():
        raise UnreadableAnswer("word or steps are missing")
    return str(found["word"]), {step: found[step] for step in STEPS}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_got_over(fault: str) -> None:
    """Transport's by trying again, the model's by asking again with the reason, or by reading tolerantly."""
    with (
        FaultyServer(echo, in_turn(fault), hang=1) as server,
        Endpoint(server.base_url, "any", options=QUICK) as endpoint,
    ):
        assert ask_all(LanguageModel(endpoint, "any"), [Question("What of alpha")], read) == [("alpha", STEPS)]
        assert endpoint.usage.retried == (fault in IN_TRANSPORT)
        tolerated = fault in ("extra", "reversed")
        assert len(server.bodies) == (1 if tolerated else 2)
        assert ("could not be read" in server.prompts[-1]) == (fault in IN_ANSWER and not tolerated)


def test_two_hundred_questions_at_a_tenth_of_faults_all_end_and_each_as_its_own(tmp_path: Path) -> None:
    questions = [Question(f"What of w{number}") for number in range(200)]
    with (
        FaultyServer(echo, randomly(0.1, seed=5), hang=0.7) as server,
        Endpoint(server.base_url, "any", options=QUICK, cache=Cache(tmp_path / "answers.sqlite")) as endpoint,
    ):
        found = ask_all(LanguageModel(endpoint, "any", workers=8), questions, read)
        assert len(server.faults) >= 10, "it did misbehave"
        assert set(server.faults) & set(IN_TRANSPORT)
        assert set(server.faults) & set(IN_ANSWER)
        assert len(found) == 200
        unreadable = [answer for answer in found if isinstance(answer, Unreadable)]
        assert all(answer.reason for answer in unreadable)
        assert len(unreadable) <= 10
        for number, answer in enumerate(found):
            assert isinstance(answer, Unreadable) or answer == (f"w{number}", STEPS)
        asked = len(server.bodies)
        assert ask_all(LanguageModel(endpoint, "any"), questions, read) == found
        assert len(server.bodies) == asked, "all is in the cache, unreadable answers too"


def test_when_every_answer_is_bad_every_question_ends_as_a_reject(tmp_path: Path) -> None:
    questions = [Question(f"What of w{number}") for number in range(20)]
    prose = randomly(1.0, seed=1, kinds=["prose", "cut-json", "empty", "length"])
    with (
        FaultyServer(echo, prose) as server,
        Endpoint(server.base_url, "any", options=QUICK, cache=Cache(tmp_path / "answers.sqlite")) as endpoint,
    ):
        found = ask_all(LanguageModel(endpoint, "any"), questions, read)
        assert all(isinstance(answer, Unreadable) for answer in found)
        assert len(server.bodies) == 40, "asked, and asked again once"


RUN = """
import sys
from pathlib import Path
from fluents.llm import LanguageModel, Question
from fluents.llm.answers import ask_all
from fluents.llm.cache import Cache
from fluents.llm.endpoint import Endpoint

address, cache = sys.argv[1:]
questions = [Question(f"What of w{number}") for number in range(60)]
with Endpoint(address, "any", cache=Cache(Path(cache))) as endpoint:
    print(len(ask_all(LanguageModel(endpoint, "any", workers=4), questions, str)))
"""


def test_a_killed_run_goes_on_without_asking_again_for_what_it_has(tmp_path: Path) -> None:
    def slowly(body: Body) -> str:
        time.sleep(0.02)
        return echo(body)

    with FaultyServer(slowly) as server:
        command = [sys.executable, "-c", RUN, server.base_url, str(tmp_path / "answers.sqlite")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as killed:
            deadline = time.monotonic() + 30
            while len(server.bodies) < 25 and time.monotonic() < deadline:
                time.sleep(0.005)
            killed.kill()
        before = list(server.prompts)
        assert 25 <= len(before) < 60, "killed in the middle"
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "60\n"), done.stderr
        again = set(before) & set(server.prompts[len(before) :])
        assert len(again) <= 4, "only what was on its way when the run was killed, one question a worker"
        assert set(server.prompts) == {f"What of w{number}" for number in range(60)}


KEY = "sk-grep-for-me-0123456789abcdef"
FAIL = """
import logging, sys
from pathlib import Path
from fluents.llm import Question
from fluents.llm.credentials import find_key
from fluents.llm.answers import answered
from fluents.llm.cache import Cache
from fluents.llm.endpoint import Endpoint

logging.basicConfig(level=logging.DEBUG)
address, cache = sys.argv[1:]
with Endpoint(address, "any", find_key(address, variable="MY_KEY"), cache=Cache(Path(cache))) as endpoint:
    print(endpoint, vars(endpoint))
    print(answered(endpoint, Question("What of alpha"), str))
    answered(endpoint, Question("fail"), str)
"""


def test_the_key_is_in_no_file_and_in_nothing_that_is_printed(tmp_path: Path) -> None:
    """Against a server that repeats all it is sent, in answers and in errors; with an uncaught error and a full log."""
    with FaultyServer(lambda body: "", hang=0) as server:  # noqa: ARG005
        server.answer = lambda body: str(server.headers)  # noqa: ARG005
        server.refuse = lambda body: (
            (401, {"error": {"message": str(server.headers)}}) if "fail" in prompt_of(body) else None
        )
        done = subprocess.run(
            [sys.executable, "-c", FAIL, server.base_url, str(tmp_path / "answers.sqlite")],
            capture_output=True,
            env={**os.environ, "MY_KEY": KEY, "OPENAI_LOG": "debug"},
            cwd=tmp_path,
            timeout=60,
        )
        assert server.headers[0]["authorization"] == f"Bearer {KEY}", "it was sent"
    assert b"EndpointError" in done.stderr
    assert b"[key]" in done.stdout, "the answer that repeats it was passed on without it"
    assert KEY.encode() not in done.stdout + done.stderr
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    assert not any(KEY.encode() in file.read_bytes() for file in files)
