"""What comes back from an endpoint is taken apart without trust."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.llm import Question
from fluents.llm.wire_format import Api, BrokenReply, EndpointOptions, Reply, body, printable_line, read_reply


def chat(message: Any, **more: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"} | more]}).encode()


def test_an_answer_with_its_tokens() -> None:
    whole = {"choices": [{"message": {"content": "hot"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    assert read_reply(json.dumps(whole).encode(), "chat") == Reply("hot", tokens_in=3, tokens_out=1)
    assert read_reply(b'{"choices": [{"text": "hot", "finish_reason": "length"}]}', "completion") == Reply("hot", True)


def test_a_refusal_and_nothing_are_answers_for_the_reader_to_judge() -> None:
    assert read_reply(chat({"content": None, "refusal": "I cannot."}), "chat").text == "I cannot."
    assert read_reply(chat({"content": None}), "chat").text == ""


@pytest.mark.parametrize(
    ("content", "api"),
    [
        (b"", "chat"),
        (b"<html>", "chat"),
        (b"[]", "chat"),
        (b'{"choices": []}', "chat"),
        (b'{"choices": [{"text": "hot"}]}', "chat"),
        (b'{"choices": [{"message": {"content": "hot"}}]}', "completion"),
        (b'{"choices": [{"message": {"content": ["hot"]}}]}', "chat"),
        (b'{"choices": [{"message": {"content": "hot"}}], "usage": {"prompt_tokens": -1}}', "chat"),
        (b"[" * 100_000, "chat"),
        (b'{"choices": \xff}', "chat"),
    ],
)
def test_what_is_no_completion_is_told_apart(content: bytes, api: Api) -> None:
    with pytest.raises(BrokenReply):
        read_reply(content, api)


@given(st.binary() | st.text().map(lambda text: chat({"content": text})), st.sampled_from(["chat", "completion"]))
def test_no_body_breaks_the_reading_and_every_text_can_be_written(content: bytes, api: Api) -> None:
    try:
        reply = read_reply(content, api)
    except BrokenReply:
        return
    assert reply.text.encode().decode() == reply.text


@given(st.text(), st.text())
def test_every_question_can_be_sent(prompt: str, system: str) -> None:
    for options in (EndpointOptions("chat"), EndpointOptions("completion")):
        sent = body(Question(prompt, system=system, schema={}, name="näme 1"), "any", options, ())
        assert json.dumps(sent, ensure_ascii=False).encode()


@given(st.text())
def test_what_is_shown_of_a_server_is_short_and_obeys_no_terminal(text: str) -> None:
    shown = printable_line(text)
    assert len(shown) <= 300
    assert shown.isprintable()
