"""The embedded model behind an address: chat, JSON by schema, the tracker's own prompt, and nobody else let in."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from fluents.errors import InputError, UnknownNameError
from fluents.llm import NoAnswerError, Question
from fluents.llm.answers import answered, json_in
from fluents.llm.endpoint import Endpoint
from fluents.llm.wire_format import EndpointOptions
from fluents.prompts.local import prompt, read
from fluents.records import Procedure
from fluents.trackers.model_server import Server, refusal, serve

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour the water over the tea leaves."))
SCHEMA = {
    "type": "object",
    "properties": {"entity": {"type": "string", "maxLength": 20}, "changes": {"type": "boolean"}},
    "required": ["entity", "changes"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server(real_weights: Path) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLUENTS_CACHE", str(real_weights.parents[1]))
        with serve() as running:
            yield running


@pytest.mark.slow
def test_it_chats_and_the_same_question_gets_the_same_answer(server: Server) -> None:
    question = Question("Name three colours.", system="Be brief.", max_tokens=12, temperature=0.8)
    with Endpoint(server.base_url, server.model) as endpoint:
        first = endpoint.ask(question, samples=2)
        assert all(first)
        assert first[0] != first[1], "samples differ"
        endpoint.ask(Question("Something else.", max_tokens=3))
        assert endpoint.ask(question, samples=2) == first
        assert endpoint.usage.tokens_in > 0


@pytest.mark.slow
def test_a_schema_holds_the_model_to_it(server: Server) -> None:
    question = Question("Does water change when it boils?", schema=SCHEMA, name="boil-1", max_tokens=80)
    with Endpoint(server.base_url, server.model) as endpoint:
        [found] = answered(endpoint, question, json_in)
        assert isinstance(found, dict)
        assert found.keys() == {"entity", "changes"}
        assert endpoint.usage.refused == ()


@pytest.mark.slow
def test_a_schema_llama_cpp_does_not_know_is_gone_without(server: Server) -> None:
    question = Question("Does water change?", schema={"type": "nonsense"}, name="bad-1", max_tokens=5)
    with Endpoint(server.base_url, server.model) as endpoint:
        assert endpoint.ask(question)
        assert endpoint.usage.refused == ("json_schema",)


@pytest.mark.slow
def test_a_prompt_that_is_too_long_is_that_questions_trouble(server: Server) -> None:
    with Endpoint(server.base_url, server.model) as endpoint:
        with pytest.raises(NoAnswerError, match="context"):
            endpoint.ask(Question("water " * 9000))
        assert endpoint.ask(Question("Hello", max_tokens=2))


def ask(server: Server, **body: object) -> tuple[int, dict[str, Any]]:
    request = Request(
        f"{server.base_url}/chat/completions",
        json.dumps({"messages": [{"role": "user", "content": "Hello"}], **body}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
def test_another_model_and_more_tokens_than_the_context_has_are_refused_at_once(server: Server) -> None:
    status, answer = ask(server, model="gpt-none", max_tokens=3)
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert server.model in answer["error"]["message"]
    status, answer = ask(server, model=server.model, max_tokens=100_000)
    assert (status, answer["error"]["param"]) == (400, "max_tokens")
    for named in ({"model": server.model}, {}):
        status, answer = ask(server, max_tokens=2, **named)
        assert status == 200
        assert answer["usage"]["completion_tokens"] <= 2


@pytest.mark.slow
def test_answers_are_streamed(server: Server) -> None:
    body = {"model": server.model, "prompt": "One, two,", "max_tokens": 4, "stream": True}
    request = Request(f"{server.base_url}/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as response:
        lines = [line for line in response if line.startswith(b"data: ")]
    assert len(lines) >= 3
    assert lines[-1] == b"data: [DONE]\n"


@pytest.mark.slow
def test_a_client_that_goes_away_does_not_keep_the_model_busy(server: Server) -> None:
    body = json.dumps({"prompt": "Count to a million: 1, 2,", "max_tokens": 8000, "ignore_eos": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", urlsplit(server.base_url).port or 0)) as client:
        client.sendall(head + body)
        time.sleep(1)
    status, _ = ask(server, max_tokens=2)
    assert status == 200, "within a minute; the slot would be busy for longer"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "m", "max_tokens": 8192}, None),
        ({"max_completion_tokens": 8193}, 400),
        ({"model": "m", "n_predict": 1e9}, 400),
        ({"model": "other"}, 404),
        ({"model": None}, 404),
        ({"model": ["m"]}, 404),
        (["model", "other"], None),
        ({"max_tokens": "many"}, None),  # llama.cpp tells
    ],
)
def test_what_is_refused(body: object, status: int | None) -> None:
    refused = refusal(json.dumps(body).encode(), "m")
    assert (refused and refused[0]) == status
    assert refusal(b"{", "m") is None
    assert refusal(b"[" * 100_000, "m") is None


@pytest.mark.slow
def test_no_page_of_another_site_may_read_its_answers(server: Server) -> None:
    request = Request(f"{server.base_url}/models", headers={"Origin": "https://evil.example"})
    with urlopen(request, timeout=60) as response:
        assert response.headers["access-control-allow-origin"] != "https://evil.example"
        assert response.headers["access-control-allow-origin"] != "*"
        assert json.load(response)["data"][0]["id"] == server.model
    assert server.base_url.startswith("http://127.0.0.1:")


@pytest.mark.slow
@pytest.mark.usefixtures("model_cache")
def test_a_port_in_use_is_told(server: Server) -> None:
    port = int(server.base_url.rpartition(":")[2].partition("/")[0])
    with pytest.raises(InputError, match=f"cannot listen on port {port}"), serve(port):
        pass


@pytest.mark.slow
@pytest.mark.usefixtures("model_cache")
def test_with_an_adapter_it_completes_the_trackers_own_prompt() -> None:
    with (
        serve(adapter="both") as server,
        Endpoint(server.base_url, server.model, options=EndpointOptions("completion")) as endpoint,
    ):
        [answer] = endpoint.ask(Question(prompt(TEA, 2, style="clean"), max_tokens=60))
        changes, _ = read(answer + "\n", 2)
        assert any("water" in change.entity or "tea" in change.entity for change in changes)


@pytest.mark.slow
@pytest.mark.usefixtures("model_cache")
def test_an_unknown_adapter_is_told() -> None:
    with pytest.raises(UnknownNameError, match="unknown adapter"), serve(adapter="none such"):
        pass


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_the_command_says_how_to_use_it_and_ctrl_c_ends_it_cleanly(model_cache: Path) -> None:
    command = [sys.executable, "-m", "fluents", "serve-model", "--port", "0"]
    environment = {**os.environ, "FLUENTS_CACHE": str(model_cache)}
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout
        lines = [running.stdout.readline() for _ in range(3)]
        address = lines[0].split()[-1]
        with urlopen(f"{address}/models", timeout=60) as response:
            assert response.status == 200
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert f"--base-url {address} --model smollm2-135m-instruct" in lines[1]
    assert running.returncode == 0
    assert err == "stopped\n"


def test_the_command_tells_a_port_in_use_without_a_traceback(tmp_path: Path) -> None:
    """With weights that are not there it would have to fetch them first: so the port is asked about before."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "fluents", "serve-model", "--port", str(taken.getsockname()[1])]
        environment = {**os.environ, "FLUENTS_CACHE": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr
