"""The client: what it sends, what it does when it is turned away, and what it lets out."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faulty_server import Body, FaultyServer, in_turn
from fluents.errors import InputError
from fluents.llm import CutAnswer, EndpointError, NoAnswerError, Question
from fluents.llm.cache import Cache
from fluents.llm.endpoint import DOWN_AFTER, Endpoint
from fluents.llm.usage import Usage
from fluents.llm.wire_format import EndpointOptions, RetryPolicy
from fluents.prompts.llm import NEXT_QUESTION

SCHEMA = {"type": "object", "properties": {"pot": {"type": "string"}}, "required": ["pot"]}
KEY = "sk-very-secret-0123456789"


class Sleeps(list[float]):
    """Pauses asked for, none of them made."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(lambda body: "hot") as running:  # noqa: ARG005
        yield running


def open_endpoint(
    server: FaultyServer, *, sleeps: Sleeps | None = None, retries: int = 3, cache: Cache | None = None, **options: Any
) -> Endpoint:
    patience = RetryPolicy(retries, sleep=Sleeps() if sleeps is None else sleeps)
    return Endpoint(server.base_url, "any", KEY, options=EndpointOptions(retry=patience, **options), cache=cache)


def test_a_chat_is_asked_with_all_that_decides_the_answer(server: FaultyServer) -> None:
    question = Question("Is it hot?", system="Be brief.", max_tokens=5, temperature=0.5, top_p=0.9, seed=4)
    with open_endpoint(server) as endpoint:
        assert endpoint.ask(question) == ["hot"]
    assert server.bodies == [
        {
            "model": "any",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it hot?"}],
            "max_tokens": 5,
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 4,
        }
    ]
    assert endpoint.usage == Usage(requests=1, tokens_in=5, tokens_out=1)


def test_a_completion_has_one_prompt_and_ends_before_a_next_question(server: FaultyServer) -> None:
    with open_endpoint(server, api="completion") as endpoint:
        assert endpoint.ask(Question("Water is", system="Facts:", schema=SCHEMA)) == ["hot"]
    assert server.bodies[0]["prompt"] == "Facts:\n\nWater is"
    assert server.bodies[0]["stop"] == list(NEXT_QUESTION)
    assert "response_format" not in server.bodies[0]


def test_samples_have_seeds_and_places_in_the_cache_of_their_own(server: FaultyServer, tmp_path: Path) -> None:
    server.answer = lambda body: f"seed {body['seed']}"
    with open_endpoint(server, cache=Cache(tmp_path / "answers.sqlite")) as endpoint:
        assert endpoint.ask(Question("?", seed=7), samples=2) == ["seed 7", "seed 8"]
        assert endpoint.ask(Question("?", seed=7), samples=3) == ["seed 7", "seed 8", "seed 9"]
        assert len(server.bodies) == 3
        assert endpoint.usage.cached == 2


def test_what_was_cut_off_is_still_cut_off_when_it_comes_from_the_cache(server: FaultyServer, tmp_path: Path) -> None:
    server.fault = in_turn("length")
    for _ in range(2):
        with open_endpoint(server, cache=Cache(tmp_path / "answers.sqlite")) as endpoint:
            [answer] = endpoint.ask(Question("?"))
            assert isinstance(answer, CutAnswer)
    assert len(server.bodies) == 1


def refusing(name: str, message: str) -> Any:
    """Refuses requests in whose body this stands."""

    def refuse(body: Body) -> tuple[int, Body] | None:
        return (400, {"error": {"message": message}}) if name in str(body) else None

    return refuse


def test_an_endpoint_that_knows_no_schema_is_asked_for_json_and_that_is_remembered(server: FaultyServer) -> None:
    server.refuse = refusing("json_schema", "response_format of type json_schema is not supported")
    with open_endpoint(server) as endpoint:
        for _ in range(2):
            assert endpoint.ask(Question("?", schema=SCHEMA, name="schemata-1")) == ["hot"]
        assert endpoint.usage.refused == ("json_schema",)
    assert [body["response_format"]["type"] for body in server.bodies] == ["json_schema", "json_object", "json_object"]


def test_an_endpoint_that_knows_no_json_at_all_is_asked_freely(server: FaultyServer) -> None:
    server.refuse = refusing("response_format", "Unrecognized request argument supplied: response_format")
    with open_endpoint(server) as endpoint:
        assert endpoint.ask(Question("?", schema=SCHEMA)) == ["hot"]
    assert ["response_format" in body for body in server.bodies] == [True, True, False]


