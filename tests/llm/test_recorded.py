"""A recorded run plays back without a model, and says so where the record does not fit."""

from __future__ import annotations

import io
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faulty_server import FaultyServer, in_turn
from fluents.errors import InputError
from fluents.llm import CutAnswer, NoAnswerError, Question
from fluents.llm.cache import Cache
from fluents.llm.endpoint import Endpoint
from fluents.llm.recorded import Recorded, Recorder
from fluents.llm.wire_format import EndpointOptions, Reply

QUESTION = Question("Is it hot?", system="Brief.", schema={"type": "object"}, name="heat-1", seed=5)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Of two samples, the second cut off; with a file of kept answers beside it."""
    stream = io.BytesIO()
    with FaultyServer(lambda body: f"seed {body['seed']}", in_turn(None, "length")) as server:
        (tmp_path / "address").write_text(server.base_url)
        with Endpoint(server.base_url, "any", cache=Cache(tmp_path / "answers.sqlite")) as endpoint:
            recorder = Recorder(endpoint, stream)
            assert recorder.ask(QUESTION, samples=2) == ["seed 5", "seed"]
            assert recorder.usage.requests == 2
            assert recorder.left_out == ()
    path = tmp_path / "record.jsonl"
    path.write_bytes(stream.getvalue())
    return path


def test_what_was_recorded_is_answered_again(record: Path) -> None:
    model = Recorded.read(record)
    first, second = model.ask(QUESTION, samples=2)
    assert (first, second) == ("seed 5", "seed")
    assert (isinstance(first, CutAnswer), isinstance(second, CutAnswer)) == (False, True)
    assert model.usage.cached == 2
    assert model.usage.requests == 0


def test_a_question_that_got_no_answer_gets_none_again(tmp_path: Path) -> None:
    """So that a run with such a question can be played back; the samples before it are not lost."""
    path = tmp_path / "record.jsonl"
    with FaultyServer(lambda body: "hot") as server, path.open("wb") as stream:  # noqa: ARG005
        server.refuse = lambda body: (413, {"error": {"message": "too long"}}) if body["seed"] == 6 else None
        with Endpoint(server.base_url, "any") as endpoint, pytest.raises(NoAnswerError):
            Recorder(endpoint, stream).ask(QUESTION, samples=2)
    model = Recorded.read(path)
    assert model.ask(QUESTION) == ["hot"]
    for _ in range(2):
        with pytest.raises(NoAnswerError, match="refused this question: too long"):
            model.ask(QUESTION, samples=2)
    assert model.usage.failed == 2


def test_a_file_of_kept_answers_is_a_record_too(record: Path) -> None:
    cache = Cache(record.with_name("answers.sqlite"))
    address = record.with_name("address").read_text()
    assert Recorded.of_cache(cache, address + "/", "any", EndpointOptions()).ask(QUESTION, 2) == ["seed 5", "seed"]
    with pytest.raises(InputError, match="no answer to this question"):
        Recorded.of_cache(cache, address, "another", EndpointOptions()).ask(QUESTION)
    cache.close()


@pytest.mark.parametrize(
    "other", [Question("Is it cold?"), Question("Is it hot?"), Question(**(vars(QUESTION) | {"seed": 9}))]
)
def test_another_question_is_told_and_not_answered_somehow(record: Path, other: Question) -> None:
    with pytest.raises(InputError, match="no answer to this question"):
        Recorded.read(record).ask(other)


@pytest.mark.parametrize(
    "line", ["{}", "[]", '{"question": {"prompt": ""}}', '{"question": {"x": 1}, "answer": ""}', "{"]
)
def test_what_is_no_record_is_told_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(line)
    with pytest.raises(InputError) as caught:
        Recorded.read(path)
    assert caught.value.where == f"{path}:1"


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, TEXT)
def test_every_text_is_recorded_as_it_is(prompt: str, answer: str) -> None:
    stream = io.BytesIO()
    model = Recorded(lambda question: Reply(answer))  # noqa: ARG005
    assert Recorder(model, stream).ask(Question(prompt)) == [answer]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "record.jsonl"
        path.write_bytes(stream.getvalue())
        assert Recorded.read(path).ask(Question(prompt)) == [answer]
