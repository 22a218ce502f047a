"""Addresses and keys: a key goes only where it was meant to go, and no error shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluents.errors import InputError
from fluents.llm import EndpointError
from fluents.llm.credentials import OPENAI, checked_url, find_key, is_loopback

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("MY_KEY", f"{KEY}-mine\n")
    monkeypatch.delenv("NO_KEY", raising=False)


def test_the_usual_variable_is_sent_by_https_and_not_in_the_clear() -> None:
    assert find_key(OPENAI) == KEY
    assert find_key("https://models.example/v1") == KEY
    assert find_key("http://models.example/v1") is None
    assert find_key("http://127.0.0.1:8080/v1") is None


def test_a_key_that_is_named_is_sent_wherever_the_user_says(tmp_path: Path) -> None:
    file = tmp_path / "key.txt"
    file.write_text(f"{KEY}-of-file\n")
    assert find_key("http://127.0.0.1:1/v1", file=file) == f"{KEY}-of-file"
    assert find_key("http://127.0.0.1:1/v1", variable="MY_KEY") == f"{KEY}-mine"


def test_without_any_key_openai_is_not_even_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(InputError, match="no API key"):
        find_key(OPENAI)
    assert find_key("https://models.example/v1") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", f"{KEY}\n{KEY}".encode(), KEY.encode() + b"\xff", f"{KEY} und".encode(), KEY.encode() * 9999],
)
def test_a_file_that_is_no_key_is_told_without_showing_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key.txt"
    file.write_bytes(content)
    with pytest.raises(InputError, match="invalid API key") as caught:
        find_key(OPENAI, file=file)
    assert KEY not in str(caught.value)
    assert caught.value.where == str(file)


def test_a_missing_variable_or_file_or_two_keys_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="NO_KEY contains no API key"):
        find_key(OPENAI, variable="NO_KEY")
    with pytest.raises(InputError, match="no such file"):
        find_key(OPENAI, file=tmp_path / "none")
    with pytest.raises(InputError, match="`key_file` and `key_variable`"):
        find_key(OPENAI, file=tmp_path / "none", variable="MY_KEY")


@pytest.mark.parametrize(
    "address", ["", "api.openai.com/v1", "file:///etc/passwd", "http://", "http://a:x/v1", "http://["]
)
def test_what_is_no_address_is_told(address: str) -> None:
    with pytest.raises(EndpointError, match="invalid endpoint address"):
        checked_url(address)


@pytest.mark.parametrize("address", ["me:hunter22@a.example/v1", "a.example/v1?key=hunter22", "a.example/#hunter22"])
def test_a_secret_in_an_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(EndpointError) as caught:
        checked_url(f"https://{address}")
    assert "hunter22" not in str(caught.value)


def test_an_address_is_the_same_with_and_without_a_slash() -> None:
    assert checked_url(" https://models.example/v1/ ") == "https://models.example/v1"


def test_this_machine_is_known_by_its_names() -> None:
    assert all(is_loopback(f"http://{host}:1/v1") for host in ("localhost", "127.0.0.1", "127.1.2.3", "[::1]"))
    assert not any(is_loopback(f"http://{host}/v1") for host in ("example.org", "127.0.0.1.example.org", "10.0.0.1"))