def test_a_schema_the_user_insists_on_is_not_given_up(server: FaultyServer) -> None:
    server.refuse = refusing("json_schema", "json_schema is not supported")
    with open_endpoint(server, structured="schema") as endpoint, pytest.raises(EndpointError, match="json_schema"):
        endpoint.ask(Question("?", schema=SCHEMA))
    assert len(server.bodies) == 1


def test_no_schema_is_sent_when_it_is_switched_off(server: FaultyServer) -> None:
    with open_endpoint(server, structured="off") as endpoint:
        endpoint.ask(Question("?", schema=SCHEMA))
    assert "response_format" not in server.bodies[0]


def test_models_that_want_another_name_for_the_limit_get_it(server: FaultyServer) -> None:
    server.refuse = refusing(
        "'max_tokens'", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    )
    with open_endpoint(server) as endpoint:
        assert endpoint.ask(Question("?", max_tokens=9)) == ["hot"]
    assert server.bodies[1]["max_completion_tokens"] == 9


def test_a_parameter_the_model_does_not_take_is_left_out_and_told(server: FaultyServer) -> None:
    server.refuse = refusing("temperature", "Unsupported value: 'temperature' does not support 0 with this model.")
    with open_endpoint(server) as endpoint:
        assert endpoint.ask(Question("?")) == ["hot"]
        assert endpoint.usage.refused == ("temperature",)


def test_a_value_out_of_range_is_told_and_not_left_out(server: FaultyServer) -> None:
    server.refuse = refusing("temperature", "temperature must be between 0 and 2")
    with open_endpoint(server) as endpoint, pytest.raises(EndpointError, match="between 0 and 2"):
        endpoint.ask(Question("?", temperature=9))


@pytest.mark.parametrize(
    ("status", "fix"), [(400, "options"), (401, "key"), (403, "key"), (404, "/v1"), (307, "address")]
)
def test_what_cannot_be_mended_by_asking_again_is_told_at_once(server: FaultyServer, status: int, fix: str) -> None:
    server.refuse = lambda body: (status, {"error": {"message": f"no\x1b[31m good: Bearer {KEY}"}})  # noqa: ARG005
    with open_endpoint(server) as endpoint, pytest.raises(EndpointError) as caught:
        endpoint.ask(Question("?"))
    assert caught.value.what == f"the endpoint replied with HTTP status {status}: no [31m good: Bearer [key]"
    assert fix in str(caught.value.fix)
    assert caught.value.where == server.base_url
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "This model's maximum context length is 10 tokens, max_tokens is 5"}),
        (400, {"message": "request (10 tokens) exceeds the available context size (5 tokens)"}),
        (400, {"message": "The response was filtered", "code": "content_filter"}),
        (413, {"message": "Request Entity Too Large"}),
    ],
)
def test_a_question_that_is_refused_for_itself_is_that_questions_trouble(
    server: FaultyServer, status: int, error: Body
) -> None:
    server.refuse = lambda body: (status, {"error": error}) if "long" in str(body) else None
    with open_endpoint(server) as endpoint:
        with pytest.raises(NoAnswerError, match="rejected"):
            endpoint.ask(Question("long"))
        assert endpoint.ask(Question("short")) == ["hot"]
        assert endpoint.usage.failed == 1
    assert len(server.bodies) == 2


def test_an_empty_account_is_told_at_once(server: FaultyServer) -> None:
    error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    server.refuse = lambda body: (429, {"error": error})  # noqa: ARG005
    with open_endpoint(server) as endpoint, pytest.raises(EndpointError, match="quota"):
        endpoint.ask(Question("?"))
    assert len(server.bodies) == 1


def test_pauses_grow_and_are_as_long_as_the_server_asks(server: FaultyServer) -> None:
    server.fault = in_turn("500", "500", "429-date", "429")
    sleeps = Sleeps()
    with open_endpoint(server, sleeps=sleeps, retries=4) as endpoint:
        assert endpoint.ask(Question("?")) == ["hot"]
        assert endpoint.usage == Usage(requests=5, retried=4, tokens_in=1, tokens_out=1)
    assert 0.25 <= sleeps[0] <= 0.5 <= sleeps[1] <= 1.0
    assert all(pause >= 0.1 for pause in sleeps)


