"""Addresses of endpoints, and their API keys."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

from fluents.errors import InputError
from fluents.jsonl import open_input
from fluents.llm.question import EndpointError

OPENAI = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
MAX_KEY = 10_000


class MissingKeyError(InputError):
    """No API key for OpenAI's own endpoint, which is asked where no other is named."""


def checked_url(address: str) -> str:
    """The address of an endpoint as it is used everywhere: without a slash at the end."""
    fix = "give an address such as https://api.openai.com/v1 or http://127.0.0.1:8080/v1"
    try:
        parts = urlsplit(address.strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number, a bracket too many
        usable = False
    if not usable:
        raise EndpointError("invalid endpoint address", where=address[:200], fix=fix)
    key = "If the endpoint requires an API key, put the key in a file, and give this file as `key_file`"
    if parts.username or parts.password:
        raise EndpointError(
            "the endpoint address must not contain a user name or password",
            fix=f"{fix}. {key}",
        )
    if parts.query or parts.fragment:  # often a key, and requests go to other places below the address
        raise EndpointError(
            "the endpoint address must not contain ? or #",
            fix=f"{fix}. {key}",
        )
    return address.strip().rstrip("/")


def is_loopback(address: str) -> bool:
    """Whether an address is this machine."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def find_key(base_url: str, *, file: str | Path | None = None, variable: str | None = None) -> str | None:
    """The key for an endpoint: from the file or the environment variable named, else from OPENAI_API_KEY.

    That one is sent by https alone: to this machine, or in the clear, goes only a key that was named for it.
    """
    if file is not None and variable is not None:
        raise InputError(
            "`key_file` and `key_variable` cannot be combined", fix="leave out `key_file` or `key_variable`"
        )
    if file is not None:
        with open_input(file) as stream:
            return _checked_key(stream.read(MAX_KEY + 1).decode("utf-8", "replace"), str(file))
    if variable is not None:
        key = os.environ.get(variable)
        if not key:
            raise InputError(f"the environment variable {variable} contains no API key", fix=f"export {variable}=…")
        return _checked_key(key, f"${variable}")
    if not base_url.startswith("https:"):
        return None
    key = os.environ.get(KEY_VARIABLE)
    if not key and base_url == OPENAI:
        raise MissingKeyError(
            f"no API key for {base_url}",
            fix=f"export {KEY_VARIABLE}=…, or give the `base_url` of an endpoint that needs no key",
        )
    return _checked_key(key, f"${KEY_VARIABLE}") if key else None


def _checked_key(key: str, where: str) -> str:
    """A key as it can stand in a header. Errors never show it."""
    key = key.strip()
    if not key or len(key) > MAX_KEY or not all("!" <= character <= "~" for character in key):
        what = "invalid API key: expected one line of letters, digits and punctuation"
        raise InputError(what, where=where, fix="copy the key again, without quotation marks or spaces")
    return key