def test_a_server_that_wants_an_hour_is_not_waited_for(server: FaultyServer) -> None:
    server.fault = in_turn("429-hour")
    with open_endpoint(server) as endpoint, pytest.raises(EndpointError, match="wait 3600 s"):
        endpoint.ask(Question("?"))


def test_an_endpoint_that_never_answered_is_down(server: FaultyServer) -> None:
    server.fault = lambda number, body: "500"  # noqa: ARG005
    with (
        open_endpoint(server) as endpoint,
        pytest.raises(EndpointError, match="no answer after 4 attempts: HTTP status 500"),
    ):
        endpoint.ask(Question("?"))


def test_one_question_that_always_fails_does_not_end_a_run_but_an_outage_does(server: FaultyServer) -> None:
    server.fault = lambda number, body: "drop" if "poison" in str(body) else None  # noqa: ARG005
    with open_endpoint(server, retries=1) as endpoint:
        for _ in range(DOWN_AFTER):
            endpoint.ask(Question("fine"))
            with pytest.raises(NoAnswerError):
                endpoint.ask(Question("poison"))
        for _ in range(DOWN_AFTER - 2):
            with pytest.raises(NoAnswerError):
                endpoint.ask(Question("poison"))
        with pytest.raises(EndpointError, match="no answer after 2 attempts"):
            endpoint.ask(Question("poison"))


def test_answers_in_the_cache_show_that_not_the_endpoint_but_a_question_is_at_fault(
    server: FaultyServer, tmp_path: Path
) -> None:
    """A run repeated ends as it did before, though all that can be answered comes from the cache."""
    server.fault = lambda number, body: "drop" if "poison" in str(body) else None  # noqa: ARG005
    for _ in range(2):
        with open_endpoint(server, retries=1, cache=Cache(tmp_path / "answers.sqlite")) as endpoint:
            endpoint.ask(Question("fine"))
            with pytest.raises(NoAnswerError):
                endpoint.ask(Question("poison"))
    assert endpoint.usage.cached == 1


def test_a_server_that_is_gone_since_the_cache_was_filled_is_told_without_waiting(tmp_path: Path) -> None:
    sleeps, cache = Sleeps(), tmp_path / "answers.sqlite"
    with FaultyServer(lambda body: "hot") as gone, open_endpoint(gone, cache=Cache(cache)) as endpoint:  # noqa: ARG005
        endpoint.ask(Question("fine"))
    with open_endpoint(gone, sleeps=sleeps, cache=Cache(cache)) as endpoint:
        endpoint.ask(Question("fine"))
        with pytest.raises(EndpointError, match="cannot connect"):
            endpoint.ask(Question("?"))
    assert sleeps == []


def test_a_server_that_is_not_there_is_told_without_waiting() -> None:
    with FaultyServer(str) as gone:
        pass
    sleeps = Sleeps()
    with open_endpoint(gone, sleeps=sleeps) as endpoint, pytest.raises(EndpointError, match="cannot connect"):
        endpoint.ask(Question("?"))
    assert sleeps == []


def test_a_server_that_does_not_speak_https_is_told_without_waiting_for_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes the call and says nothing, as many do: the long time that an answer may take is not for that."""
    monkeypatch.setattr("fluents.llm.endpoint.CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"https://127.0.0.1:{silent.getsockname()[1]}/v1"
        started = time.monotonic()
        with Endpoint(address, "any", options=EndpointOptions(timeout=120)) as endpoint:
            with pytest.raises(EndpointError, match=r"cannot connect to the endpoint: .*timed out"):
                endpoint.ask(Question("?"))
            assert endpoint.usage.requests == 1
        with Endpoint(address, "any", options=EndpointOptions(timeout=120, retry=RetryPolicy(retries=0))) as endpoint:
            endpoint._has_answered = True  # later in a run: then too nobody has waited 120 s
            with pytest.raises(EndpointError, match=r"the connection failed: .*timed out"):
                endpoint.ask(Question("?"))
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("drip", "within 0.5 s"),
        ("hang", "within 0.5 s"),
        ("huge", "larger than 16 MB"),
        ("huge-error", "larger than 16 MB"),
        ("zipped", "compressed"),
    ],
)
def test_an_answer_without_end_is_ended(server: FaultyServer, fault: str, reason: str) -> None:
    server.fault, server.hang = (lambda number, body: fault), 1.0  # noqa: ARG005
    started = time.monotonic()
    timeout = 0.5 if fault in ("drip", "hang") else 20
    with open_endpoint(server, retries=0, timeout=timeout) as endpoint, pytest.raises(EndpointError, match=reason):
        endpoint.ask(Question("?"))
    assert time.monotonic() - started < 5


def test_neither_answers_nor_what_is_shown_of_the_endpoint_holds_the_key(server: FaultyServer, tmp_path: Path) -> None:
    server.answer = lambda body: f"your header was Bearer {KEY}"  # noqa: ARG005
    with open_endpoint(server, cache=Cache(tmp_path / "answers.sqlite")) as endpoint:
        assert endpoint.ask(Question("?")) == ["your header was Bearer [key]"]
        assert KEY not in repr(endpoint)
        assert KEY not in repr(vars(endpoint))
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_what_the_environment_says_of_an_openai_account_goes_to_no_other_endpoint(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "private-org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "private-project")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: private-team\nAuthorization: Bearer private-key")
    with open_endpoint(server) as endpoint:
        endpoint.ask(Question("?"))
    assert "private" not in str(server.headers)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_text_that_is_no_unicode_neither_breaks_the_asking_nor_the_cache(
    server: FaultyServer, tmp_path: Path
) -> None:
    server.answer = lambda body: "half a pair: \ud83d"  # noqa: ARG005
    with open_endpoint(server, cache=Cache(tmp_path / "answers.sqlite")) as endpoint:
        assert endpoint.ask(Question("half a pair: \ud83d")) == ["half a pair: ?"]


def test_no_proxy_stands_between_this_machine_and_itself(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with open_endpoint(server) as endpoint:
        assert endpoint.ask(Question("?")) == ["hot"]


def test_the_cache_alone_answers_and_nothing_is_sent(server: FaultyServer, tmp_path: Path) -> None:
    """Also of a question that got no answer: a run that had one can be repeated."""
    server.refuse = lambda body: (413, {"error": {"message": "too long"}}) if body["seed"] == 6 else None
    question = Question("Is it hot?", name="heat-1", seed=5)
    with open_endpoint(server, cache=Cache(tmp_path / "kept.sqlite")) as endpoint, pytest.raises(NoAnswerError):
        endpoint.ask(question, samples=2)
    asked = len(server.bodies)
    cache = Cache(tmp_path / "kept.sqlite")
    with Endpoint(server.base_url + "/", "any", cache=cache, cached_only=True) as endpoint:
        assert endpoint.ask(question) == ["hot"]
        with pytest.raises(NoAnswerError, match="rejected this prompt: too long"):
            endpoint.ask(question, samples=2)
        for other in (Question("Is it cold?"), Question("Is it hot?", name="heat-1", seed=9)):
            with pytest.raises(InputError, match="no answer to this prompt") as caught:
                endpoint.ask(other)
            assert other.prompt in caught.value.what
            assert caught.value.where == str(tmp_path / "kept.sqlite")
        assert (endpoint.usage.cached, endpoint.usage.failed, endpoint.usage.requests) == (2, 1, 0)
    assert len(server.bodies) == asked


def test_a_question_that_failed_is_asked_again_and_then_answered(server: FaultyServer, tmp_path: Path) -> None:
    server.refuse = lambda _: (413, {"error": {"message": "too long"}})
    with open_endpoint(server, cache=Cache(tmp_path / "kept.sqlite")) as endpoint, pytest.raises(NoAnswerError):
        endpoint.ask(Question("?"))
    server.refuse = lambda _: None
    for only in (False, True):
        cache = Cache(tmp_path / "kept.sqlite")
        with Endpoint(server.base_url, "any", cache=cache, cached_only=only) as endpoint:
            assert endpoint.ask(Question("?")) == ["hot"]


@pytest.mark.parametrize("fault", ["500", "429-hour"])
def test_answers_are_only_said_to_be_kept_where_they_are(server: FaultyServer, tmp_path: Path, fault: str) -> None:
    server.fault = in_turn(fault, fault)
    with open_endpoint(server, retries=0) as endpoint, pytest.raises(EndpointError) as caught:
        endpoint.ask(Question("?"))
    assert "kept" not in str(caught.value)
    cache = Cache(tmp_path / "kept.sqlite")
    with open_endpoint(server, retries=0, cache=cache) as endpoint, pytest.raises(EndpointError) as caught:
        endpoint.ask(Question("?"))
    assert f"the answers so far are in {cache.path}" in str(caught.value)
